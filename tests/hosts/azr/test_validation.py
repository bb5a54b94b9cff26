"""Which students take AZR's validation, and which becomes members/best."""

from types import SimpleNamespace

import needs
import pytest

pytestmark = pytest.mark.azr


@pytest.mark.parametrize(
    ("which", "step", "asked", "best"),
    [
        ("best", 8, [1], {"student_1": 0.25}),
        ("last_all", 7, [1], {"student_1": 0.25}),
        ("last_all", 9, [0, 1], {"student_0": 0.5, "student_1": 0.25}),
        ("all", 3, [0, 1], {"student_0": 0.5, "student_1": 0.25}),
    ],
)
def test_students_take_the_validation(monkeypatch, which, step, asked, best):
    needs.from_azr("absolute_zero_reasoner.trainer.ppo.azr_ray_trainer")
    from azr_population.hosts.azr.trainer import PopulationTrainer
    from azr_population.runs.azr_log import VALIDATION

    students = [SimpleNamespace(name=f"student_{slot}", slot=slot) for slot in range(2)]
    trainer = object.__new__(PopulationTrainer)
    taken, rows, kept = [], [], []

    def validate(self):
        taken.append(self.group.default)
        return {f"{VALIDATION}math": (0.5, 0.25)[self.group.default], "other": 1}

    monkeypatch.setattr(PopulationTrainer.__mro__[1], "_validate", validate)
    trainer.settings = SimpleNamespace(validate_members=which)
    # AZR plays the steps below its total, and its count is one beyond the last at the end.
    trainer.group, trainer.total_training_steps = SimpleNamespace(default=0), 9
    trainer.global_steps = step
    trainer._validated_at, trainer._validated = -1, {}
    trainer.population = SimpleNamespace(
        step=step, best_student=lambda: students[1], roster=SimpleNamespace(students=students)
    )
    trainer.directory = SimpleNamespace(append=lambda _, lines: rows.extend(lines))
    trainer._folders = SimpleNamespace(keep_best=kept.append)
    # AZR logs the figures of the student with the best rating.
    assert trainer._validate()[f"{VALIDATION}math"] == 0.25
    assert taken == asked and kept == [best]
    assert trainer.group.default == 0  # who writes AZR's seed tasks
    assert [row["member"] for row in rows] == [students[slot].name for slot in asked]
    # AZR asks again after its last step, with the same members.
    trainer.global_steps = 9
    assert trainer._validate()[f"{VALIDATION}math"] == 0.25
    at_end = {"best": {1}, "last_all": {0, 1}, "all": {0, 1}}[which]
    assert (
        sorted(taken)
        == sorted({*asked, *at_end})
        == [int(r["member"][-1]) for r in sorted(rows, key=lambda r: r["member"])]
    )
    # Of whoever is the best: of another slot, too.
    trainer.population.best_student, trainer._validated_at = (lambda: students[0]), -1
    assert trainer._validate()[f"{VALIDATION}math"] == 0.5
