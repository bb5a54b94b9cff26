"""What a local run takes of its device's memory, by arithmetic, before anything is allocated."""

import os
from typing import Any, cast

import torch
from torch import nn

from azr_population.config.schema import Config
from azr_population.engines import token_log_probs, torch_rollout
from azr_population.errors import UserError
from azr_population.method.members import Roster
from azr_population.method.shares import proposal_rows
from azr_population.method.tools import domain_of, format_of
from azr_population.weights.adapter import LoraSpec
from azr_population.weights.bank import Bank


def check_memory(config: Config, model: nn.Module, longest: int) -> None:
    """Refuses a run that this machine has no room for.

    The processes of a Ray share this machine's memory, and have a GPU each. A Ray that runs
    elsewhere (RAY_ADDRESS) is not looked at.

    Raises UserError: with the sum and its parts.
    """
    workers = 1
    if config.engine.name == "ray":
        if os.environ.get("RAY_ADDRESS"):
            return
        workers = config.engine.workers if config.engine.device == "cpu" else 1
    parts, room = memory(config, model, longest), room_on(config.engine.device)
    total = workers * sum(parts.values())
    if total > room:
        told = ", ".join(f"{name} {size(amount)}" for name, amount in parts.items() if amount)
        each = f", in each of {workers} processes" if workers > 1 else ""
        raise UserError(
            f"engine.device={config.engine.device} has {size(room)} of memory, and the run takes "
            f"up to {size(total)} ({told}{each}); lower population.teachers, population.students, "
            "base.lora.rank, engine.generate_rows, engine.micro_batch_tokens or engine.workers"
        )


def memory(config: Config, model: nn.Module, longest: int) -> dict[str, int]:
    """Bytes by what needs them, by arithmetic, with rows of at most `longest` tokens; the cache and
    the update are the most they can be, and never at the same time, so the larger counts."""
    held = _held(config, model)
    cache, update = _cache(config, model, longest), _logits(config, model)
    return held | ({"update": update} if update > cache else {"KV cache": cache})


def _held(config: Config, model: Any) -> dict[str, int]:
    """Bytes that a run holds from its start to its end, by what needs them; `model` is the base,
    or its outline."""
    bank = Bank(model, lora_of(config), len(slot_names(config)))
    a_member = sum(factor.numel() for factor in bank.parameters_of(0)) * 4
    dtype: torch.dtype = getattr(torch, config.base.dtype)
    return {
        "base": sum(parameter.numel() for parameter in model.parameters()) * dtype.itemsize,
        "members": a_member * bank.slots,
        # Past opponents have a place and do not learn.
        "AdamW": 2 * a_member * config.population.members,
    }


def room_on(device: str) -> int:
    """Bytes of memory that the device has, used or not."""
    if device == "cuda" and torch.cuda.is_available():
        return int(torch.cuda.get_device_properties(0).total_memory)
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def size(amount: float) -> str:
    """Bytes as people read them."""
    return f"{amount / 1e9:.1f} GB" if amount >= 1e9 else f"{amount / 1e6:.0f} MB"


def row_limits(config: Config, kind: str) -> tuple[int, int]:
    """Tokens of the longest proposal of such a task, and of the longest answer to it."""
    format, engine = format_of(config), config.engine
    return (
        engine.propose_tokens or format.max_new_tokens(kind, "propose"),
        engine.solve_tokens or format.max_new_tokens(kind, "solve"),
    )


def slot_names(config: Config) -> list[str]:
    """Of the slots: the members, and behind them the place of past opponents if there are any."""
    roster = Roster.make(config.population.teachers, config.population.students)
    return [member.name for member in roster] + ["past"] * (config.matchmaking.past > 0)


def lora_of(config: Config) -> LoraSpec:
    lora = config.base.lora
    return LoraSpec(lora.rank, lora.alpha, tuple(lora.target_modules))


def proposals(config: Config) -> int:
    roster = Roster.make(config.population.teachers, config.population.students)
    return sum(proposal_rows(config.population.rows, member.role) for member in roster.teachers)


def attempts(config: Config) -> int:
    return proposals(config) * config.population.attempts


def _cache(config: Config, model: nn.Module, longest: int) -> int:
    """Keys and values of a full batch in the torch rollout."""
    shape: Any = model.config
    heads = getattr(shape, "num_key_value_heads", None) or shape.num_attention_heads
    width = getattr(shape, "head_dim", None) or shape.hidden_size // shape.num_attention_heads
    a_token = 2 * shape.num_hidden_layers * heads * width * _bytes(config)
    rows = min(config.engine.generate_rows, max(proposals(config), attempts(config)))
    return min(rows * longest, torch_rollout.TOKENS) * int(a_token)


def _logits(config: Config, model: nn.Module) -> int:
    """Logits of an update's piece, as computed, in float32, as log-softmax, and two gradients; a
    row that is a piece by itself has them of what was written only."""
    types = domain_of(config).wanted(config.task.types)
    written = max(max(row_limits(config, kind)) for kind in types)
    tokens = max(config.engine.micro_batch_tokens, written)
    logits = tokens * cast(Any, model.config).vocab_size
    return int(min(logits, token_log_probs.NUMBERS) * (2 * _bytes(config) + 3 * 4))


def _bytes(config: Config) -> int:
    return int(getattr(torch, config.base.dtype).itemsize)
