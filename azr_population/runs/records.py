"""A run's records, read once; missing ones are tolerated.

A run directory may be incomplete, from an older version or still being written. Lines that do not
parse are skipped, the later of two records of a step counts, and a value that is not a finite
number is left out.
"""

import logging
import math
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, TypeVar

from azr_population.domains.domain import Domain
from azr_population.domains.known import UntrustedDomain, find_domain
from azr_population.errors import UserError
from azr_population.printable import printable
from azr_population.registry import trusted
from azr_population.runs.directory import RECORDS, RunDirectory

Record = Mapping[str, Any]
T = TypeVar("T")

REMEMBERED = 200
"""Runs whose results stay in memory, because a comparison reads many runs several times."""


def remembered(read: Callable[[RunDirectory], T]) -> Callable[[RunDirectory], T]:
    """Decorator: `read`, or its earlier result if the run's records have not changed since."""
    results: dict[Path, tuple[tuple[tuple[int, ...], ...], T]] = {}

    @wraps(read)
    def latest(run: RunDirectory) -> T:
        path, state = run.path.resolve(), _state(run)
        if path not in results or results[path][0] != state:  # a run that grows keeps one result
            if len(results) >= REMEMBERED:
                results.pop(next(iter(results)), None)
            results[path] = state, read(run)
        return results[path][1]

    return latest


def _state(run: RunDirectory) -> tuple[tuple[int, ...], ...]:
    """The files of the records with their sizes and times."""
    state: list[tuple[int, ...]] = []
    for name in (*(f"{record}.jsonl" for record in RECORDS), "metrics.jsonl.gz", "config.yaml"):
        try:
            stat = (run.path / name).stat()
            state.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
        except OSError:
            state.append(())
    return tuple(state)


def number(value: Any) -> float | None:
    """`value` as a float; None if it is not a number below 1e100, whose square would overflow."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e100:
        return None
    return float(value)


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of the known values; None without any."""
    numbers = [value for value in values if value is not None]
    return math.fsum(numbers) / len(numbers) if numbers else None


def conservative(member: Record) -> float | None:
    """mu - 3 sigma of a member's metrics; None for a member without a rating."""
    mu, sigma = member.get("mu"), member.get("sigma")
    return None if mu is None or sigma is None else mu - 3.0 * sigma


def show(value: Any, form: str, missing: str = "-") -> str:
    """`value` in a format such as `{:.0%}`; `missing` if it is not a finite number."""
    figure = number(value)
    return missing if figure is None else form.format(figure)


def rating(member: Record) -> str:
    """`25.1 ± 0.4`, mu and sigma of a member's metrics; `-` for a member without a rating."""
    mu, sigma = member.get("mu"), member.get("sigma")
    return "-" if mu is None or sigma is None else f"{mu:.1f} ± {sigma:.1f}"


def by_number(name: str) -> tuple[str, int]:
    """Sorts `student_10` after `student_9`."""
    stem, _, digits = name.rpartition("_")
    return (stem, int(digits)) if digits.isdecimal() else (name, 0)


ROLES = ("teacher", "student", "agent")


def grouped(line: Record) -> dict[str, dict[str, Any]]:
    """A flat line of `metrics.jsonl` by the name before the first slash (`teacher`, `student_0`,
    `eval`, `time`, ...) and the rest of the name."""
    groups: dict[str, dict[str, Any]] = {}
    for key, value in line.items():
        group, slash, name = key.partition("/")
        if slash:
            groups.setdefault(group, {})[name] = value
    return groups


def role_of(group: str) -> str:
    """The role of a member (`student_0`) or a role; empty for another group of metrics."""
    role, _, number = group.rpartition("_")
    role = role if number.isdecimal() else group
    return role if role in ROLES else ""


def metrics_of_roles(line: Record) -> dict[str, dict[str, Any]]:
    """Each role's metrics in a flat line."""
    return {name: metrics for name, metrics in grouped(line).items() if name in ROLES}


def metrics_of_members(line: Record) -> dict[str, dict[str, Any]]:
    """Each member's metrics in a flat line."""
    return {
        name: metrics
        for name, metrics in grouped(line).items()
        if role_of(name) and name not in ROLES
    }


@remembered
def lines_of(run: RunDirectory) -> list[dict[str, Any]]:
    """The flat lines of `metrics.jsonl` by ascending step."""
    steps = {row["step"]: row for row in run.metrics()}
    return [steps[step] for step in sorted(steps)]


def last_step(run: RunDirectory) -> int:
    """The last recorded step; 0 if there is none."""
    return next((line["step"] for line in reversed(lines_of(run))), 0)


@remembered
def whole_config(run: RunDirectory) -> dict[str, Any]:
    """`config.yaml`, read once. Raises UserError: as `RunDirectory.config`."""
    return run.config()


def config_of(run: RunDirectory, *keys: str) -> Any:
    """The value at this path of keys in `config.yaml`, or None."""
    try:
        value: Any = whole_config(run)
    except (UserError, OSError):
        return None
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def domain_of(run: RunDirectory) -> Domain:
    """The domain of the run's tasks; inside AZR, and where the configuration has none, `code`.

    Custom domains are not run for reading (see `registry.trust`): measures and coverage are left
    out, with a line in the log. Raises UserError: a trusted domain cannot be imported.
    """
    name = str(config_of(run, "task", "domain") or "code")
    if "." in name and not trusted(name):
        _log_once(name)
        return UntrustedDomain()
    return find_domain(name)


@lru_cache
def _log_once(name: str) -> None:
    logging.getLogger(__name__).warning(
        "task.domain=%s is not built in, so its measures and coverage are left out; "
        "azr-population --trust COMMAND runs it",
        printable(name[:200]),
    )


def roles_of(run: RunDirectory) -> dict[str, str]:
    """The role of every member in the metrics, in the order recorded."""
    groups = dict.fromkeys(group for line in lines_of(run) for group in grouped(line))
    return {name: role for name in groups if name not in ROLES and (role := role_of(name))}
