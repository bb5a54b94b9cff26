"""The family tree: every individual with its parents, its operator and what became of it.

A member is named after its slot; an individual is what held the slot between two replacements.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby

import altair as alt
import pandas as pd
from markupsafe import Markup

from azr_population.analysis import charts
from azr_population.analysis.html import embed, format_number
from azr_population.runs.records import Birth

MAX_INDIVIDUALS = 260
"""Individuals drawn per role; beyond that, the oldest without children are left out."""


@dataclass
class Individual:
    """Somebody in the tree; parents and founder by their ids."""

    id: int
    name: str
    founder: int
    """The first ancestor along first parents."""
    born: int = 0
    parents: tuple[int, ...] = ()
    generation: int = 0
    operator: str = "start"
    options: str = ""
    children: int = 0
    died: int | None = None
    """The step at which it was replaced; None while it lives."""
    fitness: float | None = None
    """When it was replaced."""


def individuals(born: Iterable[Birth], names: Sequence[str]) -> list[Individual]:
    """All individuals of a role, the founders `names` first; the id is the place in the list."""
    people = [Individual(i, name, i) for i, name in enumerate(names)]
    living = dict(zip(names, people, strict=True))
    rows = sorted((birth for birth in born if birth.child in living), key=lambda birth: birth.step)
    for step, born_together in groupby(rows, key=lambda birth: birth.step):
        # Parents lived before the step, even if they are replaced in it themselves.
        before = dict(living)
        for birth in born_together:
            parents = [before[name] for name in dict.fromkeys(birth.parents) if name in before]
            id = len(people)
            founder = parents[0].founder if parents else id
            ids = tuple(parent.id for parent in parents)
            for parent in parents:
                parent.children += 1
            victim = living[birth.child]
            victim.died, victim.fitness = step, birth.victim
            living[victim.name] = Individual(
                id, victim.name, founder, step, ids, birth.generation, birth.operator, birth.options
            )
            people.append(living[victim.name])
    return people


def prune(people: Sequence[Individual], limit: int) -> list[Individual]:
    """At most `limit` people; the living, founders and those with children go last."""
    spare = [p.id for p in people if p.died is not None and not p.children and p.parents]
    removed = set(spare[: max(0, len(people) - limit)])
    return [person for person in people if person.id not in removed]


def drawing_order(people: Sequence[Individual]) -> list[int]:
    """Ids from top to bottom: children around their first parent, the latest born nearest to it.

    The line from a parent to a child is drawn at the child's birth, so it crosses no older row.
    Children go above and below the parent in turn.
    """
    children: dict[int | None, list[int]] = {}
    for person in people:
        children.setdefault(next(iter(person.parents), None), []).append(person.id)
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


def family_trees(born: Sequence[Birth], roles: Mapping[str, str], last: int) -> list[Markup]:
    """A figure for each role that has a replacement."""
    figures = []
    operators = sorted({"start", *(birth.operator for birth in born)})
    for role in dict.fromkeys(roles.values()):
        names = [name for name in roles if roles[name] == role]
        people = individuals(born, names)
        if len(people) > len(names):
            figures.append(_figure(role, people, prune(people, MAX_INDIVIDUALS), last, operators))
    return figures


def _figure(
    role: str,
    people: Sequence[Individual],
    drawn: Sequence[Individual],
    last: int,
    operators: Sequence[str],
) -> Markup:
    rows = {id: row for row, id in enumerate(drawing_order(drawn))}
    kin = _kin(drawn)
    lines = pd.DataFrame(
        {
            **asdict(person),
            "row": rows[person.id],
            "end": last if person.died is None else person.died,
            "alive": person.died is None,
            "parents": " and ".join(people[id].name for id in person.parents),
            "founder": people[person.founder].name,
            "fate": _fate(person, last),
            "kind": ("founder", "one parent", "two parents")[min(2, len(person.parents))],
            "kin": kin[person.id],
        }
        for person in drawn
    )
    labelled = lines.loc[lines["alive"], "row"].sort_values()
    gap = 12 * len(lines) / _height(len(lines))
    lines["label_row"] = lines["row"].astype(float)
    lines.loc[labelled.index, "label_row"] = charts.spread(labelled, gap, -0.5, len(lines) - 1.0)
    links = [
        {"born": person.born, "row": rows[person.id], "from_row": rows[parent]}
        | {"kin": kin[person.id], "second": index > 0}
        for person in drawn
        for index, parent in enumerate(person.parents)
    ]
    living = [person for person in people if person.died is None]
    founders = len({person.founder for person in living})
    note = f"{len(people)} individuals; the {len(living)} alive descend from "
    note += f"{founders} founder{'s' if founders > 1 else ''}"
    if hidden := len(people) - len(drawn):
        note += f"; {hidden} replaced without children are not drawn"
    chart = tree_chart(lines, pd.DataFrame(links), last, operators)
    return embed(chart, f"{role.capitalize()}s", note, "wide")


def tree_chart(
    people: pd.DataFrame, links: pd.DataFrame, last: int, operators: Sequence[str]
) -> charts.Chart:
    """Every individual of a role as a line from its birth to its replacement.

    Args:
        people: `id`, `row`, `name`, `generation`, `born`, `end`, `alive`, `operator`, `options`,
            `parents`, `founder` (names), `children`, `fate`, `kind` (founder, one parent, two
            parents) and `kin`: the ids of it, its ancestors and descendants between commas.
        links: `born`, `row`, `from_row`, `kin`, `second` (from the second parent).
        last: the last step.
        operators: of all trees of the page, so that each has one colour.
    """
    who = alt.selection_point(
        "who", fields=["id"], on="pointerover", clear="pointerout", empty=True
    )
    by = alt.param("shade", value="operator")
    kin = alt.when("!isValid(who.id) || indexof(datum.kin, ',' + who.id[0] + ',') >= 0")
    faint = kin.then(alt.value(1)).otherwise(alt.value(0.12))
    tooltips = ["name", "generation", "born", "operator", "options", "parents", "children", "fate"]
    x = charts.step_axis("born").scale(domain=[0, last], nice=False)
    rows = alt.Scale(domain=[-0.7, float(people["row"].max()) + 0.7], reverse=True)
    y = alt.Y("row:Q", axis=None, scale=rows)
    base = (
        alt.Chart(people)
        .transform_calculate(colour="shade == 'founder' ? datum.founder : datum.operator")
        .encode(x=x, y=y, opacity=faint, tooltip=[alt.Tooltip(f"{name}:N") for name in tooltips])
    )
    used = {shade: sorted(set(people[shade])) for shade in ("operator", "founder")}
    colour = alt.Color(
        "colour:N",
        legend=alt.Legend(
            symbolType="square",
            columns=charts.legend_columns([*used["operator"], *used["founder"]]),
            values=alt.ExprRef(f"{json.dumps(used)}[shade]"),
        ),
    ).scale(domain=[*operators, *used["founder"]])
    shapes = ["founder", "one parent", "two parents"]
    shape = alt.Shape("kind:N", legend=None).scale(
        domain=shapes, range=["square", "circle", "diamond"]
    )
    alive = base.transform_filter("datum.alive")
    descent = alt.Chart(links).encode(
        x=x,
        y=alt.Y("from_row:Q", axis=None, scale=rows),
        y2="row:Q",
        opacity=faint,
        strokeDash=alt.when("datum.second").then(alt.value([3, 3])).otherwise(alt.value([1, 0])),
    )
    chart: charts.Chart = alt.layer(
        descent.mark_rule(color=charts.SOFT),
        base.mark_rule(strokeWidth=2.25).encode(x2="end:Q", color=colour),
        base.transform_filter("!datum.alive")
        .mark_point(shape="M-.5,-.5L.5,.5M.5,-.5L-.5,.5", size=40, color=charts.SOFT)
        .encode(x=alt.X("end:Q")),
        alive.mark_circle(size=60, stroke=charts.CARD).encode(x="end:Q", color=colour),
        alive.mark_text(align="left", dx=8, fontSize=11, color=charts.INK)
        .encode(x="end:Q", y=alt.Y("label_row:Q", axis=None, scale=rows), text="label:N")
        .transform_calculate(label="datum.name + ' g' + datum.generation"),
        base.mark_point(filled=True, size=70, stroke=charts.CARD, opacity=1)
        .encode(shape=shape, color=colour)
        .add_params(who),
        width="container",
        height=_height(len(people)),
        padding={"right": 90, "left": 4, "top": 4, "bottom": 4},
    )
    return chart.add_params(by)


def _height(people: int) -> int:
    """Pixels of a tree."""
    return max(120, min(640, 16 * people))


def _kin(people: Sequence[Individual]) -> dict[int, str]:
    """The ids of each individual, its ancestors and descendants, between commas, by its id."""
    kin = {person.id: {person.id} for person in people}
    for person in people:  # parents are older: they come first
        for parent in person.parents:
            kin[person.id] |= kin[parent]
    for id, ancestors in [(id, set(ids)) for id, ids in kin.items()]:
        for ancestor in ancestors:
            kin[ancestor].add(id)
    return {id: f",{','.join(map(str, sorted(ids)))}," for id, ids in kin.items()}


def _fate(person: Individual, last: int) -> str:
    if person.died is None:
        return "alive, has not played yet" if person.born == last and last else "alive"
    fitness = "" if person.fitness is None else f", fitness {format_number(person.fitness, False)}"
    return f"replaced at step {person.died}{fitness}"
