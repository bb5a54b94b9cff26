"""What a local run is played on: the engine, in this process or a group of workers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from azr_population.bases.nano import nano_base_path
from azr_population.config.schema import (
    BaseConfig,
    Config,
    EngineConfig,
    MatchmakingConfig,
    MembersConfig,
    PopulationConfig,
)
from azr_population.domains.format import Format
from azr_population.domains.known import find_domain
from azr_population.domains.task import Task
from azr_population.engines.assembly import EngineSettings, lora_of, text_engine
from azr_population.engines.base_folder import base_folder, context_of, meta_model
from azr_population.engines.base_model import load_tokenizer
from azr_population.engines.memory import Architecture, Load, phases, size
from azr_population.engines.rollouts import RolloutSettings
from azr_population.engines.text import TextEngine, encode
from azr_population.errors import UserError, first_line
from azr_population.method.members import Roster
from azr_population.runs.streams import Streams
from azr_population.weights.bank import target_layers


@contextmanager
def open_engine(config: Config) -> Iterator[TextEngine]:
    """The engine of the run; with it end the processes that it started. Raises UserError: the base
    does not load, or something cannot serve or hold it."""
    chat = find_domain(config.task.domain).format(config.base.prompt_format).chat
    _, tokenizer = check_base(config)
    settings = _engine_settings(config)
    if config.engine.name == "ray":
        # Imported late: Ray and veRL take seconds and are not installed everywhere.
        try:
            from azr_population.engines.workers.ray_engine import ray_engine
            from azr_population.engines.workers.worker import WorkerSettings
        except ImportError as error:
            raise UserError(
                f"engine=ray: Ray or veRL does not import: {first_line(error)}; install "
                "azr_population[verl] anew, or use engine=torch"
            ) from error

        worker = WorkerSettings(**vars(settings), seed=config.seed, threads=config.engine.threads)
        with ray_engine(worker, config.engine.workers, config.run.dir) as group:
            yield TextEngine(group, tokenizer, chat)
        return
    generator = Streams(config.seed).torch("adapters")
    yield text_engine(settings, [generator] * settings.slots, chat)


def check_base(config: Config) -> tuple[Any, Any]:
    """The base's outline and its tokenizer, as `meta_base`. Raises UserError: or the rows do not
    fit its context, or the run does not fit this machine."""
    model, tokenizer = meta_base(config.base)
    longest = longest_row(config, tokenizer, references=0)
    context = context_of(model)
    if context is not None and longest > context:
        raise UserError(
            f"rows of {longest} tokens (prompt, engine.max_proposal_tokens, max_answer_tokens)"
            f" do not fit the base's context of {context}; lower one of them, or use another base"
        )
    check_memory(config, model, longest)
    return model, tokenizer


def meta_base(base: BaseConfig) -> tuple[Any, Any]:
    """The base without its weights, on torch's meta device, and its tokenizer. Raises UserError:
    there is no causal LM, or no tokenizer of one."""
    path = base_of(base)
    folder = base_folder(path, weights=False)
    try:
        return meta_model(folder), load_tokenizer(folder)
    except (OSError, ValueError, KeyError) as error:
        reason = first_line(error).partition(". ")[0]
        raise UserError(
            f"base.path={path} does not load as a causal LM: {reason}", key="base.path"
        ) from error


def longest_row(config: Config, tokenizer: Any, references: int | None = None) -> int:
    """Tokens of the longest row: a prompt that proposes and the proposal, or a prompt that holds a
    proposal and what is written in answer. The chat template counts, and so do `references`
    (`task.example_tasks` of them), as what they can be at most: far more than they mostly are."""
    domain = find_domain(config.task.domain)
    format = domain.format(config.base.prompt_format)
    references = config.task.example_tasks if references is None else references

    def tokens(prompt: str) -> int:
        return len(encode(tokenizer, [prompt], format.chat)[0])

    longest = 0
    for kind in domain.wanted(config.task.types):
        proposal, answer = row_limits(config.engine, format, kind)
        plain_prompt = format.propose_prompt(kind)
        shown = format.propose_prompt(kind, [Task(kind, "", (), ())] * references)
        program = config.task.max_program_chars
        if not config.task.seed_file:
            program = min(program, proposal)  # Somebody wrote it in so many tokens.
        programs = references * program if shown != plain_prompt else 0
        longest = max(
            longest,
            tokens(shown) + programs + proposal,
            # Solving is asked for in about as many words.
            tokens(plain_prompt) + proposal + answer,
        )
    return longest


def memory(config: Config, model: Any, longest: int) -> dict[str, float]:
    """Bytes by what needs them, in the phase of a step that takes most, with rows of at most
    `longest` tokens; `model` may be the base's outline. Empty where its kind is not known.

    Raises UserError: the base has no layers of the names in `base.lora.target_modules`.
    """
    settings = _engine_settings(config)
    target_layers(model, settings.lora)
    architecture = Architecture.of(model.config)
    if architecture is None:
        return {}
    domain = find_domain(config.task.domain)
    format, types = domain.format(config.base.prompt_format), domain.wanted(config.task.types)
    written = max(max(row_limits(config.engine, format, kind)) for kind in types)
    load = Load.of(
        architecture,
        settings,
        longest - written,
        written,
        rows=attempts(config.population),
        past=settings.slots - config.population.members,
        ranks=config.engine.workers,
    )
    peaks = phases(load, room_on(config.engine.device)).values()
    return max(peaks, key=lambda parts: sum(parts.values()))


def describe_memory(config: Config, model: Any, longest: int) -> tuple[int, str]:
    """The bytes that the processes of a run take together where they share a memory, and a
    sentence about one of them."""
    parts, workers = memory(config, model, longest), config.engine.workers
    listed = ", ".join(f"{name} {size(amount)}" for name, amount in parts.items() if amount)
    each = f" in each of {workers} processes" if workers > 1 else ""
    needed = sum(parts.values())
    shared = workers if config.engine.device == "cpu" else 1
    return int(shared * needed), (
        f"memory on {config.engine.device}{each}: at most {size(needed)} beside Python and its "
        f"libraries ({listed})"
    )


def check_memory(config: Config, model: Any, longest: int) -> None:
    """Refuses a run that this machine has no room for. A Ray that runs elsewhere (RAY_ADDRESS) is
    not looked at.

    Raises UserError: with the sum and its parts.
    """
    if config.engine.name == "ray" and os.environ.get("RAY_ADDRESS"):
        return
    (total, sentence), room = describe_memory(config, model, longest), room_on(config.engine.device)
    if total > room:
        raise UserError(
            f"engine.device={config.engine.device} has {size(room)} of memory, and the run takes "
            f"up to {size(total)} ({sentence}); lower population.teachers, population.students, "
            "base.lora.rank, engine.generate_batch_size, engine.micro_batch_tokens or "
            "engine.workers",
            key="engine.device",
        )


def room_on(device: str) -> int:
    """Bytes of memory that the device has, used or not."""
    if device == "cuda" and torch.cuda.is_available():
        return int(torch.cuda.get_device_properties(0).total_memory)
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def row_limits(engine: EngineConfig, format: Format, kind: str) -> tuple[int, int]:
    """Tokens of the longest proposal of such a task, and of the longest answer to it."""
    return (
        engine.max_proposal_tokens or format.max_new_tokens(kind, "propose"),
        engine.max_answer_tokens or format.max_new_tokens(kind, "solve"),
    )


def slot_names(population: MembersConfig, matchmaking: MatchmakingConfig) -> list[str]:
    """Of the slots: the members, and behind them the place of past opponents if there are any."""
    roster = Roster.make(population.teachers, population.students)
    past = ["past"] if matchmaking.past_opponent_fraction > 0 else []
    return [member.name for member in roster] + past


def proposals(population: PopulationConfig) -> int:
    """Rows that a step's teachers write."""
    return population.proposal_batch_size * max(1, population.teachers)


def attempts(population: PopulationConfig) -> int:
    """Rows that a step's students write at most."""
    return proposals(population) * population.samples_per_task


def _engine_settings(config: Config) -> EngineSettings:
    engine = config.engine
    return EngineSettings(
        base=base_of(config.base),
        names=tuple(slot_names(config.population, config.matchmaking)),
        lora=lora_of(config.base.lora),
        device=engine.device,
        dtype=config.base.dtype,
        quantization=config.base.quantization,
        rollout=RolloutSettings(
            engine.rollout,
            engine.generate_batch_size,
            vllm=dict(engine.vllm),
            share_prefix=engine.share_prefix,
        ),
        learner=engine,
    )


def base_of(base: BaseConfig) -> str:
    """The base's folder, or its name on the Hub. Raises UserError: with the command that makes
    SmolLM2, if it has not been made yet."""
    path = base.path or ""
    if base.name == "smollm2" and path.startswith(".") and not Path(path).is_dir():
        raise UserError(
            f"base.path={path} is not there yet; make it by `azr-population base smollm2`, or give "
            "its folder",
            key="base.path",
        )
    return str(base.path or nano_base_path())
