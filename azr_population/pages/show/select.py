"""Which of a run's completions are wanted."""

import difflib
from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from azr_population.errors import UserError
from azr_population.printable import printable
from azr_population.runs import RunDirectory
from azr_population.runs.records import by_number, roles_of

Record = dict[str, Any]


@dataclass(frozen=True)
class Wanted:
    """What is asked for; what is empty is not asked for."""

    step: int | None = None
    member: str | None = None
    type: str | None = None
    verdicts: Collection[str] = ()
    limit: int = 0
    """The newest so many; 0: all."""

    def fits(self, row: Record) -> bool:
        """Whether a record is asked for."""
        return (
            (self.step is None or row["step"] == self.step)
            and (self.member is None or row.get("member") == self.member)
            and (self.type is None or row.get("type") == self.type)
            and (not self.verdicts or row.get("verdict") in self.verdicts)
        )


def select(run: RunDirectory, filters: Wanted) -> tuple[list[Record], int]:
    """The newest completions of a run that fit, oldest first, and how many fit in all. Raises
    UserError: there is no run, it kept no completions, or not of that step, type or member."""
    run.refuse_results_only()
    path = run.config_file.parent
    newest: deque[Record] = deque(maxlen=filters.limit or None)
    steps: set[int] = set()
    members: set[str] = set()
    types: set[str] = set()
    total = 0
    for row in run.completions():
        steps.add(row["step"])
        members.add(str(row.get("member")))
        types.add(printable(row.get("type")))
        if filters.fits(row):
            newest.append(row)
            total += 1
    if not steps:
        raise UserError(
            f"{path} has no completions.jsonl: it has not finished a step, or was run with "
            f"run.log_completions=0 or by an older version; to keep those of the next steps: "
            f"azr-population resume {path} run.log_completions=16 run.steps=N"
        )
    if filters.step is not None and filters.step not in steps:
        span = f"steps {min(steps)} to {max(steps)}" if len(steps) > 1 else f"step {min(steps)}"
        raise UserError(f"--step {filters.step}: {path} has completions of {span}")
    if filters.type is not None and filters.type not in types:
        raise UserError(
            f"--type {filters.type}: {path} has completions of {', '.join(sorted(types))}"
        )
    if filters.member is not None and filters.member not in members:
        members |= set(roles_of(run))
        if filters.member not in members:
            raise no_member(filters.member, str(path), members)
    return list(newest), total


def no_member(name: str, where: str, members: Iterable[str]) -> UserError:
    """The error for a member that does not exist, with those that do and the nearest name."""
    names = sorted(map(printable, members), key=by_number)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    meant = f"did you mean {near[0]}? " if near else ""
    return UserError(
        f"member {name} does not exist; {meant}{where} has {', '.join(names) or 'none'}"
    )
