"""Checkpoints: everything that a run needs to continue, bit for bit on the same CPU.

A checkpoint is a folder `step_<n>` with `state.pt` (tensors), `state.json` (plain data) and
`manifest.json` (a SHA-256 of each). It is written under a temporary name, synced and renamed, so a
crash leaves either the whole checkpoint or none; the checksums reveal a damaged one.
"""

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from azr_population.errors import UserError, first_line
from azr_population.files import read_json, refuse_irregular, replacing_folder
from azr_population.runs.directory import steps
from azr_population.weights.adapter import LARGEST

_FILES = ("state.pt", "state.json")
_OF_THE_FILE = (None, errno.ENOENT, errno.EIO, errno.ENOTDIR, errno.EISDIR, errno.ELOOP)
"""Errors of what lies in the place of a file, not of the process or the network."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint in memory: `tensors` is the engine's state, `plain` everything else."""

    step: int
    tensors: dict[str, Any]
    plain: dict[str, Any]
    skipped: tuple[str, ...]
    """Newer checkpoints that were damaged, each with the reason."""


def save_checkpoint(
    folder: Path,
    step: int,
    tensors: dict[str, Any],
    plain: dict[str, Any],
    keep: int,
) -> Path:
    """Writes `folder/step_<step>`, then removes all checkpoints but the newest `keep`."""
    folder.mkdir(parents=True, exist_ok=True)
    final = folder / f"step_{step}"
    with replacing_folder(final) as temporary:
        temporary.mkdir()
        _save_tensors(tensors, temporary / "state.pt")
        (temporary / "state.json").write_text(json.dumps(plain), encoding="utf-8")
        manifest = {name: _digest(temporary / name) for name in _FILES}
        (temporary / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    # Newer checkpoints must be damaged, or this step would not be played again.
    for other, path in steps(folder):
        if other > step:
            aside = path.with_name(f".{path.name}.damaged")
            shutil.rmtree(aside, ignore_errors=True)  # of an earlier time
            os.replace(path, aside)
    for _, old in steps(folder)[:-keep]:
        shutil.rmtree(old)
    return final


def load_latest(
    folder: Path, mapped: bool = False, way_out: str = "start again in another run.dir"
) -> Checkpoint:
    """Reads the newest sound checkpoint in `folder`; `mapped` as in `read_tensors`. Raises
    UserError, with the `way_out`: there is none."""
    skipped: list[str] = []
    for step, path in reversed(steps(folder)):
        try:
            return _read(step, path, skipped, mapped)
        except Exception as error:  # reading a damaged file raises nearly anything
            if _may_pass(error) or _may_pass(error.__cause__):
                raise UserError(
                    f"{path} cannot be read now ({first_line(error)}), which does not mean that it "
                    "is damaged; mend that and start again"
                ) from error
            skipped.append(f"{path.name} ({error})")
    damaged = f"; damaged: {', '.join(skipped)}" if skipped else ""
    raise UserError(f"no sound checkpoint in {folder}{damaged}; {way_out}")


def _may_pass(error: BaseException | None) -> bool:
    """Whether it is a fault of the machine at this moment, after which nothing may be cut back."""
    passing = isinstance(error, OSError) and error.errno not in _OF_THE_FILE
    return passing or isinstance(error, MemoryError)


def read_tensors(folder: Path, step: int, mapped: bool = False) -> dict[str, Any]:
    """The tensors of a sound checkpoint, on the CPU, without checking the checksums again.

    With `mapped` they are read from the file on use, so that all processes of a machine share one
    copy; a change in place stays in the process.
    """
    file = folder / f"step_{step}" / "state.pt"
    tensors: dict[str, Any] = torch.load(file, "cpu", weights_only=True, mmap=mapped)
    return tensors


def _read(step: int, path: Path, skipped: Sequence[str], mapped: bool = False) -> Checkpoint:
    manifest = read_json(path / "manifest.json")
    for name in _FILES:
        refuse_irregular(path / name)
        if manifest[name] != _digest(path / name):
            raise ValueError(f"{name} does not match its checksum")
    plain = read_json(path / "state.json")
    if repr(plain.get("step", step)) != str(step):
        raise ValueError(f"state.json is of step {plain['step']!r}")
    return Checkpoint(
        step=step,
        tensors=read_tensors(path.parent, step, mapped),
        plain=plain,
        skipped=tuple(skipped),
    )


def last_step(folder: Path) -> int:
    """The step of the newest checkpoint in `folder`, sound or not; 0 if there is none."""
    return max((step for step, _ in steps(folder)), default=0)


def _save_tensors(tensors: dict[str, Any], path: Path) -> None:
    """torch.save; an OSError such as a full disk is raised, which torch hides in its context."""
    try:
        with path.open("xb") as file:
            torch.save(tensors, file)
    except RuntimeError as error:
        if isinstance(error.__context__, OSError):
            raise error.__context__ from error
        raise


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 24):
            digest.update(piece)
    return digest.hexdigest()


def members_digest(folder: Path) -> str:
    """SHA-256 over all members' weights in a run's `members` folder, in order of their names;
    `best` is a copy.

    Two runs with the same digest ended with bit-identical members.
    """
    total = hashlib.sha256()
    for path in sorted(folder.glob("*_*/adapter_model.safetensors")):
        if not path.parent.name.startswith("."):
            total.update(path.parent.name.encode())
            total.update(bytes.fromhex(_digest(path)))
    return total.hexdigest()


EARLIER_INSIDE_AZR = (
    "to continue from the checkpoint before it, write that one's step into "
    "latest_checkpointed_iteration.txt beside it and start again with trainer.resume_mode=auto"
)
"""The way out of a checkpoint of AZR's that cannot be continued."""


@contextmanager
def restoring(where: str, *parts: Any, way_out: str = "") -> Iterator[None]:
    """Inside, these parts of the checkpoint at `where`, which may come from anybody, are put in
    place. Raises UserError: one has a value that no training leaves, or does not fit; `way_out`
    continues from an earlier checkpoint."""
    way_out = way_out or "move it away to continue from the one before"
    if unsound := next(filter(None, map(_unsound, parts)), None):
        raise UserError(f"{where} holds {unsound}; {way_out}")
    try:
        yield
    except torch.cuda.OutOfMemoryError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise UserError(
            f"{where} is damaged ({' '.join(repr(error).split()):.200}); {way_out}"
        ) from error


def _unsound(node: Any, path: str = "") -> str | None:
    """The first value in nested tensors and numbers that no training leaves, and where."""
    if isinstance(node, torch.Tensor):
        if not torch.isfinite(node).all():
            return f"a value that is not finite (NaN or Inf) in {path}"
        largest = float(node.abs().max()) if node.numel() and path.startswith("adapters") else 0.0
        return f"{largest:.3g} in {path}" if largest > LARGEST else None
    if isinstance(node, float) and not abs(node) < 1e100:
        return f"{node} in {path}"
    parts: Iterable[tuple[Any, Any]] = node.items() if isinstance(node, Mapping) else ()
    if isinstance(node, (list, tuple)):
        parts = enumerate(node)
    unsound = (_unsound(value, f"{path}.{key}".lstrip(".")) for key, value in parts)
    return next(filter(None, unsound), None)
