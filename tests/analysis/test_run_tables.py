from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from azr_population.analysis import run_tables, tasks
from azr_population.domains.code.domain import Code
from azr_population.runs import RunDirectory, diagnostics


def test_consumption_is_told_per_role_and_member(write_run: Callable[..., Path]) -> None:
    page = run_tables.fairness_table(diagnostics.consumption(RunDirectory(write_run())))
    assert "teacher, mean of 4" in page
    assert "36,000" in page  # 12 steps of 3,000 tokens
    assert "2,304" in page
    assert "Each of the 8 members" in page
    assert "Evals are not counted in the seconds" in page
    assert run_tables.fairness_table({}).startswith('<p class="empty">')


def test_how_far_the_sampler_was_from_the_learner_is_told_per_member() -> None:
    def step(kl: float | None, ess: float) -> dict[str, Any]:
        return {
            "members": {
                "student_0": {"role": "student", "sampler_kl": kl, "sampler_ess": ess,
                              "sampler_capped": 0.001},
                "teacher_0": {"role": "teacher", "updates": 0.0},
            }
        }  # fmt: skip

    page = run_tables.sampler_table([step(0.002, 0.98), step(0.004, 0.96), step(None, 0.0)])
    cells = ["3.0e-03", "97.0%", "0.10%", "4.0e-03"]
    assert "".join(f'<td class="number">{cell}</td>' for cell in cells) in page
    assert "student_0" in page and "teacher_0" not in page
    assert run_tables.sampler_table([step(None, 0.5)]) == run_tables.sampler_table([]) == ""


def test_what_is_unknown_of_an_operator_is_a_dash() -> None:
    others = {"operator": "layer_wise", "born": 5, "judged": 4, "passed": 3}
    unknown = {"operator": "da<re", "born": 2, "judged": 1, "mean_rank": None}
    page = run_tables.operator_table([unknown, others, {"operator": "x<y", "born": 1}], ready=8)
    assert "So far 5 were judged and 3 passed. No child judged yet: x&lt;y (1)." in page
    assert page.count("<tr>") == 3
    assert "da&lt;re" in page
    assert '<td class="number">-</td>' in page


def test_credit_that_nobody_has_earned_yet_is_one_sentence() -> None:
    credit = [{"operator": name, "born": born, "judged": 0} for name, born in (("a", 3), ("b", 1))]
    page = run_tables.operator_table(credit, ready=20.0)
    assert "<table" not in page and "<td" not in page
    assert "4 children of 2 operators, and none has met a replacement" in page
    assert "(20 steps, evolution.grace_period)" in page
    assert run_tables.operator_table([], ready=20.0) == ""


def test_attempts_are_counted_by_verdict() -> None:
    task: dict[str, Any] = {
        "type": "code_o",
        "answers": ["1", "2", None],
        "solved": [True, False, False],
        "reasons": ["solved", "wrong", "unparsable"],
        "solve_rate": 1 / 3,
    }
    page = tasks.hardest([task], "", Code())
    assert "33% solved" in page
    for chip in ("✓ 1 solved", "✗ 1 wrong", "✗ 1 unparsable"):
        assert chip in page
    assert "nothing that parses" in page
    assert "No attempt is recorded" in tasks.hardest([{}], "", Code())
    assert "Nobody did." in tasks.hardest([], "Nobody did.", Code())


def test_a_member_without_a_rating_has_dashes() -> None:
    members = {"agent_0": {"role": "agent"}, "student_0": {"mu": 25.14, "sigma": 0.42}}
    page = run_tables.member_table([{"step": 1, "members": members}], [])
    assert page.count('<td class="number">25.1 ± 0.4</td>') == 1
    assert "- ± -" not in page


def test_who_was_born_at_the_last_step_has_played_nothing() -> None:
    played = {"role": "student", "reward": 0.25, "validity": 0.5, "solve_rate": 0.75}
    metrics = [{"step": 9, "members": {"student_0": played, "student_1": played}}]
    births = [
        {"step": step, "child": child, "operator": "dare"}
        for step, child in ((5, "student_0"), (9, "student_1"))
    ]
    page = run_tables.member_table(metrics, births)
    assert [page.count(shown) for shown in ("+0.25", "50%", "75%")] == [1, 1, 1]
    assert 'student_1 <span class="unplayed">unplayed</span>' in page
    assert page.count('class="unplayed"') == 1
    assert "Unplayed: born at the end of the last step." in page
    assert "Unplayed" not in run_tables.member_table(metrics, births[:1])
