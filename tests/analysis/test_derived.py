import hashlib
from math import comb

import needs
import numpy as np
import pytest

from azr_population.analysis.figures import filled_cells
from azr_population.analysis.task_cards import HARDEST, examples
from azr_population.domains.code.complexity import DESCRIPTORS, KINDS, SPACE
from azr_population.reading.derived import TASKS_PER_STEP
from azr_population.reading.run_data import RunData

ADD = "def f(n):\n    return n + 1"
ADD_MORE = "def f(n):\n    return n - 7"
SORT = "def f(a):\n    return sorted(a)[1:]"
SHOUT = "def f(s):\n    return s.upper()"


@pytest.fixture(name="tasks")
def tasks_fixture(task):
    """Two cells in step 1, one of them again in step 2, a third one in step 4."""
    return [
        task(1, ADD),
        task(1, SORT, inputs=["[2, 1]"], outputs=["[2]"], teacher="teacher_1"),
        task(2, ADD_MORE),
        task(4, SHOUT, inputs=["'a'"], outputs=["'A'"]),
    ]


def series(run, name, role="teacher"):
    values = (
        (step, metrics.get(f"{role}/{name}"))
        for step, metrics in sorted(RunData(run.path).derived.items())
    )
    return [(step, value) for step, value in values if value is not None]


def test_a_cell_is_filled_once(write, tasks):
    run = write(tasks=tasks, metrics=[{"step": step} for step in (1, 2, 3, 4)])
    assert series(run, "coverage") == [(1, 2.0), (2, 2.0), (3, 2.0), (4, 3.0)]
    # So few tasks a step are all taken.
    assert series(run, "coverage_per_task") == series(run, "coverage")


def test_more_tasks_alone_do_not_raise_coverage_per_task(write, task):
    """Eight times the tasks from the same mixture: the same expected cells."""
    few = [task(1, ADD)] * (TASKS_PER_STEP - 3) + [
        *(task(1, SORT, inputs=["[2, 1]"], outputs=["[2]"]),),
        *(task(1, SHOUT, inputs=["'a'"], outputs=["'A'"]),) * 2,
    ]
    first, eight = write(tasks=few, name="one"), write(tasks=few * 8, name="eight")
    assert series(first, "coverage") == series(eight, "coverage") == [(1, 3.0)]
    assert series(first, "coverage_per_task") == [(1, 3.0)]
    # Of 96 tasks 72, 8 and 16: 12 of them miss these cells by chance.
    ((_, coverage),) = series(eight, "coverage_per_task")
    missed = sum(comb(96 - c, 12) for c in (72, 8, 16)) / comb(96, 12)
    assert coverage == pytest.approx(3 - missed) and 2.4 < coverage < 2.6


def test_the_page_counts_the_cells_that_tasks_fill(write, tasks):
    run = write(tasks=tasks)
    assert filled_cells(run) == f"4 valid tasks fill 3 of {len(SPACE.archive):,} cells."


def test_zero_valid_tasks(write):
    run = write(tasks=[], metrics=[{"step": 1, "teacher_0/mu": 1.0}, {"step": 2}])
    assert series(run, "coverage") == [(1, 0.0), (2, 0.0)] == series(run, "coverage_per_task")
    assert filled_cells(run).startswith("No task") and write(name="nothing").derived == {}


def possible_problems(seed, n):
    """`n` possible problems in descriptor values, float64[n, d], of which the cells were made.

    They cover what is possible, not what some model writes. The logarithm of the size is uniform;
    depth and branching are uniform up to what a program of that size has room for; one to five
    groups of operations occur in any proportion; one to three arguments and the kinds of values are
    equally likely.
    """
    generator = np.random.default_rng(seed)
    bounds = {d.name: d for d in DESCRIPTORS}
    size = generator.uniform(bounds["size"].low, bounds["size"].high, n)
    room = (size - bounds["size"].low) / (bounds["size"].high - bounds["size"].low)
    depth, branching = (
        generator.uniform(0.0, room) * (bounds[name].high - bounds[name].low) + bounds[name].low
        for name in ("depth", "branching")
    )
    # The order of random numbers chooses which occur; equal gammas make any proportion.
    occur = generator.random((n, 5)).argsort(axis=1) < generator.integers(1, 6, (n, 1))
    mix = generator.standard_gamma(1.0, (n, 5)) * occur
    arguments = generator.integers(1, 4, n)
    kinds = generator.integers(0, len(KINDS), (n, 3))
    present = np.arange(3) < arguments[:, None]
    input_kinds = np.stack(
        [np.sum((kinds == kind) & present, axis=1) / arguments for kind in range(len(KINDS))], 1
    )
    output_kinds = np.eye(len(KINDS))[generator.integers(0, len(KINDS), n)]
    mix /= mix.sum(axis=1, keepdims=True)
    return np.column_stack([size, depth, branching, mix, arguments, input_kinds, output_kinds])


