from collections import Counter

import pytest

from azr_population.nano import nano_base_path
from azr_population.nano.accept import TARGETS, _valid_tasks, accept, missed
from azr_population.referee import Referee
from azr_population.tasks.task import TaskType

# Filled in below from the model card's table: what ships must stay what was accepted.


def test_proposals_are_executed_and_refusals_counted():
    texts = [
        "def f(n):\n    return n + 1<in>3",
        "def f(n):\n    return n + 1",
        "def f(n):\n    return n > 1<in>3",
        "def f(n):\n    return 7<in>3",
        "def f(n):\n    return n<in>3",
        "def f(n):\n    return n +<in>3",
        "def f(n):\n    return n / 0<in>3",
    ]
    refused = Counter()
    with Referee() as referee:
        tasks = _valid_tasks(referee, TaskType.CODE_O, texts, refused)
    assert [(task.inputs, task.outputs) for task in tasks] == [(("3",), ("4",))]
    assert refused == {
        "form": 1, "boolean": 1, "constant": 1, "identity": 1, "syntax_error": 1, "error": 1,
    }  # fmt: skip


def test_missed_targets_are_named():
    good = {"valid": 0.9, "unique": 0.95, "solved": 0.4, "guess": 0.1}
    figures = {str(type): dict(good) for type in TaskType}
    assert missed(figures) == []
    figures["code_f"]["solved"] = 0.05
    assert missed(figures) == ["code_f solved 5.0%, wanted 10%-100%"]
    assert set(TARGETS) == set(good)


@pytest.mark.slow
def test_the_shipped_base_is_acceptable():
    figures = accept(nano_base_path(), n=200, seed=3, show=False)
    for row in figures.values():
        assert row["valid"] > 0.7
        assert row["unique"] > 0.85
