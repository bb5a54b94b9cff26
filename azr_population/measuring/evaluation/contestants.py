"""Who is evaluated: the base and the members of a run, a PEFT folder, a base by itself."""

import hashlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from azr_population.bases.nano import nano_base_path
from azr_population.engines.base_model import fingerprint
from azr_population.errors import UserError
from azr_population.method.members.member import Rating
from azr_population.runs import RunDirectory
from azr_population.weights.model_card import NANO
from azr_population.weights.peft_folder import CONFIG_FILE, WEIGHTS_FILE, read_config

BASE = "base"
RECORDS = "evaluation"
"""Folder of a run that holds its completions, verdicts and figures."""


@dataclass(frozen=True)
class Contestant:
    """One model that is asked."""

    name: str
    role: str
    """base, teacher, student, agent; adapter for a PEFT folder; model for one of a server."""
    weights: str
    """Hash of its weights; of a server's model what the server says it is."""
    folder: Path | None = None
    """Its PEFT folder; None for the base and for a server's models."""
    rating: Rating | None = None


@dataclass(frozen=True)
class Contestants:
    """Contestants that share one base: a run, a PEFT folder, a base."""

    label: str
    records: Path
    base: Path | None
    contestants: tuple[Contestant, ...]

    @property
    def members(self) -> tuple[Contestant, ...]:
        """All but the base."""
        return tuple(one for one in self.contestants if one.role != BASE)


def entry(path: Path, members: str, base: Path | None, records: Path | None) -> Contestants:
    """What a folder enters: a run (local, or inside AZR), a PEFT folder or a base.

    `members` is a name of `MEMBERS`; `base` takes the place of the one that the folder names.

    Raises UserError where there are no weights, or no base that fits them.
    """
    RunDirectory(path).refuse_curves()
    if (path / "config.yaml").is_file():
        return _run(path, members, base, records)
    if (path / CONFIG_FILE).is_file():
        found = _base_of(path, base)
        adapter = Contestant(_label(path), "adapter", _digest(path), path)
        return _entry(path, found, [adapter], records)
    if (path / "config.json").is_file():
        return _entry(path, path, [], records)
    raise UserError(
        f"{path} is no run (config.yaml), no PEFT folder ({CONFIG_FILE}) and no base (config.json)"
    )


def _entry(
    path: Path, base: Path, members: Sequence[Contestant], records: Path | None
) -> Contestants:
    label = _label(path)
    everybody = (Contestant(BASE, BASE, fingerprint(base)), *members)
    return Contestants(label, records or Path("evaluations") / label, base, everybody)


def _run(path: Path, members: str, base: Path | None, records: Path | None) -> Contestants:
    folder = RunDirectory(path)
    steps = deque(folder.metrics(), maxlen=1)
    rated = steps[0].get("members", {}) if steps else {}
    found = [_member(one, rated) for one in sorted(folder.members.glob("*")) if one.is_dir()]
    if not found:
        raise UserError(f"{path}: there is no member in {folder.members}; did the run save any?")
    chosen = MEMBERS[members](found)
    if not chosen:
        raise UserError(f"--members={members}: {path} has none; it has {_names(found)}")
    assert found[0].folder is not None
    used = _base_of(found[0].folder, base)
    folder.check_base(fingerprint(used), f" ({used}); name the right one by --base")
    return _entry(path, used, chosen, records or path / RECORDS)


def _member(folder: Path, rated: dict[str, Any]) -> Contestant:
    figures = rated.get(folder.name, {})
    rating = Rating(figures["mu"], figures["sigma"]) if figures.get("mu") is not None else None
    return Contestant(folder.name, folder.name.partition("_")[0], _digest(folder), folder, rating)


def _base_of(adapter: Path, given: Path | None) -> Path:
    """The folder of the base that an adapter names, or the given one."""
    named = str(read_config(adapter).get("base_model_name_or_path") or "")
    path = given or Path(named).expanduser()
    # The embedded base lies elsewhere on every machine.
    if not given and not path.is_dir() and named.endswith(NANO):
        path = Path(nano_base_path())
    if not path.is_dir():
        raise UserError(
            f"{adapter}: its base {named or '(not named)'} is no folder here; name it by --base"
        )
    return path


def _digest(folder: Path) -> str:
    """Twelve hex digits of an adapter's weights and shape."""
    weights = folder / WEIGHTS_FILE
    if not weights.is_file():
        raise UserError(f"{folder} has no weights: {WEIGHTS_FILE} is missing")
    digest = hashlib.sha256(weights.read_bytes())
    config = read_config(folder)
    digest.update(f"{config['r']} {config['lora_alpha']}".encode())
    return digest.hexdigest()[:12]


def _label(path: Path) -> str:
    """The folder's name; of a seed its arm's too."""
    parts = path.resolve().parts
    return "_".join(parts[-2:]) if parts[-1].startswith("seed_") else parts[-1]


def _names(members: Sequence[Contestant]) -> str:
    return ", ".join(member.name for member in members)


def _best(members: Sequence[Contestant]) -> list[Contestant]:
    """The solver with the best conservative rating; the first where nobody is rated."""
    solvers = [one for one in members if one.role != "teacher"]
    return sorted(solvers, key=lambda one: -one.rating.conservative if one.rating else 0.0)[:1]


def named(
    words: Sequence[str], members: str, base: Path | None, records: Path | None
) -> list[Contestants]:
    """The entries that the command's words name. `base` among them, where there is no such folder,
    asks for the base alone of the others, of `--base`, or for the embedded one. Raises UserError as
    `entry`."""
    paths = [Path(word) for word in words]
    others = [path for path in paths if str(path) != BASE or path.exists()]
    if len(others) == len(paths):
        return [entry(path, members, base, records) for path in paths]
    entries = [entry(path, "all", base, records) for path in others]
    folders = [one.base for one in entries if one.base] or [base or Path(nano_base_path())]
    return [_entry(folder, folder, [], records) for folder in dict.fromkeys(folders)]


MEMBERS: dict[str, Callable[[Sequence[Contestant]], list[Contestant]]] = {
    "all": list,
    "best": _best,
    "teachers": lambda members: [one for one in members if one.role != "student"],
    "students": lambda members: [one for one in members if one.role != "teacher"],
}
"""Which members of a run: the single agent counts as teacher and as student."""
