from collections import Counter
from dataclasses import replace

import pytest

from azr_population.analysis.statistics import interval
from azr_population.bases.accept import (
    NOTHING,
    TARGETS,
    BaseFigures,
    Writer,
    accept,
    missed,
    print_table,
    share,
    valid_tasks,
)
from azr_population.bases.nano import nano_base_path
from azr_population.bases.programs import digest, write_digests
from azr_population.config.schema import TaskConfig
from azr_population.domains.code.formats import NanoFormat, ShortFormat
from azr_population.domains.code.task_types import TaskType
from azr_population.engines.engine import Completion
from azr_population.referee import Referee

PROPOSALS = [
    ("def f(n):\n    return n + 1", "3"),
    ("def f(n):\n    return n > 1", "3"),
    ("def f(n):\n    return 7", "3"),
    ("def f(n):\n    return n", "3"),
    ("def f(n):\n    return n +", "3"),
    ("def f(n):\n    return n / 0", "3"),
]
GOOD = BaseFigures(
    proposals=100,
    valid_tasks=90,
    shares={
        "valid": share(90, 100),
        "unique": share(88, 90),
        "copied": share(1, 90),
        "solved": interval([0.4] * 90),
        "greedy": share(45, 90),
        "guess": share(9, 90),
    },
    tokens=50.0,
    measures={"ast_nodes": 25.0, "lines": 3.0},
    refused={"form": 10},
)


def but(**shares):
    return replace(GOOD, shares=GOOD.shares | shares)


def finished(text):
    return Completion(0, (), (1, 2), (-1.0, -1.0), True, text)


@pytest.mark.parametrize("format", [NanoFormat(), ShortFormat()])
def test_proposals_are_executed_and_refusals_counted(format):
    if isinstance(format, NanoFormat):
        texts = ["<in>".join(pair) for pair in PROPOSALS]
    else:
        texts = [f"```python\n{a}\n```\n```input\n{b}\n```" for a, b in PROPOSALS]
    refused = Counter()
    with Referee() as referee:
        written = [
            *map(finished, [*texts, "def f(n)"]),
            replace(finished(texts[0]), finished=False),
        ]
        tasks = valid_tasks(referee, format, TaskType.CODE_O, written, TaskConfig(), refused)
    assert [(task.inputs, task.outputs) for task in tasks] == [(("3",), ("4",))]
    assert refused == {
        "form": 2, "boolean": 1, "constant": 1, "identity": 1, "syntax_error": 1, "error": 1,
    }  # fmt: skip


def test_shares_have_intervals():
    valid = GOOD.shares["valid"]
    # Wilson's interval of 90 in 100.
    assert (valid.mean, round(valid.low, 3), round(valid.high, 3)) == (0.9, 0.826, 0.945)
    assert GOOD.to_json()["greedy"]["mean"] == 0.5
    assert "copied" not in but(copied=share(0, 0)).to_json()


def test_missed_targets_are_named():
    figures = dict.fromkeys(TaskType, GOOD)
    assert missed(figures, TARGETS["nano"]) == missed(figures, TARGETS["short"]) == []
    figures[TaskType.CODE_F] = but(solved=share(5, 100))
    assert [line.split()[:3] for line in missed(figures, TARGETS["nano"])] == [
        ["code_f", "solved", "5.0%,"]
    ]
    figures[TaskType.CODE_O] = but(valid=share(40, 100), copied=share(4, 40), greedy=share(0, 0))
    assert [line.split()[:2] for line in missed(figures, TARGETS["short"])] == [
        ["code_o", "valid"],
        ["code_o", "copied"],
        ["code_o", "greedy:"],
    ]


def test_the_table_shows_figures_and_what_was_refused(capsys):
    print_table({TaskType.CODE_O: GOOD}, TARGETS["short"], "base")
    text = capsys.readouterr().out
    assert "form" in text and "10" in text and "missed" not in text


def test_a_random_base_proposes_nothing_valid(base_folder):
    figures = accept(base_folder, "short", n=2, attempts=1, types=[TaskType.CODE_O])
    row = figures[TaskType.CODE_O]
    assert (row.valid_tasks, row.refused) == (0, {"form": 2})
    assert row.shares["copied"] is NOTHING


def test_programs_of_the_warm_up_and_of_seed_files_are_copies(base_folder, monkeypatch):
    pairs = iter([PROPOSALS[0], ("def f(n):\n    return n * 2", "3"), ("def f(n): return -n", "3")])

    class Written:
        def __init__(self, pair):
            self.text = f"```python\n{pair[0]}\n```\n```input\n{pair[1]}\n```"
            self.token_ids, self.finished = (1, 2), True

    monkeypatch.setattr(Writer, "propose", lambda self, type, n: list(map(Written, pairs)))
    monkeypatch.setattr(Writer, "solve", lambda self, tasks, n, greedy: [[None]] * len(tasks))
    write_digests(base_folder, {digest("def f(n):\n  return n+1")})
    figures = accept(
        base_folder,
        n=3,
        attempts=1,
        seen_programs=["def f(n):\n    return -n"],
        types=[TaskType.CODE_O],
    )
    row = figures[TaskType.CODE_O]
    assert (row.valid_tasks, row.shares["copied"].mean) == (3, pytest.approx(2 / 3))


@pytest.mark.slow
def test_the_shipped_base_is_acceptable():
    for row in accept(nano_base_path(), "nano", n=200, seed=3).values():
        assert row.shares["valid"].mean > 0.7
        assert row.shares["unique"].mean > 0.85
