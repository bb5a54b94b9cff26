"""What a local run is going to be, told before anything is started: `train --dry-run`."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import nn

from azr_population.config.schema import Config
from azr_population.engines import token_log_probs, torch_rollout
from azr_population.engines.base_folder import context_of
from azr_population.hosts.local.check import check_config
from azr_population.hosts.local.engine import (
    check_context,
    check_memory,
    held_memory,
    longest_row,
    outlined,
    row_limits,
    size,
)
from azr_population.method.check import turnover_line
from azr_population.method.members import Roster
from azr_population.method.shares import proposal_rows
from azr_population.method.tools import domain_of
from azr_population.runs import RunDirectory


def plan(config: Config) -> list[str]:
    """The run in lines: who plays, what a step is at most, what it needs of the memory.

    Raises:
        UserError: what would also stop the run at its start, as far as it can be known here.
    """
    RunDirectory(config.run.dir).refuse_unless_new()
    check_config(config)
    model, tokenizer = outlined(config)
    model = model.to(getattr(torch, config.base.dtype))
    check_context(model, longest_row(config, tokenizer, references=0))
    check_memory(config, model)
    population, exam = config.population, config.exam
    roster = Roster.make(population.teachers, population.students)
    weights = sum(parameter.numel() for parameter in model.parameters())
    lines = [
        f"{population.name} on {config.base.name}: {', '.join(member.name for member in roster)}; "
        f"{weights / 1e6:,.1f} million weights in {config.base.dtype}",
        f"{config.run.steps} steps from seed {config.seed}, into {config.run.dir}, a checkpoint "
        f"every {config.run.checkpoint_every}",
        f"a step: {_proposals(config)} proposals, at most {_attempts(config)} attempts at them; at "
        f"most {population.rows * len(roster)} rows trained on ({population.rows} a member)",
        turnover_line(config.evolution, population.teachers, population.students),
    ]
    if exam.every:
        kinds = len(domain_of(config).wanted(config.task.types))
        lines.append(
            f"exam: {exam.tasks_per_type * kinds} tasks for each of {len(roster.students)} members "
            f"before the first step, every {exam.every}, after the last"
        )
    context, longest = context_of(model), longest_row(config, tokenizer)
    if context is not None and longest > context:
        lines.append(
            f"a row with {config.task.references} references of the greatest length would have "
            f"{longest} tokens, the base's context is {context}: fewer task.references are safer"
        )
    parts = memory(config, model, longest)
    told = ", ".join(f"{name} {size(amount)}" for name, amount in parts.items() if amount)
    each = f" in each of {config.engine.workers} processes" if config.engine.workers > 1 else ""
    lines.append(
        f"memory on {config.engine.device}{each}: at most {size(sum(parts.values()))} beside "
        f"Python and its libraries ({told})"
    )
    return lines


def memory(config: Config, model: nn.Module, longest: int) -> dict[str, int]:
    """Bytes by what needs them, by arithmetic, with rows of at most `longest` tokens; the cache and
    the update are the most they can be, and never at the same time, so the larger counts."""
    held = held_memory(config, model)
    cache, update = _cache(config, model, longest), _logits(config, model)
    return held | ({"update": update} if update > cache else {"KV cache": cache})


def _proposals(config: Config) -> int:
    roster = Roster.make(config.population.teachers, config.population.students)
    return sum(proposal_rows(config.population.rows, member.role) for member in roster.teachers)


def _attempts(config: Config) -> int:
    return _proposals(config) * config.population.attempts


def _cache(config: Config, model: nn.Module, longest: int) -> int:
    """Keys and values of a full batch in the torch rollout."""
    shape: Any = model.config
    heads = getattr(shape, "num_key_value_heads", None) or shape.num_attention_heads
    width = getattr(shape, "head_dim", None) or shape.hidden_size // shape.num_attention_heads
    a_token = 2 * shape.num_hidden_layers * heads * width * _bytes(config)
    rows = min(config.engine.generate_rows, max(_proposals(config), _attempts(config)))
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
