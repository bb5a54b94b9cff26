"""A child from the PEFT folders of its parents: `azr-population evolve`."""

import inspect
from collections.abc import Sequence

import torch

from azr_population.errors import UserError
from azr_population.registry import trust
from azr_population.weights.breeding import Operator, all_operators, breed, get_operator
from azr_population.weights.model_card import base_name, is_nano
from azr_population.weights.operator import OPERATORS
from azr_population.weights.peft_folder import load_adapter, read_config, save_adapter


def write_child(
    name: str,
    parents: Sequence[str],
    out: str,
    seed: int = 0,
    settings: Sequence[str] = (),
) -> str:
    """Writes the child's PEFT folder `out`; returns a one-line summary.

    `name` is an operator, or a crossover and a mutation joined by `+`; `parents` are PEFT folders,
    the better one first; `settings` are the operator's options, as `eps=0.1`. Raises UserError: an
    unknown operator or option, the wrong number of parents, parents that do not fit, or `out`
    exists.
    """
    trust(name)
    operator = get_operator(name)
    options = operator.resolve(_settings(settings))
    if len(parents) != operator.parents:
        raise UserError(f"{operator.name} takes {_parents(operator)}; {len(parents)} are named")
    named = [str(read_config(folder).get("base_model_name_or_path") or "") for folder in parents]
    bases = {"nano" if is_nano(base) else base for base in named}
    if len(bases) > 1:
        raise UserError(f"the parents have different bases: {', '.join(sorted(bases))}")
    adapters = [load_adapter(folder) for folder in parents]
    generator = torch.Generator().manual_seed(seed)
    child, breeding = breed({operator.name: 1.0}, adapters, generator, {operator.name: options})
    base = named[0]
    facts: dict[str, object] = {
        "base": base_name(base),
        "operator": name,
        "options": ", ".join(f"{k}={value:g}" for k, value in breeding.options.items()) or "none",
        "seed": seed,
    }
    facts |= {f"parent {number}": folder for number, folder in enumerate(parents, start=1)}
    save_adapter(child, out, base, facts)
    spec = child.spec
    return (
        f"{out}: {operator.name} of {', '.join(parents)}; rank {spec.rank}, "
        f"alpha {spec.alpha:g}, {len(child.factors)} layers, seed {seed}"
    )


def operator_list() -> str:
    """All operators with their options, one paragraph each, those of installed packages last."""
    lines = []
    for operator in [*all_operators(), *map(get_operator, OPERATORS.installed())]:
        lines.append(f"{operator.code}  {operator.name}  ({_parents(operator)})")
        summary = (inspect.getdoc(operator.function) or "").partition("\n")[0]
        lines.append(f"    {summary}")
        for key, value in operator.defaults.items():
            low, high = operator.ranges[key]
            default = "drawn" if value is None else f"{value:g}"
            limits = f"{low:g}..{high:g}" if high < float("inf") else f"{low:g} or more"
            lines.append(f"    --set {key}={default}  ({limits})")
    lines.append("Both in turn: svd_subspace+full_gaussian --set full_gaussian.eps=0.05")
    return "\n".join(lines)


def _parents(operator: Operator) -> str:
    return "1 parent" if operator.parents == 1 else "2 parents, the better one first"


def _settings(pairs: Sequence[str]) -> dict[str, float]:
    settings: dict[str, float] = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        try:
            number = float(value)
            settings[key] = int(number) if number.is_integer() else number
        except ValueError as error:
            raise UserError(f"--set {pair}: give an option and a number: --set eps=0.1") from error
    return settings
