"""The family tree: every individual with its parents, its operator and what became of it.

A member is named after its slot; an individual is what held the slot between two replacements.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
from markupsafe import Markup

from azr_population.analysis import charts
from azr_population.analysis.html import embed, figure
from azr_population.runs.records import Record, number

MAX_INDIVIDUALS = 260
"""Individuals drawn per role; beyond that, the oldest without heirs are left out."""


def replacements(children: Iterable[Record]) -> list[dict[str, Any]]:
    """The run's replacements with what the family tree and the table need."""
    return [
        {
            "step": int(child["step"]),
            "child": str(child["child"]),
            "generation": child.get("generation"),
            "parents": [str(name) for name in child.get("parents") or ()],
            "operator": str(child.get("operator", "?")),
            "options": {str(k): str(v) for k, v in (child.get("options") or {}).items()},
            "victim": number((child.get("fitness") or {}).get("victim")),
        }
        for child in children
        if number(child.get("step")) is not None and "child" in child
    ]


def family_trees(lineage: Sequence[Record], roles: Mapping[str, str], last: int) -> list[Markup]:
    """A figure for each role that has a replacement."""
    members = [{"name": name, "role": role} for name, role in roles.items()]
    return [_figure(tree, last) for tree in family(lineage, members)]


def _figure(tree: Mapping[str, Any], last: int) -> Markup:
    people = {person["id"]: person for person in tree["people"]}
    parents = {id: [p for p in person["parents"] if p in people] for id, person in people.items()}
    kin = {id: {id} for id in people}
    for id in sorted(people):  # parents are older: their ids are smaller
        for parent in parents[id]:
            kin[id] |= {one for one in kin[parent] if one <= parent}
    for id in people:
        for ancestor in [one for one in kin[id] if one < id]:
            kin[ancestor] = kin[ancestor] | {id}

    def near(id: int) -> str:
        return f",{','.join(map(str, sorted(kin[id])))},"

    rows, links = [], []
    for id, person in people.items():
        alive, born = person["died"] is None, person["born"]
        fate = "alive" if alive else f"replaced at step {person['died']}"
        if person["fitness"] is not None:
            fate += f", fitness {figure(person['fitness'], 'number')}"
        rows.append(
            {
                "id": id,
                "row": person["row"],
                "name": person["name"],
                "generation": person["generation"] or 0,
                "born": born,
                "end": last if alive else person["died"],
                "alive": alive,
                "operator": person["operator"],
                "options": ", ".join(f"{k}={v}" for k, v in person["options"].items()),
                "parents": " and ".join(people[p]["name"] for p in parents[id]),
                "founder": people[person["founder"]]["name"]
                if person["founder"] in people
                else "?",
                "children": person["heirs"],
                "fate": "alive, has not played yet" if alive and born == last and last else fate,
                "kind": ("founder", "one parent", "two parents")[min(2, len(parents[id]))],
                "kin": near(id),
            }
        )
        links += [
            {"born": born, "row": person["row"], "from_row": people[parent]["row"]}
            | {"kin": near(id), "second": place > 0}
            for place, parent in enumerate(parents[id])
        ]
    for row, place in zip(rows, _label_rows(rows), strict=True):
        row["label_row"] = place
    living = [person for person in people.values() if person["died"] is None]
    founders = len({person["founder"] for person in living})
    note = f"{len(people) + tree['left_out']} individuals; the {len(living)} alive descend from "
    note += f"{founders} founder{'s' if founders > 1 else ''}"
    if tree["left_out"]:
        note += f"; {tree['left_out']} replaced without children are not drawn"
    chart = charts.family_tree(pd.DataFrame(rows), pd.DataFrame(links), last)
    return embed(chart, f"{tree['role'].capitalize()}s", note, "wide")


def _label_rows(rows: Sequence[Mapping[str, Any]]) -> list[float]:
    """Where the names of the living stand, in rows: below each other without overlap."""
    gap = 12 * len(rows) / charts.tree_height(len(rows))
    places = {at: float(rows[at]["row"]) for at in range(len(rows))}
    living = sorted((at for at in places if rows[at]["alive"]), key=places.__getitem__)
    lowest = len(rows) - 1.0
    for at in reversed(living):  # up from the end, so that none falls below the plot
        places[at] = min(places[at], lowest)
        lowest = places[at] - gap
    highest = -0.5
    for at in living:
        places[at] = max(places[at], highest)
        highest = places[at] + gap
    return [places[at] for at in range(len(rows))]


def family(
    lineage: Sequence[Record], members: Sequence[Mapping[str, str]], limit: int = MAX_INDIVIDUALS
) -> list[dict[str, Any]]:
    """One tree per role that has a replacement: `{"role", "left_out", "people"}`.

    Args:
        lineage: the replacements as `replacements` gives them.
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
