"""A run's records, read once, tolerant of whatever is missing in them.

A run directory may be incomplete, from an older version or still being written. Lines that do not
parse are skipped, the later of two records of a step counts, and a value that is not a finite
number is left out.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, TypeVar

from yaml import YAMLError

from azr_population.domains.domain import Domain
from azr_population.domains.known import find_domain
from azr_population.errors import UserError
from azr_population.runs.directory import CURVES, RECORDS, RunDirectory

Record = Mapping[str, Any]
T = TypeVar("T")

REMEMBERED = 512
"""Results kept in memory, about three per run: a comparison reads many runs again for every
diagnostic."""

_remembered: OrderedDict[tuple[str, str], tuple[Hashable, Any]] = OrderedDict()


def remembered(run: RunDirectory, what: str, make: Callable[[], T]) -> T:
    """`make()`, or its earlier result if the run's records have not changed since."""
    key, state = (str(run.path.resolve()), what), _state(run)
    if key not in _remembered or _remembered[key][0] != state:
        _remembered[key] = (state, make())
    _remembered.move_to_end(key)
    while len(_remembered) > REMEMBERED:
        _remembered.popitem(last=False)
    result: T = _remembered[key][1]
    return result


def number(value: Any) -> float | None:
    """`value` as a float, else None; beyond 1e100, where no figure of ours is, its square would
    overflow."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e100:
        return None
    return float(value)


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of the known values; None without any."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def conservative(member: Record) -> float | None:
    """mu - 3 sigma of a member's metrics; None for a member without a rating."""
    mu, sigma = number(member.get("mu")), number(member.get("sigma"))
    return None if mu is None or sigma is None else mu - 3.0 * sigma


def by_number(name: str) -> tuple[str, int]:
    """Sorts `student_10` after `student_9`."""
    stem, _, digits = name.rpartition("_")
    return (stem, int(digits)) if digits.isdecimal() else (name, 0)


def steps_of(run: RunDirectory) -> list[dict[str, Any]]:
    """The lines of `metrics.jsonl` by ascending step."""
    return remembered(run, "steps", lambda: _by_step(run))


def config_of(run: RunDirectory, *keys: str) -> Any:
    """The value at this path of keys in `config.yaml`, or None."""
    try:
        value: Any = run.config()
    except (UserError, OSError, ValueError, YAMLError):
        return None
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def domain_of(run: RunDirectory) -> Domain:
    """What the run's tasks are about; where nothing is said of it `code`, and inside AZR `code_e`,
    which is that and AZR's fourth type. Raises UserError: a domain of the user's cannot be
    imported."""
    unsaid = "code_e" if config_of(run, "azr") is not None else "code"
    return find_domain(str(config_of(run, "task", "domain") or unsaid))


def step_of(row: Record) -> int | None:
    """The step of a record, or None if it has no valid one."""
    step = number(row.get("step"))
    return int(step) if step is not None and 0 <= step < 2**31 else None


def section(step: Record, name: str) -> dict[str, Record]:
    """The `roles`, `members` or `types` of a step that are mappings."""
    rows = step.get(name)
    if not isinstance(rows, Mapping):
        return {}
    return {str(key): value for key, value in rows.items() if isinstance(value, Mapping)}


def roles_of(run: RunDirectory) -> dict[str, str]:
    """The role of every member that occurs in the metrics, in the order recorded."""
    return roles_in(steps_of(run))


def roles_in(steps: Iterable[Record]) -> dict[str, str]:
    """As `roles_of`, from the lines of `metrics.jsonl`."""
    roles: dict[str, str] = {}
    for step in steps:
        for name, member in section(step, "members").items():
            roles.setdefault(name, str(member.get("role", "")))
    return roles


def _by_step(run: RunDirectory) -> list[dict[str, Any]]:
    steps = {step: row for row in run.metrics() if (step := step_of(row)) is not None}
    return [{**steps[step], "step": step} for step in sorted(steps)]


def _state(run: RunDirectory) -> tuple[tuple[int, int], ...]:
    """Sizes and times of the records, which change when a record is written to."""
    state = []
    for name in (*(f"{record}.jsonl" for record in RECORDS), CURVES):
        try:
            stat = (run.path / name).stat()
            state.append((stat.st_size, stat.st_mtime_ns))
        except OSError:
            state.append((-1, -1))
    return tuple(state)
