"""Stored members: found by their address, and loaded to answer.

An address is a run's folder (all its members), RUN/MEMBER, RUN/base, a PEFT folder, a base's folder
or `nano`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from azr_population.bases.nano import nano_base_path
from azr_population.config.effects import flat
from azr_population.config.load import config_from_file, load_config
from azr_population.config.schema import Config
from azr_population.console.output import say
from azr_population.domains.code.formats import base_format
from azr_population.engines.assembly import assemble
from azr_population.engines.base_folder import context_of
from azr_population.engines.base_model import fingerprint, load_base, load_tokenizer, token_scores
from azr_population.engines.engine import EngineSettings
from azr_population.engines.text import TextEngine
from azr_population.errors import UserError
from azr_population.method.members import Member, Role
from azr_population.method.phases import StepContext
from azr_population.method.run_plan import RunPlan
from azr_population.reading.run_data import RunData
from azr_population.referee import Referee, RefereeSettings
from azr_population.runs.directory import RunDirectory, member_folders, split_address, steps
from azr_population.runs.records import best_of, member_scores, metrics_of_members, role_of
from azr_population.versions import installed
from azr_population.weights.adapter import Adapter, LoraSpec
from azr_population.weights.founders import as_member
from azr_population.weights.model_card import is_nano
from azr_population.weights.peft_folder import (
    CONFIG_FILE,
    WEIGHTS_FILE,
    load_adapter,
    read_config,
    read_spec,
)

BASE, BEST = "base", "best"
"""Names beside those of the members: the bare base, and the copy of the best student."""
NO_MEMBERS = LoraSpec(1, 1.0, ("all-linear",))
"""The shape of the slot of a bare base."""
MOST = 8
"""Snapshots that are taken of a run by default."""


@dataclass(frozen=True)
class StoredMember:
    """A stored member, or a base without one."""

    name: str
    base: Path
    """The base's folder."""
    folder: Path | None = None
    """Its PEFT folder; None for the base."""
    run: RunData | None = field(default=None, compare=False)
    """The run that stored it, if any."""
    step: int = 0
    """The step of its run after which it was stored; 0 of a base, and without a run."""

    @property
    def metrics(self) -> Mapping[str, Any]:
        """Its metrics at that step; the single agent has no rating."""
        lines = self.run.lines if self.run else ()
        line = next((line for line in lines if line["step"] == self.step), {})
        return metrics_of_members(line).get(self.name, {})

    @property
    def solves(self) -> bool:
        """Whether it is not a teacher."""
        return role_of(self.name) != "teacher"

    @property
    def proposes(self) -> bool:
        """Whether it is not a student; the best member of a run with teachers is one."""
        has_teachers = self.run and self.run.value("population", "teachers")
        return role_of(self.name) != "student" and not (self.name == BEST and has_teachers)

    @property
    def run_label(self) -> str:
        """The name of its run's folder, of a seed with its arm's; empty without a run."""
        return label_of(self.run.path) if self.run else ""

    @property
    def label(self) -> str:
        """`run/student_0@75`; the name alone without a run."""
        return f"{self.run_label}/{self.name}@{self.step}" if self.run else self.name

    def adapter(self) -> Adapter:
        """Its adapter, on the CPU. Raises UserError: it does not load, or this is a base."""
        if self.folder is None:
            raise UserError(f"{self.base} is a base and has no adapter; name a member")
        return load_adapter(self.folder)

    @property
    def weights(self) -> str:
        """Hash of its weights: twelve hex digits for a member, the base's fingerprint. Raises
        UserError: there are no weights."""
        if self.folder is None:
            return fingerprint(self.base)
        file = self.folder / WEIGHTS_FILE
        if not file.is_file():
            raise UserError(f"{self.folder} has no weights: {WEIGHTS_FILE} is missing")
        config = read_config(self.folder)
        digest = hashlib.sha256(file.read_bytes())
        digest.update(f"{config['r']} {config['lora_alpha']}".encode())
        return digest.hexdigest()[:12]


