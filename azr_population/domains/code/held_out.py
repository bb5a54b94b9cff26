"""Programs that self-play must not train on, because the eval asks about them."""

from collections.abc import Iterable

from azr_population.domains.code.source import fingerprint
from azr_population.domains.domain import HeldOut


class HeldOutPrograms(HeldOut):
    """Finds copies and near-copies of an eval's programs, whatever their layout."""

    def __init__(self, programs: Iterable[str]) -> None:
        held_out = list(programs)
        self._copies = {found for program in held_out if (found := fingerprint(program))}
        self._shapes = {found for program in held_out if (found := fingerprint(program, False))}

    def is_copy(self, program: str) -> bool:
        """Whether it is one of them but for white space and comments; such a task is refused."""
        return fingerprint(program) in self._copies

    def is_near_copy(self, program: str) -> bool:
        """Whether it is one of them but for its constants; such tasks are counted.

        At nano scale programs are short, so that many agree by chance: refusing them would take
        away a part of the grammar.
        """
        return fingerprint(program, constants=False) in self._shapes
