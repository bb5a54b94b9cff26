"""The models that are evaluated (a run's base and members, a PEFT folder, a base); loading them."""

import hashlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from azr_population.bases.nano import nano_base_path
from azr_population.engines.base_folder import context_of
from azr_population.engines.base_model import fingerprint, load_base, stop_ids
from azr_population.engines.engine import Rollout
from azr_population.engines.rollouts import RolloutSettings, Served
from azr_population.engines.torch_rollout import make_bank
from azr_population.errors import UserError
from azr_population.method.member_folders import BEST
from azr_population.method.members import Rating
from azr_population.runs import RunDirectory
from azr_population.runs.records import metrics_of_members
from azr_population.weights.adapter import Adapter, Factors, LoraSpec
from azr_population.weights.bank import Bank
from azr_population.weights.model_card import NANO
from azr_population.weights.peft_folder import CONFIG_FILE, WEIGHTS_FILE, load_adapter, read_config

BASE = "base"
_NO_MEMBERS = LoraSpec(1, 1.0, ("all-linear",))


@dataclass(frozen=True)
class EvalTarget:
    """One model that is evaluated."""

    name: str
    role: str
    """base, teacher, student, agent; adapter for a PEFT folder; model for one of a server."""
    base: Path
    """The base's folder."""
    folder: Path | None = None
    """Its PEFT folder; None for the base."""
    rating: Rating | None = None

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


def find_targets(path: Path, members: str = "all", base: Path | None = None) -> list[EvalTarget]:
    """The base, first, and what a folder adds to it: a run's members (local, or inside AZR), a PEFT
    folder, or nothing.

    `members` is a name of `MEMBERS`; `base` takes the place of the base that the folder names.

    Raises UserError where there are no weights, or no base that fits them.
    """
    RunDirectory(path).refuse_results_only()
    if (path / "config.yaml").is_file():
        return _of_run(path, members, base)
    if (path / CONFIG_FILE).is_file():
        used = _base_of(path, base)
        name = path.resolve().name
        return [EvalTarget(BASE, BASE, used), EvalTarget(name, "adapter", used, path)]
    if (path / "config.json").is_file():
        return [EvalTarget(BASE, BASE, path)]
    raise UserError(
        f"{path} is not a run (config.yaml), a PEFT folder ({CONFIG_FILE}) or a base (config.json)"
    )


def find_target(name: str, base: Path | None = None) -> EvalTarget:
    """The one model that `RUN/MEMBER`, `RUN/best`, `RUN/base`, a PEFT folder or a base names;
    `base` or `nano` alone is the embedded one. Raises UserError."""
    path = Path(name)
    if name in (BASE, "nano") and not path.exists():
        path = base or Path(nano_base_path())
    if not (path.parent / "config.yaml").is_file():
        return find_targets(path, base=base)[-1]
    if path.name == BEST:
        return find_targets(RunDirectory(path.parent).member(BEST), base=base)[-1]
    targets = {target.name: target for target in find_targets(path.parent, base=base)}
    if path.name not in targets:
        raise UserError(f"{path.parent} has no member {path.name}; it has {', '.join(targets)}")
    return targets[path.name]


def _of_run(path: Path, members: str, base: Path | None) -> list[EvalTarget]:
    run = RunDirectory(path)
    folders = [folder for folder in sorted(run.members.glob("*_*")) if folder.is_dir()]
    if not folders:
        raise UserError(f"{path} has no members in {run.members}; resume it to save them")
    used = _base_of(folders[0], base)
    run.check_base(fingerprint(used), f" ({used}); name the right one by --base")
    last = deque(run.metrics(), maxlen=1)
    rated = metrics_of_members(last[0]) if last else {}
    all_members = [_member(folder, used, rated.get(folder.name, {})) for folder in folders]
    chosen = MEMBERS[members](all_members)
    if not chosen:
        names = ", ".join(target.name for target in all_members)
        raise UserError(f"--members={members}: {path} has none; it has {names}")
    return [EvalTarget(BASE, BASE, used), *chosen]


def _member(folder: Path, base: Path, figures: dict[str, Any]) -> EvalTarget:
    rating = Rating(figures["mu"], figures["sigma"]) if figures.get("mu") is not None else None
    return EvalTarget(folder.name, folder.name.partition("_")[0], base, folder, rating)


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


def _best(members: Sequence[EvalTarget]) -> list[EvalTarget]:
    """The solver with the best mu - 3 sigma; the first where nobody is rated."""
    solvers = [target for target in members if target.role != "teacher"]
    return sorted(
        solvers, key=lambda target: -target.rating.conservative if target.rating else 0.0
    )[:1]


MEMBERS: dict[str, Callable[[Sequence[EvalTarget]], list[EvalTarget]]] = {
    "all": list,
    "best": _best,
    "teachers": lambda members: [target for target in members if target.role != "student"],
    "students": lambda members: [target for target in members if target.role != "teacher"],
}
"""Which members of a run: the single agent counts as teacher and as student."""


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
    settings: RolloutSettings | None = None,
) -> LoadedRollout:
    """Loads targets that share a base and whose adapters have one shape; close its `rollout`.

    Raises UserError where an adapter does not fit, or where the rollout cannot serve it.
    """
    settings = settings or RolloutSettings()
    base = targets[0].base
    adapters = {target: load_adapter(target.folder) for target in targets if target.folder}
    shapes = {adapter.spec for adapter in adapters.values()} or {_NO_MEMBERS}
    if len(shapes) > 1:
        raise UserError(
            f"the adapters have {len(shapes)} shapes; measure adapters of one shape at a time"
        )
    settings.kind.check(1)
    # A rollout that loads its own weights needs the whole GPU.
    model, tokenizer = load_base(base, dtype, "cpu" if settings.kind.own_weights else device)
    # Fresh adapters add nothing (B is zero): that is the base.
    seeds = [torch.Generator().manual_seed(0) for _ in targets]
    bank = make_bank(model, shapes.pop(), seeds)
    for slot, target in enumerate(targets):
        if target in adapters:
            try:
                bank.write(slot, _complete(adapters[target], bank))
            except UserError as error:
                raise UserError(f"{target.folder} does not fit {base}: {error}") from error
    served = Served(
        model, bank, stop_ids(model, tokenizer), str(base), dtype, device.startswith("cuda")
    )
    rollout = settings.kind.make(served, settings)
    for slot in range(len(targets)):
        rollout.push(slot, bank.read(slot))
    limits = [limit for limit in (context_of(model), rollout.longest) if limit]
    slots = {target: slot for slot, target in enumerate(targets)}
    return LoadedRollout(rollout, tokenizer, min(limits, default=1 << 20), slots)


def _complete(adapter: Adapter, bank: Bank) -> Adapter:
    """The adapter as the bank keeps factors: float32, and zero where it leaves a layer alone."""
    factors = {
        name: Factors(torch.zeros_like(pair.A), torch.zeros_like(pair.B))
        for name, pair in bank.read(0).factors.items()
    }
    present = {n: Factors(pair.A.float(), pair.B.float()) for n, pair in adapter.factors.items()}
    return Adapter(adapter.spec, {**factors, **present})
