"""A run's records, read once, tolerant of whatever is missing in them.

A run directory may be incomplete, from an older version or still being written. Lines that do not
parse are skipped, of two records of a step the later one counts, and a value that is no finite
number is left out.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, TypeVar

from yaml import YAMLError

from azr_population.errors import UserError
from azr_population.reports.lines import number
from azr_population.runs.directory import CURVES, RECORDS, RunDirectory

Record = Mapping[str, Any]
T = TypeVar("T")

REMEMBERED = 512
"""Results kept in memory, about three per run: a comparison asks for the same few of many runs, and
one diagnostic after the other."""

_remembered: OrderedDict[tuple[str, str], tuple[Hashable, Any]] = OrderedDict()


def remembered(run: RunDirectory, what: str, make: Callable[[], T]) -> T:
    """`make()`, or what it gave before when the run's records have not changed since."""
    key, state = (str(run.path.resolve()), what), _state(run)
    if key not in _remembered or _remembered[key][0] != state:
        _remembered[key] = (state, make())
    _remembered.move_to_end(key)
    while len(_remembered) > REMEMBERED:
        _remembered.popitem(last=False)
    found: T = _remembered[key][1]
    return found


def steps_of(run: RunDirectory) -> list[dict[str, Any]]:
    """The lines of `metrics.jsonl` by ascending step."""
    return remembered(run, "steps", lambda: _by_step(run))


def config_of(run: RunDirectory, *keys: str) -> Any:
    """The value at this path of keys in `config.yaml`; None where there is no such thing."""
    try:
        found: Any = run.config()
    except (UserError, OSError, ValueError, YAMLError):
        return None
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def step_of(row: Record) -> int | None:
    """The step of a record; None where it has none that could be one."""
    step = number(row.get("step"))
    return int(step) if step is not None and 0 <= step < 2**31 else None


def section(step: Record, name: str) -> dict[str, Record]:
    """`roles`, `members` or `types` of a step, without what is no mapping."""
    found = step.get(name)
    if not isinstance(found, Mapping):
        return {}
    return {str(key): value for key, value in found.items() if isinstance(value, Mapping)}


def roles_of(run: RunDirectory) -> dict[str, str]:
    """The role of every member that occurs in the metrics, in the order recorded."""
    return roles_in(steps_of(run))


def roles_in(steps: Iterable[Record]) -> dict[str, str]:
    """As `roles_of`, from lines of `metrics.jsonl`."""
    roles: dict[str, str] = {}
    for step in steps:
        for name, member in section(step, "members").items():
            roles.setdefault(name, str(member.get("role", "")))
    return roles


def _by_step(run: RunDirectory) -> list[dict[str, Any]]:
    steps = {step: row for row in run.metrics() if (step := step_of(row)) is not None}
    return [{**steps[step], "step": step} for step in sorted(steps)]


def _state(run: RunDirectory) -> tuple[tuple[int, int], ...]:
    """Sizes and times of the records: what changes when one is written to."""
    found = []
    for name in (*(f"{record}.jsonl" for record in RECORDS), CURVES):
        try:
            stat = (run.path / name).stat()
            found.append((stat.st_size, stat.st_mtime_ns))
        except OSError:
            found.append((-1, -1))
    return tuple(found)
