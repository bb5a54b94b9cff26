"""The family tree: every individual with its parents, its operator and what became of it.

A member is named after its slot; an individual is what held the slot between two replacements.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from azr_population.runs.records import Record

MAX_INDIVIDUALS = 260
"""Individuals drawn per role; beyond that, the oldest without heirs are left out."""


def family(
    lineage: Sequence[Record], members: Sequence[Mapping[str, str]], limit: int = MAX_INDIVIDUALS
) -> list[dict[str, Any]]:
    """One tree per role that has a replacement: `{"role", "left_out", "people"}`.

    Args:
        lineage: the replacements as `charts.lineage` gives them.
        members: `{"name", "role"}` of every slot.

    A person is `{"id", "name", "generation", "born", "died", "operator", "options", "parents",
    "founder", "heirs", "fitness", "row"}`: `died` is null while it lives, `parents` are ids,
    `founder` is the id of the first ancestor along first parents, `heirs` counts direct children,
    `fitness` is its fitness when it was replaced, `row` its place in the drawing.
    """
    trees = []
    for role in dict.fromkeys(member["role"] for member in members):
        people = _individuals(
            lineage, [member["name"] for member in members if member["role"] == role]
        )
        if all(person["operator"] == "start" for person in people):
            continue
        kept = _pruned(people, limit)
        for row, id in enumerate(_rows(kept)):
            people[id]["row"] = row
        trees.append({"role": role, "left_out": len(people) - len(kept), "people": kept})
    return trees


def _individuals(lineage: Sequence[Record], names: Sequence[str]) -> list[dict[str, Any]]:
    """All individuals of a role; a person's id is its index in the list."""
    people = [_person(i, name) for i, name in enumerate(names)]
    living = {name: i for i, name in enumerate(names)}
    by_step: dict[int, list[Record]] = {}
    for row in lineage:
        if row["child"] in living:
            by_step.setdefault(row["step"], []).append(row)
    for step in sorted(by_step):
        # Parents lived before the step, even if they are replaced in it themselves.
        before = dict(living)
        for row in by_step[step]:
            parents = list(dict.fromkeys(before[name] for name in row["parents"] if name in before))
            told = {key: row[key] for key in ("generation", "operator", "options")}
            child = _person(len(people), row["child"], born=step, parents=parents, **told)
            if parents:
                child["founder"] = people[parents[0]]["founder"]
            for parent in parents:
                people[parent]["heirs"] += 1
            victim = people[living[row["child"]]]
            victim["died"], victim["fitness"] = step, row["victim"]
            living[row["child"]] = child["id"]
            people.append(child)
    return people


def _person(id: int, name: str, **known: Any) -> dict[str, Any]:
    """A founder, but for what is known of somebody else."""
    founder = {"id": id, "name": name, "generation": 0, "born": 0, "died": None}
    founder |= {"operator": "start", "options": {}, "parents": [], "founder": id}
    return {**founder, "heirs": 0, "fitness": None, "row": 0, **known}


def _pruned(people: list[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    """At most `limit` people; the living, founders and those with heirs go last."""
    spare = [p for p in people if p["died"] is not None and not p["heirs"] and p["parents"]]
    gone = {person["id"] for person in spare[: max(0, len(people) - limit)]}
    return [person for person in people if person["id"] not in gone]


def _rows(people: Sequence[Record]) -> list[int]:
    """Ids from top to bottom: children around their first parent, the latest born nearest to it.

    The line from a parent to a child is drawn at the child's birth, so it crosses no older row.
    Children go above and below the parent in turn.
    """
    children: dict[int | None, list[int]] = {}
    for person in people:
        children.setdefault(next(iter(person["parents"]), None), []).append(person["id"])
    order: list[int] = []
    # No recursion: a long run's tree is deeper than Python's stack.
    pending = [(id, False) for id in reversed(children.get(None, []))]
    while pending:
        id, opened = pending.pop()
        if opened:
            order.append(id)
            continue
        offspring = children.get(id, [])
        above, below = offspring[0::2], offspring[1::2][::-1]
        around = [*((c, False) for c in above), (id, True), *((c, False) for c in below)]
        pending += reversed(around)
    return order
