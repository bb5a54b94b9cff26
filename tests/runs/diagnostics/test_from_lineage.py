from __future__ import annotations

from collections.abc import Callable
from typing import Any

from azr_population.runs.diagnostics import series
from azr_population.runs.directory import RunDirectory

Write = Callable[..., RunDirectory]


def steps(count: int, students: int = 3) -> list[dict[str, Any]]:
    members = {f"student_{i}": {"role": "student"} for i in range(students)}
    members |= {f"teacher_{i}": {"role": "teacher"} for i in range(2)}
    return [{"step": step, "members": members} for step in range(1, count + 1)]


def birth(step: int, child: str, *parents: str) -> dict[str, Any]:
    return {"step": step, "child": child, "parents": list(parents), "operator": "clone"}


def test_founders_are_strangers(write: Write) -> None:
    run = write(metrics=steps(2), lineage=[])
    assert series(run, "related_pairs") == [(1, 0.0), (2, 0.0)] == series(run, "descent_depth")
    assert series(run, "ancestor_age") == []


def test_a_child_parts_from_its_parent_at_birth(write: Write) -> None:
    run = write(metrics=steps(4), lineage=[birth(2, "student_2", "student_0")])
    assert series(run, "related_pairs") == [(1, 0.0), (2, 1 / 3), (3, 1 / 3), (4, 1 / 3)]
    assert series(run, "ancestor_age", "student") == [(2, 0.0), (3, 1.0), (4, 2.0)]
    assert series(run, "descent_depth") == [(1, 0.0), (2, 1 / 3), (3, 1 / 3), (4, 1 / 3)]
    assert series(run, "related_pairs", "teacher") == [(1, 0.0), (2, 0.0), (3, 0.0), (4, 0.0)]


def test_a_line_goes_on_through_the_place_of_a_dead_member(write: Write) -> None:
    """student_1 carries on student_0, whose own place then goes to a stranger's child."""
    lineage = [birth(2, "student_1", "student_0"), birth(5, "student_0", "student_2")]
    run = write(metrics=steps(6), lineage=lineage)
    assert dict(series(run, "related_pairs"))[6] == 1 / 3
    assert dict(series(run, "ancestor_age"))[6] == 1.0


def test_a_crossover_is_related_to_both_parents_and_to_their_kin(write: Write) -> None:
    lineage = [birth(2, "student_1", "student_0"), birth(4, "student_2", "student_1", "student_2")]
    run = write(metrics=steps(6), lineage=lineage)
    # 0 and 1 parted in step 2, 1 and 2 in step 4, and 0 and 2 where 0 and 1 did.
    assert dict(series(run, "ancestor_age"))[6] == (4 + 2 + 4) / 3
    assert dict(series(run, "descent_depth"))[6] == (0 + 1 + 2) / 3


def test_twins_parted_in_the_step_of_their_birth(write: Write) -> None:
    lineage = [birth(3, "student_1", "student_0"), birth(3, "student_2", "student_0")]
    run = write(metrics=steps(3), lineage=lineage)
    assert series(run, "ancestor_age") == [(3, 0.0)]
    assert dict(series(run, "related_pairs"))[3] == 1.0


def test_what_names_nobody_is_left_out(write: Write) -> None:
    lineage = [birth(1, "student_9", "student_0"), birth(1, "student_1", "teacher_0")]
    run = write(metrics=steps(1), lineage=[*lineage, {"step": 1, "child": "student_1"}])
    assert series(run, "related_pairs") == [(1, 0.0)]
    assert series(write(name="one", metrics=steps(1, students=1)), "related_pairs") == []


def test_founders_are_counted_while_anybody_descends_from_them(write: Write) -> None:
    lineage = [birth(2, "student_1", "student_0"), birth(4, "student_0", "student_1", "student_2")]
    run = write(metrics=steps(5), lineage=lineage)
    # Of 0, 1, 2 the second has no descendant from step 2 on; 0 lives on in 1, and in its own place.
    assert series(run, "founders") == [(1, 1.0), *((step, 2 / 3) for step in (2, 3, 4, 5))]
    assert series(run, "founders", "teacher")[-1] == (5, 1.0)
