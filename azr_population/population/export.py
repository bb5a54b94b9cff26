"""Members as PEFT folders in the run directory."""

from __future__ import annotations

import json
from collections.abc import Callable

from azr_population.adapters.adapter import Adapter
from azr_population.adapters.peft_folder import save_adapter
from azr_population.files import replacing_folder
from azr_population.members import Role, Roster
from azr_population.runs.directory import RunDirectory


def export_members(
    roster: Roster, read: Callable[[int], Adapter], directory: RunDirectory, base: str
) -> None:
    """Writes every member, read by its slot, as a PEFT folder on `base`; each is put in place
    whole. Its README.md tells the rating, which the single agent has not."""
    for member in roster:
        told: dict[str, object] = {}
        if member.role is not Role.AGENT:
            told["rating"] = json.dumps({"mu": member.rating.mu, "sigma": member.rating.sigma})
        with replacing_folder(directory.member(member.name)) as folder:
            save_adapter(read(member.slot), folder, base, told)
