"""A child from the PEFT folders of its parents: `azr-population evolve`."""

import hashlib
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from azr_population.errors import UserError
from azr_population.registry import trust
from azr_population.weights.adapter import Adapter
from azr_population.weights.breeding import (
    Operator,
    all_operators,
    breed,
    get_operator,
)
from azr_population.weights.lowrank import convert
from azr_population.weights.peft_folder import (
    WEIGHTS_FILE,
    load_adapter,
    read_config,
    save_adapter,
)


def make_child(
    name: str,
    parents: Sequence[str],
    out: str,
    seed: int = 0,
    settings: Sequence[str] = (),
    rank: int | None = None,
) -> str:
    """Writes the child's PEFT folder; returns a one-line summary.

    Args:
        name: an operator, or several joined by `+`.
        parents: PEFT folders, the better parent first.
        out: the child's folder, which must not exist.
        seed: seed of the operator and of the conversion to another rank.
        settings: options of the operator, as `eps=0.1`.
        rank: the rank to which all parents are converted first.

    Raises:
        UserError: an unknown operator or option, the wrong number of parents, or parents of
            different bases or with the same weights; `out` exists.
    """
    trust(name)
    operator = get_operator(name)
    options = operator.resolve(_settings(settings))
    if len(parents) != operator.parents:
        plural = "parent" if operator.parents == 1 else "parents"
        raise UserError(f"{operator.name} takes {operator.parents} {plural}, not {len(parents)}")
    if os.path.lexists(out):
        raise UserError(f"{out} exists already; name another folder or remove it")
    base = _one_base(parents)
    adapters = [load_adapter(folder) for folder in parents]
    _refuse_twins(parents, adapters)
    generator = torch.Generator().manual_seed(seed)
    if rank is not None:
        alpha = adapters[0].spec.scaling * rank
        adapters = [convert(adapter, rank, alpha, generator) for adapter in adapters]
    child, breeding = breed({operator.name: 1.0}, adapters, generator, {operator.name: options})
    command = ["azr-population", "evolve", name, *parents, "--out", out, "--seed", str(seed)]
    command += [word for pair in settings for word in ("--set", pair)]
    command += ["--rank", str(rank)] if rank is not None else []
    lineage = _lineage(name, parents, seed, breeding.options)
    save_adapter(child, out, base, lineage | {"made by": f"`{shlex.join(command)}`"})
    spec = child.spec
    return (
        f"{out}: {operator.name} of {', '.join(parents)}; rank {spec.rank}, "
        f"alpha {spec.alpha:g}, {len(child.factors)} layers, seed {seed}"
    )


def operator_list() -> str:
    """All operators with their options, one paragraph each."""
    lines = []
    for operator in all_operators():
        lines.append(f"{operator.code}  {operator.name}  ({_parents(operator)})")
        lines.append(f"    {operator.summary}")
        for key, value in operator.defaults.items():
            low, high = operator.ranges[key]
            default = "drawn" if value is None else f"{value:g}"
            limits = f"{low:g}..{high:g}" if high < float("inf") else f"{low:g} or more"
            lines.append(f"    --set {key}={default}  ({limits})")
    lines.append("One after the other: svd_subspace+full_gaussian --set full_gaussian.eps=0.05")
    return "\n".join(lines)


def _parents(operator: Operator) -> str:
    return "1 parent" if operator.parents == 1 else "2 parents, the better one first"


def _settings(pairs: Sequence[str]) -> dict[str, float]:
    settings: dict[str, float] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if not equals or number != number:
            raise UserError(f"--set {pair}: give an option and a number, as in --set eps=0.1")
        settings[key] = int(number) if number.is_integer() else number
    return settings


def _one_base(folders: Sequence[str]) -> str:
    bases = [str(read_config(folder).get("base_model_name_or_path")) for folder in folders]
    for folder, base in zip(folders[1:], bases[1:], strict=True):
        if base != bases[0]:
            raise UserError(
                f"the parents have different bases: {bases[0]} ({folders[0]}) and {base} ({folder})"
            )
    return bases[0]


def _refuse_twins(folders: Sequence[str], parents: Sequence[Adapter]) -> None:
    if len(parents) < 2:
        return
    first, second = parents[0].factors, parents[1].factors
    if first.keys() == second.keys() and all(
        torch.equal(first[name].A, second[name].A) and torch.equal(first[name].B, second[name].B)
        for name in first
    ):
        raise UserError(
            f"the parents {folders[0]} and {folders[1]} hold the same weights; "
            "a crossover needs two different ones"
        )


def _lineage(
    operator: str, parents: Sequence[str], seed: int, options: dict[str, Any]
) -> dict[str, object]:
    settings = ", ".join(f"{key}={value:g}" for key, value in options.items()) or "none"
    lineage: dict[str, object] = {"operator": operator, "options": settings, "seed": seed}
    for number, folder in enumerate(parents, start=1):
        digest = hashlib.sha256((Path(folder) / WEIGHTS_FILE).read_bytes()).hexdigest()
        lineage[f"parent {number}"] = f"{folder} (sha256 of its weights: {digest[:16]})"
    return lineage
