"""Members as PEFT folders: those of a run as it stands, and those of a step that is kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from azr_population.adapters.adapter import Adapter
from azr_population.adapters.peft_folder import save_adapter
from azr_population.files import replacing_folder
from azr_population.members import Role, Roster
from azr_population.members.member import check_name


def export_members(roster: Roster, read: Callable[[int], Adapter], folder: Path, base: str) -> None:
    """Writes every member, read by its slot, into `folder` as a PEFT folder on `base`; each is put
    in place whole. Its README.md tells the rating, which the single agent has not."""
    for member in roster:
        told: dict[str, object] = {}
        if member.role is not Role.AGENT:
            told["rating"] = json.dumps({"mu": member.rating.mu, "sigma": member.rating.sigma})
        with replacing_folder(folder / check_name(member.name)) as place:
            save_adapter(read(member.slot), place, base, told)


def write_snapshot(
    roster: Roster, read: Callable[[int], Adapter], snapshots: Path, step: int, base: str
) -> None:
    """Keeps the members of a step in `snapshots/step_<step>`: all of them or none."""
    snapshots.mkdir(exist_ok=True)
    with replacing_folder(snapshots / f"step_{step}") as folder:
        folder.mkdir()
        export_members(roster, read, folder, base)
