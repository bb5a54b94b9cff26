from collections import Counter
from dataclasses import replace

import pytest

from azr_population.bases.accept import (
    TARGETS,
    Figures,
    Writer,
    accept,
    missed,
    print_table,
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
GOOD = Figures(
    proposals=100,
    valid=90,
    unique=88,
    copied=1,
    solved=[0.4] * 90,
    greedy=[1.0] * 45 + [0.0] * 45,
    most_common_answer=9,
    tokens=50.0,
    measures={"ast_nodes": 25.0, "lines": 3.0},
    held_out=1,
    refused={"form": 10},
)


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
    valid = GOOD.share("valid")
    # Wilson's interval of 90 in 100.
    assert (valid.mean, round(valid.low, 3), round(valid.high, 3)) == (0.9, 0.826, 0.945)
    assert GOOD.share("copied").mean == pytest.approx(1 / 90)
    assert replace(GOOD, copied=None).share("copied") is None
    nothing = replace(GOOD, valid=0, unique=0, copied=0, solved=[], greedy=[])
    assert [nothing.share(name) for name in ("unique", "copied", "solved", "greedy")] == [None] * 4
    assert GOOD.to_json()["greedy"]["mean"] == 0.5


def test_missed_targets_are_named():
    figures = dict.fromkeys(TaskType, GOOD)
    assert missed(figures, TARGETS["nano"]) == []
    assert missed(figures, TARGETS["short"]) == []
    figures[TaskType.CODE_F] = replace(GOOD, solved=[0.05] * 90)
    assert missed(figures, TARGETS["nano"]) == ["code_f solved 5.0%, wanted 10%-100%"]
    figures[TaskType.CODE_O] = replace(GOOD, valid=40, copied=4, greedy=[])
    assert missed(figures, TARGETS["short"]) == [
        "code_o valid 40.0%, wanted 50%-100%",
        "code_o copied 10.0%, wanted 0%-5%",
        "code_o greedy cannot be told: nothing was valid, or nothing is known",
    ]


def test_the_table_shows_figures_and_what_was_refused(capsys):
    print_table({TaskType.CODE_O: GOOD}, TARGETS["short"], "base")
    text = capsys.readouterr().out
    assert "form" in text and "10" in text and "missed" not in text


def test_a_random_base_proposes_nothing_valid(base_folder):
    figures = accept(base_folder, "short", n=2, attempts=1, types=[TaskType.CODE_O])
    row = figures[TaskType.CODE_O]
    assert (row.valid, row.copied, row.refused) == (0, None, {"form": 2})


def test_programs_of_the_warm_up_and_of_seed_files_are_copies(base_folder, monkeypatch):
    asked = iter([PROPOSALS[0], ("def f(n):\n    return n * 2", "3"), ("def f(n): return -n", "3")])

    class Written:
        def __init__(self, pair):
            self.text = f"```python\n{pair[0]}\n```\n```input\n{pair[1]}\n```"
            self.token_ids, self.finished = (1, 2), True

    monkeypatch.setattr(Writer, "propose", lambda self, type, n: list(map(Written, asked)))
    monkeypatch.setattr(Writer, "solve", lambda self, tasks, n, greedy: [[None]] * len(tasks))
    write_digests(base_folder, {digest("def f(n):\n  return n+1")})
    figures = accept(
        base_folder, n=3, attempts=1, known=["def f(n):\n    return -n"], types=[TaskType.CODE_O]
    )
    assert (figures[TaskType.CODE_O].valid, figures[TaskType.CODE_O].copied) == (3, 2)


@pytest.mark.slow
def test_the_shipped_base_is_acceptable():
    for row in accept(nano_base_path(), "nano", n=200, seed=3).values():
        assert row.share("valid").mean > 0.7
        assert row.share("unique").mean > 0.85