def label_of(path: Path) -> str:
    """The name of a folder; of `seed_1`, and of AZR's `population`, with that of the folder it is
    in: `4t4s_seed_1`."""
    parts = path.resolve().parts
    shared = parts[-1].startswith("seed_") or parts[-1] == "population"
    return "_".join(parts[-2:]) if shared else parts[-1]


def find_members(
    address: str | Path, base: Path | None = None, every: int | None = 0
) -> list[StoredMember]:
    """The base, first, and the members at an address, oldest first.

    Args:
        address: see the module's docstring; the run may be local or inside AZR.
        base: takes the place of the base that the folder names.
        every: also snapshots of the run at multiples of this step; 0: none; None: all, or `MOST`
            evenly spread ones of more.

    Raises UserError: there are no weights at the address, no such snapshots, or no base that fits.
    """
    path = Path(address)
    if str(address) in (BASE, "nano") and not path.exists():
        path = base or Path(nano_base_path())
    directory, name = split_address(path)
    directory.refuse_results_only()
    if directory.exists:
        return _of_run(directory, name, base, every)
    if (path / CONFIG_FILE).is_file():
        used = _base_of(path, base)
        return [StoredMember(BASE, used), StoredMember(path.resolve().name, used, path)]
    if (path / "config.json").is_file():
        return [StoredMember(BASE, path)]
    raise UserError(
        f"{path} is not a run (config.yaml), a PEFT folder ({CONFIG_FILE}) or a base (config.json)"
    )


def one_member(
    address: str | Path, base: Path | None = None, or_base: bool = False
) -> StoredMember:
    """The only member at an address, or the base where it has none and that will do. Raises
    UserError: there are several, or none."""
    bare, *others = find_members(address, base)
    members = others or [bare] * or_base
    if len(members) == 1:
        return members[0]
    names = f" ({', '.join(dict.fromkeys(member.name for member in members))})" if members else ""
    raise UserError(f"{address} is not one member; give RUN/MEMBER{names}, or a PEFT folder")


def _of_run(
    directory: RunDirectory, name: str | None, base: Path | None, every: int | None
) -> list[StoredMember]:
    """The base and the run's members; with a `name` that member alone."""
    run, path = RunData(directory.path), directory.path
    last, stored = run.stored_step, _snapshots(directory, every)
    if last not in dict(stored):
        stored = sorted([*stored, (last, directory.members)])
    folders = [(step, folder) for step, parent in stored for folder in member_folders(parent)]
    if not folders:
        raise UserError(f"{path} has no members in {directory.members}; resume it to save them")
    used = _base_of(folders[0][1], base)
    directory.check_base(fingerprint(used), f" ({used}); name the right one by --base")
    if name and name != BASE:
        names = dict.fromkeys(folder.name for _, folder in folders)
        folders = [(step, folder) for step, folder in folders if folder.name == name]
        if name == BEST and (best := directory.members / BEST).is_dir():
            scores = member_scores(run.lines, run.read("validations"))
            scored = best_of(score for score in scores if score.step <= last)
            folders = [(scored.step if scored else last, best)]
        if not folders:
            raise UserError(f"{path} has no member {name}; it has base, {', '.join(names)}")
    members = [StoredMember(f.name, used, f, run, step) for step, f in folders if name != BASE]
    return [StoredMember(BASE, used, run=run), *members]


def _snapshots(directory: RunDirectory, every: int | None) -> list[tuple[int, Path]]:
    stored = steps(directory.snapshots)
    if every is None:
        apart = max(1.0, (len(stored) - 1) / (MOST - 1))
        chosen = {round(apart * number) for number in range(MOST)}
        return [snapshot for number, snapshot in enumerate(stored) if number in chosen]
    at_multiples = [(step, path) for step, path in stored if every and not step % every]
    if every and not at_multiples:
        have = ", ".join(str(step) for step, _ in stored) or "none; they need run.snapshot_every=N"
        raise UserError(
            f"{directory.path} has no snapshot at a multiple of {every}; of steps: {have}"
        )
    return at_multiples


