"""The models that are evaluated (a run's base and members, a PEFT folder, a base); loading them."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from azr_population.bases.nano import nano_base_path
from azr_population.engines.base_folder import context_of
from azr_population.engines.base_model import fingerprint, load_base, stop_ids
from azr_population.engines.engine import EngineSettings, Rollout
from azr_population.engines.torch_rollout import make_bank
from azr_population.errors import UserError
from azr_population.runs import RunDirectory
from azr_population.runs.directory import member_folders
from azr_population.weights.adapter import LoraSpec
from azr_population.weights.founders import as_member
from azr_population.weights.model_card import NANO
from azr_population.weights.peft_folder import CONFIG_FILE, WEIGHTS_FILE, load_adapter, read_config

BASE = "base"
_NO_MEMBERS = LoraSpec(1, 1.0, ("all-linear",))


@dataclass(frozen=True)
class EvalTarget:
    """One model that is evaluated."""

    name: str
    base: Path
    """The base's folder."""
    folder: Path | None = None
    """Its PEFT folder; None for the base."""

    @property
    def weights(self) -> str:
        """Hash of its weights: twelve hex digits for a member, the base's fingerprint."""
        if self.folder is None:
            return fingerprint(self.base)
        file = self.folder / WEIGHTS_FILE
        if not file.is_file():
            raise UserError(f"{self.folder} has no weights: {WEIGHTS_FILE} is missing")
        config = read_config(self.folder)
        digest = hashlib.sha256(file.read_bytes())
        digest.update(f"{config['r']} {config['lora_alpha']}".encode())
        return digest.hexdigest()[:12]


def find_targets(name: str | Path, base: Path | None = None) -> list[EvalTarget]:
    """The base, first, and what a name adds to it: all members of a run (local, or inside AZR), one
    for RUN/MEMBER, a PEFT folder, or nothing for RUN/base, a base's folder and `nano`.

    `base` takes the place of the base that the folder names. Raises UserError where there are no
    weights, or no base that fits them.
    """
    path = Path(name)
    if str(name) in (BASE, "nano") and not path.exists():
        path = base or Path(nano_base_path())
    RunDirectory(path).refuse_results_only()
    if RunDirectory(path).exists:
        return _of_run(path, base)
    run = RunDirectory(path.parent)
    if run.exists:
        if path.name == BASE:
            return _of_run(path.parent, base)[:1]
        if not run.member(path.name).is_dir():
            names = ", ".join(target.name for target in _of_run(path.parent, base))
            raise UserError(f"{path.parent} has no member {path.name}; it has {names}")
        path = run.member(path.name)
    if (path / CONFIG_FILE).is_file():
        used = _base_of(path, base)
        return [EvalTarget(BASE, used), EvalTarget(path.resolve().name, used, path)]
    if (path / "config.json").is_file():
        return [EvalTarget(BASE, path)]
    raise UserError(
        f"{path} is not a run (config.yaml), a PEFT folder ({CONFIG_FILE}) or a base (config.json)"
    )


def _of_run(path: Path, base: Path | None) -> list[EvalTarget]:
    run = RunDirectory(path)
    folders = member_folders(run.members)
    if not folders:
        raise UserError(f"{path} has no members in {run.members}; resume it to save them")
    used = _base_of(folders[0], base)
    run.check_base(fingerprint(used), f" ({used}); name the right one by --base")
    return [EvalTarget(BASE, used), *(EvalTarget(f.name, used, f) for f in folders)]


def _base_of(adapter: Path, base: Path | None) -> Path:
    """The folder of the base that an adapter names, or the given one."""
    named = str(read_config(adapter).get("base_model_name_or_path") or "")
    path = base or Path(named).expanduser()
    # The embedded base has another path on every machine.
    if not base and not path.is_dir() and named.endswith(NANO):
        path = Path(nano_base_path())
    if not path.is_dir():
        raise UserError(
            f"{adapter}: its base {named or '(not named)'} is not a folder here; give --base"
        )
    return path


@dataclass(frozen=True)
class LoadedRollout:
    """A rollout, its tokenizer, and the slot of each target."""

    rollout: Rollout
    tokenizer: Any
    context: int
    """Tokens that a prompt and its completion may have together."""
    slots: dict[EvalTarget, int]


def load_rollout(
    targets: Sequence[EvalTarget],
    dtype: str = "float32",
    device: str = "cpu",
    rollout: str = "torch",
) -> LoadedRollout:
    """Loads targets that share a base; close its `rollout`. Raises UserError where an adapter does
    not fit, or where the rollout cannot serve it."""
    base = targets[0].base
    adapters = {target: load_adapter(target.folder) for target in targets if target.folder}
    spec = _common_spec([adapter.spec for adapter in adapters.values()])
    names = tuple(target.name for target in targets)
    settings = EngineSettings(str(base), names, spec, device, dtype, rollout=rollout)
    settings.rollout_class.check(spec.rank)
    # A rollout that loads its own weights needs the whole GPU.
    own_weights = settings.rollout_class.own_weights
    model, tokenizer = load_base(base, dtype, "cpu" if own_weights else device)
    # Fresh adapters add nothing (B is zero): that is the base.
    seeds = [torch.Generator().manual_seed(0) for _ in targets]
    bank = make_bank(model, spec, seeds)
    sampler = settings.rollout_class.make(model, bank, stop_ids(model, tokenizer), settings)
    for slot, target in enumerate(targets):
        if target in adapters:
            who = f"{target.folder} and adapters of {base}"
            bank.write(slot, as_member(adapters[target], bank.read(slot), seeds[slot], who))
        sampler.push(slot, bank.read(slot))
    limits = [limit for limit in (context_of(model), sampler.longest) if limit]
    slots = {target: slot for slot, target in enumerate(targets)}
    return LoadedRollout(sampler, tokenizer, min(limits, default=1 << 20), slots)


def _common_spec(specs: Sequence[LoraSpec]) -> LoraSpec:
    """The shape of a bank that holds adapters of these: their highest rank, all their layers."""
    if not specs:
        return _NO_MEMBERS
    rank = max(spec.rank for spec in specs)
    layers = sorted({name for spec in specs for name in spec.target_modules})
    return LoraSpec(rank, specs[0].alpha * rank / specs[0].rank, tuple(layers))
