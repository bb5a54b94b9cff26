"""How measures are read of a run's records."""

import json
from collections.abc import Callable, Iterable

from azr_population.domains.measure import Measure
from azr_population.runs.diagnostics.kept import of_results
from azr_population.runs.diagnostics.measures import find_measure
from azr_population.runs.diagnostics.statistics import Series
from azr_population.runs.directory import RunDirectory
from azr_population.runs.records import domain_of, mean, number, section, steps_of

Reader = Callable[[RunDirectory, Measure], dict[str, Series]]
"""Series by role and member. `""` is the role that a single agent and a population have in common:
the proposers for measures of proposals, the solvers for measures of answers."""

_READERS: dict[str, Reader] = {}


def reads(*names: str) -> Callable[[Reader], Reader]:
    """Decorator: the function reads these measures. Those that no function reads lie under their
    names in the metrics of roles and members."""

    def file(reader: Reader) -> Reader:
        for name in names:
            _READERS[find_measure(name).name] = reader
        return reader

    return file


def is_recorded(name: str) -> bool:
    """Whether the metrics of roles and members have the measure under its name."""
    return name not in _READERS


def readings(run: RunDirectory, name: str) -> dict[str, Series]:
    """The measure `name` over the steps, by role and member, and `""` (see `Reader`); empty if the
    run has not recorded it. Raises UserError: there is no such measure; the message lists them
    all."""
    return _READERS.get(name, recorded)(run, find_measure(name, domain_of(run)))


def series(run: RunDirectory, name: str, of: str = "") -> Series:
    """One of the `readings`: `of` is a role (`teacher`, `student`, `agent`), a member's name, for
    `seconds` a phase, or empty. Of runs of which only curves are kept, too."""
    if run.results_only:
        known = of_results(run, find_measure(name, domain_of(run)).name)
        found = readings(run, name) if known is None else known
        if name == "exam_mean" and "" in found:
            found = {**dict.fromkeys(("student", "agent"), found[""]), **found}
        return list(found.get(of, []))
    return list(readings(run, name).get(of, []))


def recorded(run: RunDirectory, measure: Measure) -> dict[str, Series]:
    """What the metrics of every role and member have under the measure's name."""
    found: dict[str, Series] = {}
    for step in steps_of(run):
        for name, row in (*section(step, "roles").items(), *section(step, "members").items()):
            if (value := number(row.get(measure.name))) is not None:
                found.setdefault(name, []).append((step["step"], value))
    if role := next((role for role in measure.whose if role in found), None):
        found[""] = found[role]
    elif not measure.whose and (means := over_members(run, measure.name)):
        found[""] = means
    return found


def over_members(run: RunDirectory, key: str, names: Iterable[str] | None = None) -> Series:
    """The mean over the members (all, or those named) at each step with a value."""
    wanted = None if names is None else set(names)
    means: Series = []
    for step in steps_of(run):
        mean_of_step = mean(
            number(member.get(key))
            for name, member in section(step, "members").items()
            if wanted is None or name in wanted
        )
        if mean_of_step is not None:
            means.append((step["step"], mean_of_step))
    return means


def last_step(run: RunDirectory) -> int:
    """The last recorded step; 0 if there is none."""
    if run.results_only:
        return max((line["step"] for line in run.metrics()), default=0)
    record = run.path / "metrics.jsonl"
    for line in reversed(record.read_bytes().splitlines() if record.is_file() else []):
        try:
            return int(json.loads(line)["step"])
        except (ValueError, KeyError, TypeError):
            continue  # torn by a crash
    return 0