def _base_of(adapter: Path, base: Path | None) -> Path:
    """The folder of the base that an adapter names, or the given one."""
    if base:
        if not base.is_dir():
            raise UserError(f"--base {base} is not a folder; give the folder of {adapter}'s base")
        return base
    named = str(read_config(adapter).get("base_model_name_or_path") or "")
    path = Path(os.path.expanduser(named))
    # The embedded base has another path on every machine.
    if not path.is_dir() and is_nano(named):
        path = Path(nano_base_path())
    if not named or not path.is_dir():
        raise UserError(
            f"{adapter}: its base {named or '(not named)'} is not a folder here; give --base"
        )
    return path


class LoadedMembers:
    """Members on one base, in an engine that holds as many at a time as it has slots."""

    def __init__(
        self,
        members: Sequence[StoredMember],
        settings: EngineSettings,
        slots: int | None = None,
        scores: bool = True,
    ) -> None:
        """Loads the base.

        Args:
            members: those that may be asked; not empty.
            settings: how; base, names and shape of adapters are the members'.
            slots: as many as there are members by default.
            scores: whether log-probabilities are wanted. A sampler with weights of its own then
                shares the device with the learner, and a canary checks what it serves.

        Raises UserError: the members have several bases, or the engine cannot serve them.
        """
        base = members[0].base
        for other in {member.base for member in members} - {base}:
            if fingerprint(other) != fingerprint(base):
                raise UserError(f"{other} is another base than {base}; measure them one by one")
        names = tuple(member.name for member in members)[:slots]
        spec = _common_spec([read_spec(member.folder) for member in members if member.folder])
        settings = replace(settings, base=str(base), names=names, lora=spec)
        kind = settings.rollout_class
        kind.check(spec.rank)
        device = "cpu" if kind.own_weights and not scores else settings.device
        self.model, self.tokenizer = load_base(
            base, settings.dtype, device, settings.quantization, settings.prompt_date
        )
        generators = [torch.Generator().manual_seed(0) for _ in names]
        self.engine = assemble(self.model, self.tokenizer, settings, generators, canary=scores)
        limits = [limit for limit in (context_of(self.model), self.engine.rollout.longest) if limit]
        self.context_length = min(limits, default=1 << 20)
        """Tokens that a prompt and its completion may have together."""
        self._fresh, self._size = self.engine.read(0), len(names)
        self._slots: dict[StoredMember, int] = {}

    def load(self, member: StoredMember) -> Member:
        """Puts a member into a slot if it is not in one, in place of the oldest if none is
        free."""
        if member not in self._slots:
            full = len(self._slots) == self._size
            slot = self._slots.pop(next(iter(self._slots))) if full else len(self._slots)
            # A fresh adapter adds nothing (B is zero): that is the base.
            fresh = member.folder is None
            adapter = self._fresh if fresh else self.fitted(member.adapter(), str(member.folder))
            self.engine.write(slot, adapter)
            self._slots[member] = slot
        return Member(member.name, Role(role_of(member.name) or "agent"), self._slots[member])

    def fitted(self, adapter: Adapter, name: str = "the adapter") -> Adapter:
        """The adapter in the shape of the slots. Raises UserError: it does not fit the base."""
        generator = torch.Generator().manual_seed(0)
        return as_member(adapter, self._fresh, generator, f"{name} and the base")

    @torch.inference_mode()
    def token_scores(self, adapter: Adapter | None, ids: list[int]) -> Tensor:
        """The log-probabilities [tokens - 1] of all tokens but the first, by the base with this
        adapter (see `fitted`), which takes slot 0; None: by the bare base."""
        if adapter is None:
            return token_scores(self.model, ids)
        self._slots.clear()
        self.engine.learner.write(0, adapter)
        with self.engine.learner.bank.adapters_active(torch.tensor([0])):
            return token_scores(self.model, ids)

    def close(self) -> None:
        """Frees what samples."""
        self.engine.rollout.close()


def _common_spec(specs: Sequence[LoraSpec]) -> LoraSpec:
    """The shape of slots that hold adapters of these: their highest rank, all their layers."""
    if not specs:
        return NO_MEMBERS
    rank = max(spec.rank for spec in specs)
    layers = sorted({name for spec in specs for name in spec.target_modules})
    return LoraSpec(rank, specs[0].alpha * rank / specs[0].rank, tuple(layers))


