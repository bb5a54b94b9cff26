"""Who has how many rows: the budget of a step, split evenly over roles, matches and task types."""

from collections import Counter
from collections.abc import Sequence

from azr_population.config.schema import PopulationConfig
from azr_population.method.matchmaking import Match
from azr_population.method.members import Role


def split_evenly(total: int, parts: int) -> list[int]:
    """`total` split into `parts` as evenly as whole numbers allow, larger shares first."""
    return [total // parts + (part < total % parts) for part in range(parts)]


def proposal_rows(rows: int, role: Role) -> int:
    """How many of a member's rows are proposals; the single agent splits its rows in halves."""
    return (rows + 1) // 2 if role is Role.AGENT else rows


def solving_rows(rows: int, role: Role) -> int:
    """How many of a member's rows are attempts."""
    return rows // 2 if role is Role.AGENT else rows


def replay_rows(config: PopulationConfig, role: Role) -> int:
    """How many of a member's attempts are at tasks of earlier steps."""
    return round(config.replay_fraction * solving_rows(config.batch_size, role))


class MatchAssigner:
    """Deals the teachers' rows of one step out to their matches."""

    def __init__(self, matches: Sequence[Match]) -> None:
        self._matches = list(matches)
        self._dealt = [0] * len(self._matches)

    def assign(self, teachers: Sequence[int]) -> list[Match]:
        """The match of every row; `teachers` are the slots of the rows' teachers.

        A teacher's rows are shared out evenly over its matches, one match after the other. What is
        left over goes to those that have had fewest rows in the step.
        """
        queues: dict[int, list[Match]] = {}
        for slot, count in Counter(teachers).items():
            played = [i for i, match in enumerate(self._matches) if match.teacher.slot == slot]
            fewest_first = sorted(played, key=lambda i: self._dealt[i])
            counts = dict(zip(fewest_first, split_evenly(count, len(played)), strict=True))
            queues[slot] = [self._matches[i] for i in played for _ in range(counts[i])]
            for i in played:
                self._dealt[i] += counts[i]
        return [queues[slot].pop(0) for slot in teachers]
