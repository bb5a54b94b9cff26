"""Checkpoints: everything that a run needs to go on bit-identically on CPU.

A checkpoint is a folder `step_<n>` with `state.pt` (tensors), `state.json` (plain data) and
`manifest.json` (a SHA-256 of each). It is written under a temporary name, synced and renamed, so a
crash leaves either the whole checkpoint or none; the sums tell a damaged one from a good one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from azr_population.errors import UserError
from azr_population.runs.directory import replacing_folder

_FILES = ("state.pt", "state.json")


@dataclass(frozen=True)
class Checkpoint:
    """What was read: `tensors` is the engine's state, `plain` everything else."""

    step: int
    tensors: dict[str, Any]
    plain: dict[str, Any]
    skipped: tuple[str, ...]
    """Newer checkpoints that were damaged, with the reason, for the user to know."""


def save_checkpoint(
    folder: Path, step: int, tensors: dict[str, Any], plain: dict[str, Any], keep: int
) -> Path:
    """Writes `folder/step_<step>` and removes all but the newest `keep` checkpoints."""
    folder.mkdir(parents=True, exist_ok=True)
    final = folder / f"step_{step}"
    with replacing_folder(final) as temporary:
        temporary.mkdir()
        torch.save(tensors, temporary / "state.pt")
        (temporary / "state.json").write_text(json.dumps(plain), encoding="utf-8")
        manifest = {name: _digest(temporary / name) for name in _FILES}
        (temporary / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    # Newer ones are damaged, or this step would not be played again: they must not count.
    for other, path in steps(folder):
        if other > step:
            os.replace(path, path.with_name(f".{path.name}.damaged"))
    for _, old in steps(folder)[:-keep]:
        shutil.rmtree(old)
    return final


def load_latest(folder: Path) -> Checkpoint:
    """Reads the newest sound checkpoint in `folder`.

    Raises:
        UserError: there is none.
    """
    skipped: list[str] = []
    for step, path in reversed(steps(folder)):
        try:
            manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
            for name in _FILES:
                if manifest[name] != _digest(path / name):
                    raise ValueError(f"{name} does not match its checksum")
            return Checkpoint(
                step=step,
                tensors=torch.load(path / "state.pt", map_location="cpu", weights_only=True),
                plain=json.loads((path / "state.json").read_text(encoding="utf-8")),
                skipped=tuple(skipped),
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            skipped.append(f"{path.name} ({error})")
    damaged = f"; damaged: {', '.join(skipped)}" if skipped else ""
    raise UserError(f"no sound checkpoint in {folder}{damaged}; start again in another run.dir")


def steps(folder: Path) -> list[tuple[int, Path]]:
    """The checkpoints in `folder`, oldest first."""
    if not folder.is_dir():
        return []
    found = ((re.fullmatch(r"step_(\d+)", path.name), path) for path in folder.iterdir())
    return sorted((int(match[1]), path) for match, path in found if match)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def members_digest(folder: Path) -> str:
    """SHA-256 over all members' weights in a run's `members` folder, in order of their names.

    Two runs with the same digest ended with bit-identical members.
    """
    total = hashlib.sha256()
    for path in sorted(folder.glob("*/adapter_model.safetensors")):
        if not path.parent.name.startswith("."):
            total.update(path.parent.name.encode())
            total.update(bytes.fromhex(_digest(path)))
    return total.hexdigest()
