"""Who descends from whom: depth of descent, when two lines parted, which founders are left."""

from collections.abc import Mapping
from itertools import combinations

from azr_population.domains.measure import Measure
from azr_population.runs.diagnostics.catalogue import reads
from azr_population.runs.diagnostics.statistics import Series
from azr_population.runs.directory import RunDirectory
from azr_population.runs.records import Record, mean, roles_of, step_of, steps_of


class Descent:
    """The members of one role as they stand, step by step."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.depth = dict.fromkeys(names, 0)
        """Births between a member and the founder that it is furthest from."""
        self.founders = {name: {name} for name in names}
        """Those that a member descends from."""
        self._parted: dict[frozenset[str], int] = {}

    def parted(self, one: str, other: str) -> int | None:
        """The last step at which the two had an ancestor in common; None: they never had."""
        return self._parted.get(frozenset((one, other)))

    def pass_step(self, step: int, births: Mapping[str, set[str]]) -> None:
        """Puts children (name -> names of their parents, as they were before) in their places."""

        def origins(name: str) -> set[str]:
            return births.get(name, {name})

        def last_common(one: str, other: str) -> int | None:
            if origins(one) & origins(other):
                return step
            known = [self.parted(a, b) for a in origins(one) for b in origins(other)]
            return max((time for time in known if time is not None), default=None)

        pairs = {pair: last_common(*pair) for pair in combinations(self.names, 2)}
        self.depth |= {
            child: 1 + max(self.depth[parent] for parent in parents)
            for child, parents in births.items()
        }
        self.founders |= {
            child: set().union(*(self.founders[parent] for parent in parents))
            for child, parents in births.items()
        }
        self._parted = {frozenset(pair): time for pair, time in pairs.items() if time is not None}


def _depth(descent: Descent, step: int) -> float | None:
    return mean(descent.depth.values())


def _related(descent: Descent, step: int) -> float | None:
    return mean(float(descent.parted(*pair) is not None) for pair in combinations(descent.names, 2))


def _founders(descent: Descent, step: int) -> float | None:
    return len(set().union(*descent.founders.values())) / len(descent.names)


def _age(descent: Descent, step: int) -> float | None:
    times = (descent.parted(*pair) for pair in combinations(descent.names, 2))
    return mean(float(step - time) for time in times if time is not None)


_OF_DESCENT = {
    "descent_depth": _depth,
    "related_pairs": _related,
    "ancestor_age": _age,
    "founders": _founders,
}


@reads(*_OF_DESCENT)
def _by_role(run: RunDirectory, measure: Measure) -> dict[str, Series]:
    """The measure after each step, of every role with two members or more; `""` is the students."""
    value = _OF_DESCENT[measure.name]
    roles = roles_of(run)
    births = _births(run, roles)
    series: dict[str, Series] = {}
    for role in dict.fromkeys(roles.values()):
        descent = Descent([name for name in roles if roles[name] == role])
        if len(descent.names) < 2:
            continue
        for step in (record["step"] for record in steps_of(run)):
            of_role = {c: p for c, p in births.get(step, {}).items() if roles[c] == role}
            descent.pass_step(step, of_role)
            if (known := value(descent, step)) is not None:
                series.setdefault(role, []).append((step, known))
    if "student" in series:
        series[""] = series["student"]
    return series


def _births(run: RunDirectory, roles: Mapping[str, str]) -> dict[int, dict[str, set[str]]]:
    """By step: each child's parents. What names nobody of the child's own role is left out."""
    births: dict[int, dict[str, set[str]]] = {}
    for row in run.lineage():
        child, parents, step = str(row.get("child")), _parents(row, roles), step_of(row)
        if child in roles and parents and step is not None:
            births.setdefault(step, {})[child] = parents
    return births


def _parents(row: Record, roles: Mapping[str, str]) -> set[str]:
    role = roles.get(str(row.get("child")))
    return {str(name) for name in row.get("parents") or () if roles.get(str(name)) == role}
