"""`azr-population evolve`: a child from the PEFT folders of its parents."""

import argparse
import hashlib
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from azr_population.arguments import Parser, positive
from azr_population.errors import UserError
from azr_population.registry import trust
from azr_population.weights.adapter import Adapter
from azr_population.weights.breeding import (
    Operator,
    all_operators,
    breed,
    get_operator,
)
from azr_population.weights.conversion import convert
from azr_population.weights.peft_folder import (
    WEIGHTS_FILE,
    load_adapter,
    read_config,
    save_adapter,
)

DESCRIPTION = """\
Makes a child adapter from the PEFT folders of its parents, by a weight-space operator.

Crossovers take two parents, the better one first. Operators can follow one another:
svd_subspace+full_gaussian (their options are then named svd_subspace.k, full_gaussian.eps).
The child is a PEFT folder of the same rank; its README.md tells its lineage."""


def main(argv: Sequence[str]) -> int:
    """Runs the command; returns the exit code. Raises UserError for what the user can mend."""
    arguments = _parser().parse_args(argv)
    if arguments.list:
        print(listing())
        return 0
    if not arguments.operator:
        raise UserError("name an operator and its parents, or --list the operators")
    if arguments.out is None:
        raise UserError("name the child's folder: --out FOLDER")
    trust(arguments.operator)
    operator = get_operator(arguments.operator)
    options = operator.resolve(_settings(arguments.set))
    if len(arguments.parents) != operator.parents:
        plural = "parent" if operator.parents == 1 else "parents"
        raise UserError(
            f"{operator.name} takes {operator.parents} {plural}, not {len(arguments.parents)}"
        )
    if os.path.lexists(arguments.out):
        raise UserError(f"{arguments.out} exists already; name another folder or remove it")
    base = _one_base(arguments.parents)
    parents = [load_adapter(folder) for folder in arguments.parents]
    _refuse_twins(arguments.parents, parents)
    generator = torch.Generator().manual_seed(arguments.seed)
    if arguments.rank is not None:
        alpha = parents[0].spec.scaling * arguments.rank
        parents = [convert(parent, arguments.rank, alpha, generator) for parent in parents]
    child = breed({operator.name: 1.0}, parents, generator, {operator.name: options})
    save_adapter(child.adapter, arguments.out, base, _lineage(arguments, child.options))
    spec = child.adapter.spec
    print(
        f"{arguments.out}: {operator.name} of {', '.join(arguments.parents)}; rank {spec.rank}, "
        f"alpha {spec.alpha:g}, {len(child.adapter.factors)} layers, seed {arguments.seed}"
    )
    return 0


def listing() -> str:
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


def _parser() -> Parser:
    parser = Parser(
        prog="azr-population evolve",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("operator", nargs="?", help="the operator's name, see --list")
    parser.add_argument("parents", nargs="*", metavar="parent", help="a PEFT adapter folder")
    parser.add_argument("--out", metavar="FOLDER", help="where the child goes; must not exist")
    parser.add_argument("--seed", type=_seed, default=0, help="same seed, same child (default 0)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="OPTION=VALUE",
        help="an option of the operator; may be repeated",
    )
    parser.add_argument(
        "--rank",
        type=positive,
        help="bring all parents to this rank first, and to the first parent's alpha/rank: exact "
        "for a higher rank, the best approximation for a lower one",
    )
    parser.add_argument("--list", action="store_true", help="list the operators and their options")
    return parser


def _seed(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**63:
        raise argparse.ArgumentTypeError(f"{text} is not a seed; it is a whole number, 0 or more")
    return int(text)


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


def _lineage(arguments: argparse.Namespace, options: dict[str, Any]) -> dict[str, object]:
    settings = ", ".join(f"{key}={value:g}" for key, value in options.items()) or "none"
    lineage: dict[str, object] = {"operator": arguments.operator, "options": settings}
    lineage["seed"] = arguments.seed
    for number, folder in enumerate(arguments.parents, start=1):
        digest = hashlib.sha256((Path(folder) / WEIGHTS_FILE).read_bytes()).hexdigest()
        lineage[f"parent {number}"] = f"{folder} (sha256 of its weights: {digest[:16]})"
    words = ["azr-population", "evolve", arguments.operator, *arguments.parents]
    words += ["--out", arguments.out, "--seed", str(arguments.seed)]
    words += [word for pair in arguments.set for word in ("--set", pair)]
    words += ["--rank", str(arguments.rank)] if arguments.rank is not None else []
    lineage["made by"] = f"`{shlex.join(words)}`"
    return lineage
