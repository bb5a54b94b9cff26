"""The plan of a local run: made from the configuration, checked, printed (`train --dry-run`)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from azr_population.config.schema import Config, PopulationConfig
from azr_population.engines.architecture import Architecture
from azr_population.engines.base_folder import base_folder, context_of, loading, meta_model
from azr_population.engines.base_model import load_tokenizer
from azr_population.engines.memory import GpuLayout, phases, size
from azr_population.engines.text import encode
from azr_population.engines.torch_rollout import refuse_recurrent
from azr_population.errors import UserError
from azr_population.hosts.loggers import check_loggers
from azr_population.method.config_check import faults, plan_page, population_lines
from azr_population.method.held_out_eval import eval_places
from azr_population.method.run_plan import RunPlan
from azr_population.runs.directory import RunDirectory, next_folder
from azr_population.weights.bank import target_layers


def resolve(config: Config) -> RunPlan:
    """The plan of a run, checked as far as it can be without its base; imports what dotted names
    name. Raises UserError: naming the key, the value and what would be accepted."""
    plan = RunPlan.of(config)
    for fault in faults(plan, check_loggers):
        raise fault
    return plan


def with_layout(plan: RunPlan) -> RunPlan:
    """The plan with what its processes hold; the base is read without its weights. Raises
    UserError: no causal LM or no tokenizer, no layers of the names in `base.lora.target_modules`,
    rows that do not fit its context, or a run that does not fit this machine."""
    path = plan.engine.base
    if plan.config.base.name == "smollm2" and path.startswith(".") and not Path(path).is_dir():
        raise UserError(
            f"base.path={path} is not there yet; make it by `python tools/bases/warm_up.py --out "
            f"{path}`, or give its folder",
            key="base.path",
        )
    folder = base_folder(path, weights=False)
    with loading(path):
        model = meta_model(folder)
        tokenizer = load_tokenizer(folder, plan.engine.prompt_date)
    if not plan.engine.rollout_class.own_weights:
        refuse_recurrent(model)
    longest, context = longest_row(plan, tokenizer), context_of(model)
    if context is not None and longest > context:
        raise UserError(
            f"rows of {longest} tokens (prompt, engine.max_proposal_tokens, max_answer_tokens)"
            f" do not fit the base's context of {context}; lower one of them, or use another base"
        )
    target_layers(model, plan.engine.lora)
    laid_out = replace(plan, layout=_layout(plan, model.config, longest))
    _check_memory(laid_out)
    return laid_out


def longest_row(plan: RunPlan, tokenizer: Any) -> int:
    """Tokens of the longest row: a prompt that proposes and the proposal, or a prompt that holds a
    proposal and what is written in answer. The chat template counts, `task.example_tasks` do
    not."""
    format, longest = plan.format, 0
    for kind in plan.types:
        (prompt,) = encode(tokenizer, [format.propose_prompt(kind)], format.chat)
        # Solving is asked for in about as many words, and the proposal.
        longest = max(longest, len(prompt) + sum(_row_limits(plan, kind)))
    return longest


def _layout(plan: RunPlan, model_config: Any, longest: int) -> GpuLayout | None:
    """Contents of each process, with rows of at most `longest` tokens."""
    architecture, population = Architecture.of(model_config), plan.config.population
    if architecture is None:
        return None
    written = max(max(_row_limits(plan, kind)) for kind in plan.types)
    return GpuLayout.of(
        architecture,
        plan.engine,
        longest - written,
        written,
        rows=attempt_rows(population) + replay_rows(population),
        ranks=plan.config.engine.workers,
    )


def peak(plan: RunPlan) -> dict[str, float]:
    """Bytes by what needs them, in the phase of a step that takes most; empty without a layout."""
    if plan.layout is None:
        return {}
    parts = phases(plan.layout, room_on(plan.config.engine.device)).values()
    return max(parts, key=lambda by_part: sum(by_part.values()))


def memory_line(plan: RunPlan) -> str:
    """A sentence on the memory that each process of the run takes."""
    parts, engine = peak(plan), plan.config.engine
    if not parts:
        return "memory: not worked out for a base of this kind"
    listed = ", ".join(f"{name} {size(amount)}" for name, amount in parts.items() if amount)
    each = f" in each of {engine.workers} processes" if engine.workers > 1 else ""
    return (
        f"memory on {engine.device}{each}: at most {size(sum(parts.values()))} beside Python and "
        f"its libraries ({listed})"
    )


def _check_memory(plan: RunPlan) -> None:
    """Raises UserError: this machine has no room for the run; a Ray that runs elsewhere
    (RAY_ADDRESS) is not looked at."""
    engine, needed = plan.config.engine, sum(peak(plan).values())
    total = needed * (engine.workers if engine.device == "cpu" else 1)
    elsewhere = engine.name == "ray" and os.environ.get("RAY_ADDRESS")
    if total > (room := room_on(engine.device)) and not elsewhere:
        raise UserError(
            f"engine.device={engine.device} has {size(room)} of memory, and the run takes up to "
            f"{size(total)} ({memory_line(plan)}); lower population.teachers, population.students, "
            "base.lora.rank, engine.generate_batch_size, engine.micro_batch_tokens or "
            "engine.workers",
            key="engine.device",
        )


def room_on(device: str) -> int:
    """Bytes of memory that the device has, used or not."""
    if device == "cuda" and torch.cuda.is_available():
        return int(torch.cuda.get_device_properties(0).total_memory)
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _row_limits(plan: RunPlan, kind: str) -> tuple[int, int]:
    """Tokens of the longest proposal of such a task, and of the longest answer to it."""
    engine, format = plan.config.engine, plan.format
    return (
        engine.max_proposal_tokens or format.max_new_tokens(kind, "propose"),
        engine.max_answer_tokens or format.max_new_tokens(kind, "solve"),
    )


def proposal_rows(population: PopulationConfig) -> int:
    """Rows that a step's teachers write."""
    return population.proposal_batch_size * max(1, population.teachers)