class MemberSet(LoadedMembers):
    """Members, one at a time, with the domain, the prompts and the referee that judge them."""

    def __init__(self, members: Sequence[StoredMember], plan: RunPlan, referee: Referee) -> None:
        super().__init__(members, plan.engine, slots=1)
        self.members = tuple(members)
        self.plan = plan
        engine = TextEngine(self.engine, self.tokenizer, plan.format.chat)
        self.context = StepContext(engine, referee, plan.domain, plan.format)


@contextmanager
def open_members(
    members: Sequence[StoredMember], overrides: Sequence[str] = ()
) -> Iterator[MemberSet]:
    """Loads members as the first one's run was set up; without a run as the base was made.

    Args:
        members: on one base.
        overrides: of the run's configuration, such as `eval.samples=8`.

    Raises UserError: they do not fit together.
    """
    plan = plan_of(members, overrides)
    limits = RefereeSettings(**plan.config.referee.model_dump())
    with Referee(limits) as referee, closing(MemberSet(members, plan, referee)) as loaded:
        yield loaded


def plan_of(members: Sequence[StoredMember], overrides: Sequence[str] = ()) -> RunPlan:
    """The plan by which these members are asked and judged; see `open_members`."""
    by_run: dict[int, StoredMember] = {}
    for member in members:
        by_run.setdefault(id(member.run), member)
    configs = [(member, *_config(member, overrides)) for member in by_run.values()]
    # PEFT folders had no rules and no prompts, and runs inside AZR had AZR's: they are asked as the
    # others are.
    ours = [each for each in configs if each[2]] or configs[:1]
    (first, config, named), *others = ours
    for member, _, _ in configs:
        if named and member.run and member.run.inside_azr:
            say(f"{member.label}, of a run inside AZR, is asked and judged as {first.label}")
    for other, theirs, _ in others:
        if theirs.task.domain != config.task.domain:
            raise UserError(f"{other.label} and {first.label} have tasks of different domains")
        if theirs.base.prompt_format != config.base.prompt_format:
            raise UserError(f"{other.label} and {first.label} have different prompt formats")
        if differing := _other_rules(theirs, config):
            say(f"{other.label} is judged by {first.label}'s rules; it had {', '.join(differing)}")
    name = config.base.prompt_format
    if not named:
        name = base_format(first.base, load_tokenizer(first.base))
    device = config.engine.device
    if device.startswith("cuda") and not torch.cuda.is_available():
        say(f"torch sees no GPU, which {first.label} was set up for: computing on the CPU")
        device = "cpu"
    here = {"name": "torch", "workers": 1, "device": device}
    if config.engine.rollout == "vllm" and not installed("vllm"):
        say(f"vLLM, which sampled for {first.label}, is not installed here: torch samples")
        here["rollout"] = "torch"
    engine = config.engine.model_copy(update=here)
    base = config.base.model_copy(update={"prompt_format": name, "path": str(first.base)})
    return RunPlan.of(config.model_copy(update={"engine": engine, "base": base}))


def _other_rules(config: Config, used: Config) -> list[str]:
    """The settings of tasks and the referee in which a configuration differs, `key=value`."""
    theirs, ours = (
        flat({"task": each.task.model_dump(), "referee": each.referee.model_dump()})
        for each in (config, used)
    )
    return [f"{key}={theirs[key]}" for key in theirs if theirs[key] != ours.get(key)]


def _config(member: StoredMember, overrides: Sequence[str]) -> tuple[Config, bool]:
    """The configuration of the member's run, and whether it names the format of prompts: a run
    inside AZR has AZR's configuration, and is asked by the defaults of local runs on its
    `population.prompt_date`."""
    if member.run and member.run.value("base", "prompt_format"):
        return config_from_file(member.run.directory.config_file, overrides), True
    day = member.run.value("population", "prompt_date") if member.run else None
    return load_config([*([f"base.prompt_date={day}"] if day else []), *overrides]), False