def test_the_cells_are_fixed():
    """Whoever changes cells or descriptors changes what published coverage means."""
    shipped = np.load(SPACE.centroids)
    assert shipped.shape[1] == len(SPACE.descriptors) and shipped.dtype == np.float32
    weights = np.array([descriptor.weight for descriptor in SPACE.descriptors])
    assert (shipped >= 0).all() and (shipped <= weights + 1e-6).all()
    assert hashlib.sha256(shipped.tobytes()).hexdigest()[:16] == "258cf0589c17df92"


@pytest.mark.slow
def test_the_shipped_centroids_are_those_of_possible_problems():
    """How they were made. Rounding differs between builds of the clustering."""
    cluster = needs.module("sklearn.cluster", "scikit-learn")
    samples = SPACE.scale(possible_problems(9, 50_000))
    options = {"init": "random", "n_init": 1, "algorithm": "lloyd", "random_state": 9}
    computed, *_ = cluster.k_means(samples, len(SPACE.archive), **options)
    computed = np.round(np.clip(computed, 0.0, None), 4)
    points = SPACE.scale(possible_problems(10, 5000))
    near = [
        np.linalg.norm(points[:, None] - cells[None], axis=2).argmin(axis=1)
        for cells in (computed[np.lexsort(computed.T[::-1])], SPACE.archive)
    ]
    assert (near[0] == near[1]).mean() > 0.9


def test_cells_are_those_of_pyribs():
    """Which placed the tasks of all published runs: the digest is of its `CVTArchive.index_of`."""
    cells = SPACE.place(possible_problems(17, 20_000).astype(np.float32))
    assert hashlib.sha256(cells.tobytes()).hexdigest()[:16] == "d8df235b4b318b2f"


def task(step, rate, nodes, type="code_o"):
    return {
        "step": step, "type": type, "solve_rate": rate, "ast_nodes": nodes,
        "program": f"program of {nodes}",
    }  # fmt: skip


def test_an_early_solved_task_and_a_late_unsolved_one_of_middle_size_stand_side_by_side():
    tasks = [task(1, 1.0, 9), task(2, 1.0, 30), task(2, 1.0, 10), task(2, 0.5, 5), task(10, 0, 99)]
    tasks += [task(19, 0.0, 40), task(20, 0.0, 41), task(20, 0.0, 90), task(20, 0.5, 91)]
    tasks += [task(20, 0.5, 1, "code_i")]
    ((early, late),) = examples(tasks, 20, "ast_nodes").pairs
    assert (early["ast_nodes"], late["ast_nodes"]) == (10, 41)


def test_tasks_that_nobody_attempted_stand_side_by_side_by_their_size():
    tasks = [task(step, None, 10 * step) for step in range(1, 11)]
    ((early, late),) = examples(tasks, 10, "ast_nodes").pairs
    assert (early["ast_nodes"], late["ast_nodes"]) == (10, 100)


def test_the_hardest_solved_has_the_smallest_rate_and_then_the_largest_program():
    tasks = [task(1, 0.5, 90), task(1, 0.25, 10), task(2, 0.25, 20), task(2, 1.0, 99)]
    chosen = examples(tasks, 2, "ast_nodes")
    assert [one["ast_nodes"] for one in chosen.solved] == [20, 10, 90]
    assert chosen.unsolved == []


def test_the_hardest_unsolved_are_the_largest_and_a_copy_counts_once():
    tasks = [task(1, 0.0, size) for size in [5, 7, 7, *range(10, 1000)] for _ in range(2)]
    chosen = examples(tasks, 1, "ast_nodes")
    assert [one["ast_nodes"] for one in chosen.unsolved] == [999, 998, 997][:HARDEST]


def test_a_program_counts_by_its_hardest_task_and_is_unsolved_only_if_nobody_ever_solved_it():
    tasks = [task(1, 1.0, 30), task(1, 0.0, 40), task(2, 0.25, 30), task(3, 0.0, 30)]
    tasks += [task(4, 0.75, 30), task(5, 0.0, 20), task(6, 0.5, 40)]
    chosen = examples(tasks, 6, "ast_nodes")
    assert [(one["step"], one["ast_nodes"]) for one in chosen.solved] == [(2, 30), (6, 40)]
    assert [one["ast_nodes"] for one in chosen.unsolved] == [20]


def test_nothing_and_records_that_lack_something():
    assert examples([], 0, "") == ([], [], [])
    one = {"step": 1, "solve_rate": 0}
    assert examples([one], 1, "ast_nodes").unsolved == [one]


def test_slopes_of_a_cross_play_are_read_or_the_file_is_named(write, caplog):
    run = write(metrics=[{"step": 1}, {"step": 2}])
    file = run.path / "crossplay.json"
    file.write_text('{"slopes": {"student": 0.25, "teacher": null}}')
    assert series(run, "cross_play_slope", "student") == [(2, 0.25)]
    for damaged in ("[]", "{}", '{"slopes": 3}', "{"):
        file.write_text(damaged)
        caplog.clear()
        assert RunData(run.path).derived.get(2, {}).keys().isdisjoint(["student/cross_play_slope"])
        assert f"{file} is damaged" in caplog.text