def attempt_rows(population: PopulationConfig) -> int:
    """Rows that a step's students write at most at new tasks."""
    return proposal_rows(population) * population.samples_per_task


def replay_rows(population: PopulationConfig) -> int:
    """Rows that they write at tasks of earlier steps."""
    tasks = population.replay_batch_size * max(1, population.students)
    return tasks * population.samples_per_task


def page(plan: RunPlan) -> list[str]:
    """The dry run's page. A folder that is in use is noted: the plan holds for another one."""
    folder = plan.config.run.dir or str(next_folder(plan.config.population.name))
    lines = [*_lines(plan, folder)]
    try:
        RunDirectory(folder).refuse_unless_new()
    except UserError as error:
        lines.append(f"note: {error}")
    return plan_page(lines, (), "--dry-run")


def _lines(plan: RunPlan, folder: str) -> Iterator[str]:
    """The plan in words: who plays, what a step is at most, what it needs of the memory."""
    config, roster = plan.config, plan.roster
    population, evals, run = config.population, config.eval, config.run
    yield from population_lines(plan, config.base.name)
    yield (
        f"{run.steps} steps from seed {config.seed}, into {folder}, a checkpoint every "
        f"{run.checkpoint_every}"
    )
    yield (
        f"a step: {proposal_rows(population)} proposals, at most {attempt_rows(population)} "
        f"attempts at them and {replay_rows(population)} at earlier tasks; at most "
        f"{population.batch_size * len(roster)} rows trained on ({population.batch_size} a member)"
    )
    if evals.every:
        chosen, _ = eval_places(plan.domain, config)
        count = evals.tasks_per_type * len(plan.types) if chosen is None else len(chosen)
        yield (
            f"eval: {count} tasks for each of "
            f"{len(roster.students)} members after the first step, every {evals.every}, after the "
            "last; compare --plan says which differences between runs can be shown"
        )
    yield memory_line(plan)
