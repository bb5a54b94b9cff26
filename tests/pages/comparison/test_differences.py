from __future__ import annotations

from pathlib import Path
from typing import Any

from azr_population.pages.comparison.differences import differences
from azr_population.pages.comparison.inputs import Arm, Run

SAME: dict[str, Any] = {
    "seed": 1,
    "base": "nano",
    "population.rows": 24,
    "run.steps": 0,
    "exam.every": 25,
    "task.refuse": ["identity"],
}


def run(name: str = "run", versions: dict[str, str] | None = None, **changes: Any) -> Run:
    settings = SAME | {key.replace("__", "."): value for key, value in changes.items()}
    return Run(
        Path(name),
        None,
        {1: {"actor/entropy": 0.5, name: 0.5}},
        settings,
        {"torch": "2.7"} if versions is None else versions,
    )


def test_runs_that_differ_in_the_method_only() -> None:
    arms = [run(population__teachers=0), run(seed=2, population__teachers=4)]
    found = differences([Arm("a", (arms[0],)), Arm("b", (arms[1],))])
    assert [(row.group, row.key, row.values) for row in found.rows] == [
        ("method", "population.teachers", ("0", "4"))
    ]
    assert found.warnings == []
    assert len(found.same) == 5


def test_another_base_and_budget_are_warned_of() -> None:
    other = run(base="hf", population__rows=48, versions={"torch": "2.8"})
    found = differences([Arm("a", (run(),)), Arm("b", (other,))])
    assert [row.group for row in found.rows] == ["base", "budget", "versions"]
    assert found.warnings == [
        "Different base model: base (nano, hf).",
        "Different budget (rows per member, attempts, steps): population.rows (24, 48).",
        "Different versions of the software: torch (2.7, 2.8).",
    ]


def test_a_single_agent_and_students_that_learn_at_different_rates() -> None:
    """Both runs have all three rates: no setting differs."""
    rates = {"population__agent_lr": 0.001, "population__student_lr": 0.002}
    single = Arm("single", (run(population__students=0, **rates),))
    four = Arm("4t4s", (run(population__students=4, **rates),))
    words = "Those who solve learn at different rates: single 0.001, 4t4s 0.002."
    assert words in differences([single, four]).warnings
    rates["population__agent_lr"] = 0.002
    single = Arm("single", (run(population__students=0, **rates),))
    four = Arm("4t4s", (run(population__students=4, **rates),))
    assert differences([single, four]).warnings == []


def test_seeds_that_are_not_alike_and_a_seed_twice() -> None:
    seeds = run("x", student_lr=1), run("y", student_lr=2)
    found = differences([Arm("a", seeds), Arm("b", (run(student_lr=1),))])
    assert "The seeds of a are not alike: student_lr." in found.warnings
    assert "a has one seed twice: its runs are not independent." in found.warnings
    assert found.rows[0].values == ("1 / 2", "1")


def test_a_stopped_run_and_unequal_steps() -> None:
    short = Run(
        Path("short"), None, {5: {"actor/entropy": 0.5}}, SAME | {"run.steps": 9}, {"torch": "2.7"}
    )
    long = Run(
        Path("long"), None, {9: {"actor/entropy": 0.5}}, SAME | {"run.steps": 9}, {"torch": "2.7"}
    )
    warnings = differences([Arm("a", (short,)), Arm("b", (long,))]).warnings
    assert "a, short: 5 of 9 steps are recorded; it goes on or was stopped." in warnings
    assert any("verdicts and budgets are taken at step 5" in warning for warning in warnings)
    new = Run(Path("new"), None, {}, SAME | {"run.steps": 9}, {"torch": "2.7"})
    warnings = differences([Arm("a", (new, long)), Arm("b", (long,))]).warnings
    assert any("at step 9, the last that all but those without any have" in w for w in warnings)


def test_what_a_log_does_not_tell_is_unknown() -> None:
    log = Run(Path("azr.log"), None, {3: {}}, {"base": "Qwen"}, {})
    warnings = differences([Arm("ours", (run(),)), Arm("stock", (log,))]).warnings
    (unknown,) = [warning for warning in warnings if "unknown" in warning]
    assert unknown.startswith("Not recorded by stock, so unknown: budget (rows per member,")
    assert unknown.endswith("; exam; rules of tasks and referee; versions of the software.")
    assert "Different base model: base (nano, Qwen)." in warnings
    assert not any("population.rows" in warning for warning in warnings)


def test_a_setting_that_older_runs_lack_is_unknown_and_no_difference() -> None:
    newer = run(matchmaking__forfeit=True, evolution__options__dare__p=0.5)
    found = differences([Arm("old", (run(),)), Arm("new", (newer,))])
    assert [(row.key, row.values) for row in found.rows] == [
        ("evolution.options.dare.p", ("-", "0.5"))
    ]
    assert found.warnings == [
        "Played before the setting matchmaking.forfeit existed, so its value is unknown: old."
    ]


def test_settings_of_one_kind_of_run_are_no_different_budget() -> None:
    log = Run(Path("azr.log"), None, {1: {"a/b": 1.0}}, {"azr.reward.n_samples": "8"}, {})
    found = differences([Arm("stock", (log,)), Arm("ours", (run(population__attempts=8),))])
    assert found.rows == []
    assert not any("Different budget" in one for one in found.warnings)
    assert not any("budget" in words for words in found.same)
    other = Run(Path("b.log"), None, {1: {"a/b": 1.0}}, {"azr.reward.n_samples": "4"}, {})
    (row,) = differences([Arm("stock", (log,)), Arm("other", (other,))]).rows
    assert (row.group, row.values) == ("budget", ("8", "4"))
