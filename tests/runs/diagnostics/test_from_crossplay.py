"""What a cross-play that lies in a run says of it."""

import json

from azr_population.runs import RunDirectory
from azr_population.runs.diagnostics import series


def test_slopes_stand_at_the_last_step_and_damage_is_nothing(tmp_path):
    run = RunDirectory(tmp_path)
    (tmp_path / "metrics.jsonl").write_text('{"step":1}\n{"step":50}\n')
    assert series(run, "student_slope") == []
    (tmp_path / "crossplay.json").write_text(json.dumps({"slopes": {"student": 0.1}}))
    assert series(run, "student_slope") == [(50, 0.1)]
    assert series(run, "teacher_slope") == []
    (tmp_path / "crossplay.json").write_text('{"slopes": {"student"')
    assert series(run, "student_slope") == []


def test_fitness_and_skill_are_correlated_over_the_students_of_a_step(tmp_path):
    members = {
        name: {"role": "student", "mu": mu, "sigma": 1.0}
        for name, mu in (("student_0", 20.0), ("student_1", 25.0), ("student_2", 30.0))
    }

    def scores(*values):
        return dict(zip(members, values, strict=True))

    rows = [
        {"step": 1, "members": members, "exam": {"members": dict.fromkeys(members, 0.5)}},
        {"step": 2, "members": members, "exam": None},
        {
            "step": 3,
            "members": members,
            "exam": {"members": scores(3, 2, 1)},
        },
        {
            "step": 4,
            "members": members,
            "exam": {"members": scores(1, 3, 2)},
        },
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = RunDirectory(tmp_path)
    assert [(step, round(r, 6)) for step, r in series(run, "fitness_skill")] == [
        (3, -1.0),
        (4, 0.5),
    ]
