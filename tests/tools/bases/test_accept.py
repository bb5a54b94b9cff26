from dataclasses import replace

import accept as acceptance
import pytest
from accept import TARGETS, accept, missed, share

from azr_population.analysis.statistics import interval
from azr_population.bases.nano import nano_base_path
from azr_population.domains.code.task_types import TaskType
from azr_population.engines.engine import Completion

PROPOSALS = [
    ("def f(n):\n    return n + 1", "3"),
    ("def f(n):\n    return n > 1", "3"),
    ("def f(n):\n    return 7", "3"),
    ("def f(n):\n    return n", "3"),
    ("def f(n):\n    return n +", "3"),
    ("def f(n):\n    return n / 0", "3"),
]
GOOD = {
    "proposals": 100,
    "valid_tasks": 90,
    "valid": share(90, 100),
    "unique": share(88, 90),
    "solved": interval([0.4] * 90),
    "greedy": share(45, 90),
    "guess": share(9, 90),
    "tokens": 50.0,
    "ast_nodes": 25.0,
    "lines": 3.0,
    "refused": {"unparsable": 10},
}


def finished(text):
    return Completion(0, (), (1, 2), (-1.0, -1.0), True, text)


class Engine:
    """Proposes these completions, and answers 4 to everything."""

    def __init__(self, proposals):
        self.proposals = proposals

    def generate(self, prompts, slots, sampling, seed):
        if len(prompts) == len(self.proposals) and sampling.temperature and sampling.n == 1:
            return [[completion] for completion in self.proposals]
        return [[self.answer] * sampling.n for _ in prompts]


@pytest.mark.parametrize("format", ["nano", "short"])
def test_proposals_are_executed_and_refusals_counted(format, base_folder, monkeypatch):
    if format == "nano":
        texts, Engine.answer = ["<in>".join(pair) for pair in PROPOSALS], finished("4")
    else:
        texts = [f"```python\n{a}\n```\n```input\n{b}\n```" for a, b in PROPOSALS]
        Engine.answer = finished("```output\n4\n```")
    written = [*map(finished, [*texts, "def f(n)"]), replace(finished(texts[0]), finished=False)]
    monkeypatch.setattr(acceptance, "text_engine", lambda *args: Engine(written))
    row = accept(base_folder, format, n=8, types=[TaskType.CODE_O])[TaskType.CODE_O]
    assert row["valid_tasks"] == 1 and row["valid"].mean == 1 / 8
    assert row["solved"].mean == row["greedy"].mean == 1.0
    assert row["refused"] == {
        "unparsable": 2, "boolean": 1, "constant": 1, "identity": 1, "syntax_error": 1, "error": 1,
    }  # fmt: skip


def test_shares_have_intervals():
    valid = GOOD["valid"]
    # Wilson's interval of 90 in 100.
    assert (valid.mean, round(valid.low, 3), round(valid.high, 3)) == (0.9, 0.826, 0.945)
    assert share(0, 0) is None


def test_missed_targets_are_named():
    figures = dict.fromkeys(TaskType, GOOD)
    assert missed(figures, TARGETS["nano"]) == missed(figures, TARGETS["short"]) == []
    figures[TaskType.CODE_F] = {**GOOD, "solved": share(5, 100)}
    assert [line.split()[:3] for line in missed(figures, TARGETS["nano"])] == [
        ["code_f", "solved", "5.0%,"]
    ]
    row = {**GOOD, "valid": share(40, 100)}
    figures[TaskType.CODE_O] = {name: figure for name, figure in row.items() if name != "greedy"}
    assert [line.split()[:2] for line in missed(figures, TARGETS["short"])] == [
        ["code_o", "valid"],
        ["code_o", "greedy"],
    ]


def test_a_random_base_proposes_nothing_valid(base_folder):
    row = accept(base_folder, "short", n=2, attempts=1, types=[TaskType.CODE_O])[TaskType.CODE_O]
    assert (row["valid_tasks"], row["refused"]) == (0, {"unparsable": 2})
    assert not {"solved", "greedy"} & set(row)


@pytest.mark.slow
def test_the_shipped_base_is_acceptable():
    for row in accept(nano_base_path(), "nano", n=200, seed=3).values():
        assert row["valid"].mean > 0.7
        assert row["unique"].mean > 0.85
