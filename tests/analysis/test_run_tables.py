from azr_population.analysis import run_tables
from azr_population.analysis.html import render
from azr_population.reading.tidy import tidy
from azr_population.runs.records import Birth


def test_who_was_born_at_the_last_step_has_played_nothing():
    played = {"reward": 0.25, "valid_frac": 0.5, "solve_rate": 0.75}
    metrics = [{"step": 9, **{f"student_{i}/{k}": v for i in (0, 1) for k, v in played.items()}}]
    births = [
        Birth(step, child, operator="dare") for step, child in ((5, "student_0"), (9, "student_1"))
    ]
    first, second = run_tables.members_now(metrics, births)
    results = ("reward", "valid_frac", "solve_rate", "unplayed")
    assert [first[key] for key in results] == [0.25, 0.5, 0.75, False]
    assert [second[key] for key in results] == [None, None, None, True]
    page = render("members.html.j2", members_now=[first, second])
    assert [page.count(shown) for shown in ("+0.25", "50%", "75%")] == [1, 1, 1]
    assert 'student_1 <span class="unplayed">unplayed</span>' in page


def test_totals_per_member():
    expected = {
        "teacher_0/generated_tokens": 300, "teacher_0/trained_tokens": 300,
        "student_0/generated_tokens": 100, "student_0/trained_tokens": 50,
        "student_1/generated_tokens": 200, "student_1/trained_tokens": 50,
        "student_1/updates": 1, "student_1/trained_samples": 48,
    }  # fmt: skip
    steps = [
        {"step": 1, "time/step": 6.0, "time/eval": 1.0, **expected},
        {"step": 2, "time/step": 5.0},
    ]
    used = run_tables.consumption(tidy([steps[0], {**steps[1], **expected}]))
    assert list(used.index) == ["student_0", "student_1", "teacher_0"]
    totals = used.loc["student_1"].to_dict()
    # 250 of the 1000 tokens generated or trained on, of 10 seconds.
    assert (totals["seconds"], totals["steps"], totals["updates"]) == (2.5, 2, 2)
    assert (totals["role"], totals["trained_samples"], totals["rollouts"]) == ("student", 96, 0)
    assert used["seconds"].sum() == 10.0
    assert run_tables.consumption(tidy([{"step": 1, "agent_0/reward": 1.0}]))["seconds"].sum() == 0
