from __future__ import annotations

from collections.abc import Callable
from typing import Any

from azr_population.analysis.family_tree import family, replacements
from azr_population.runs.records import metrics_of_members, role_of

MEMBERS = [{"name": f"student_{i}", "role": "student"} for i in range(3)]


def birth(step: int, child: str, *parents: str, operator: str = "dare") -> dict[str, Any]:
    return {
        "step": step,
        "child": child,
        "generation": 1,
        "parents": list(parents),
        "operator": operator,
        "options": {},
        "victim": 4.5,
    }


def people(lineage: list[dict[str, Any]]) -> list[dict[str, Any]]:
    (tree,) = family(lineage, MEMBERS)
    found: list[dict[str, Any]] = tree["people"]
    return found


def test_a_child_takes_the_slot_and_the_founder_of_its_first_parent() -> None:
    victim, parent, other, child = people([birth(5, "student_0", "student_1", "student_2")])
    assert (victim["died"], victim["fitness"], victim["heirs"]) == (5, 4.5, 0)
    assert (child["name"], child["born"], child["died"]) == ("student_0", 5, None)
    assert child["parents"] == [parent["id"], other["id"]]
    assert (child["founder"], parent["heirs"], other["heirs"]) == (1, 1, 1)


def test_parents_are_who_lived_before_the_step() -> None:
    lineage = [birth(5, "student_0", "student_1"), birth(5, "student_1", "student_0")]
    found = people(lineage)
    # The second child's parent is the founder of slot 0, not the child just born there.
    assert found[4]["parents"] == [0]
    assert found[3]["parents"] == [1]


def test_children_stand_beside_their_parent_the_latest_nearest() -> None:
    lineage = [birth(step, "student_0", "student_1") for step in (5, 10, 15, 20)]
    rows = {person["id"]: person["row"] for person in people(lineage)}
    # Founder 1 has children 3 to 6: 3 and 5 above it, 6 and 4 below it.
    assert sorted(rows, key=lambda id: rows[id]) == [0, 3, 5, 1, 6, 4, 2]


def test_of_too_many_the_oldest_without_heirs_are_left_out() -> None:
    lineage = [birth(step, "student_0", "student_1") for step in range(1, 101)]
    (tree,) = family(lineage, MEMBERS, limit=20)
    assert tree["left_out"] == 83
    assert len(tree["people"]) == 20
    assert {person["born"] for person in tree["people"]} == {0, *range(84, 101)}


def test_a_line_deeper_than_the_stack() -> None:
    lineage = [birth(s, f"student_{s % 2}", f"student_{(s + 1) % 2}") for s in range(1, 5000)]
    (tree,) = family(lineage, MEMBERS, limit=10_000)
    assert len(tree["people"]) == 5002
    assert sorted(person["row"] for person in tree["people"]) == list(range(5002))


def test_unknown_parents_make_a_founder_and_unknown_slots_nothing() -> None:
    found = people([birth(5, "student_0", "student_9"), birth(6, "student_8", "student_1")])
    assert [person["parents"] for person in found] == [[], [], [], []]
    assert found[3]["founder"] == 3


def test_a_role_without_replacements_has_no_tree(made_up_run: Callable[..., Any]) -> None:
    run = made_up_run(steps=10)
    trees = family(
        replacements(run["lineage"]),
        [{"name": n, "role": role_of(n)} for n in metrics_of_members(run["metrics"][0])],
    )
    assert [tree["role"] for tree in trees] == ["student"]
    assert family([], MEMBERS) == []
