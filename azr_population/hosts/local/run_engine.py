"""What a local run is played on: the engine, in this process or a group of workers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from azr_population.bases.nano import nano_base_path
from azr_population.config.schema import BaseConfig, Config, EngineConfig, PopulationConfig
from azr_population.domains.format import Format
from azr_population.domains.known import find_domain
from azr_population.engines.assembly import EngineSettings, lora_of, text_engine
from azr_population.engines.base_folder import base_folder, context_of, loading, meta_model
from azr_population.engines.base_model import load_tokenizer
from azr_population.engines.memory import Architecture, Load, phases, size
from azr_population.engines.text import TextEngine, encode
from azr_population.engines.torch_rollout import refuse_recurrent
from azr_population.errors import UserError, first_line
from azr_population.method.members import Roster
from azr_population.runs.streams import Streams
from azr_population.weights.bank import target_layers


@contextmanager
def open_engine(config: Config) -> Iterator[TextEngine]:
    """The engine of the run; with it end the processes that it started. Raises UserError: the base
    does not load, or something cannot serve or hold it."""
    chat = find_domain(config.task.domain).format(config.base.prompt_format).chat
    _, tokenizer, _ = check_base(config)
    settings = engine_settings(config)
    if config.engine.name == "ray":
        # Imported late: Ray and veRL take seconds and are not installed everywhere.
        try:
            from azr_population.engines.workers.ray_engine import ray_engine
        except ImportError as error:
            raise UserError(
                f"engine=ray: Ray or veRL does not import: {first_line(error)}; install "
                "azr_population[verl] anew, or use engine=torch"
            ) from error

        with ray_engine(settings, config.engine.workers, config.run.dir) as group:
            yield TextEngine(group, tokenizer, chat)
        return
    generator = Streams(config.seed).torch("adapters")
    yield text_engine(settings, [generator] * settings.slots, chat)


def check_base(config: Config) -> tuple[Any, Any, str]:
    """The base without its weights (on torch's meta device), its tokenizer, and a sentence on the
    memory that the run takes. Raises UserError: no causal LM or no tokenizer, rows that do not fit
    its context, or a run that does not fit this machine."""
    path = base_of(config.base)
    folder = base_folder(path, weights=False)
    with loading(path):
        model, tokenizer = meta_model(folder), load_tokenizer(folder)
    if not engine_settings(config).rollout_class.own_weights:
        refuse_recurrent(model)
    longest, context = longest_row(config, tokenizer), context_of(model)
    if context is not None and longest > context:
        raise UserError(
            f"rows of {longest} tokens (prompt, engine.max_proposal_tokens, max_answer_tokens)"
            f" do not fit the base's context of {context}; lower one of them, or use another base"
        )
    return model, tokenizer, check_memory(config, model, longest)


def longest_row(config: Config, tokenizer: Any) -> int:
    """Tokens of the longest row: a prompt that proposes and the proposal, or a prompt that holds a
    proposal and what is written in answer. The chat template counts, `task.example_tasks` do
    not."""
    domain = find_domain(config.task.domain)
    format = domain.format(config.base.prompt_format)
    longest = 0
    for kind in domain.wanted(config.task.types):
        (prompt,) = encode(tokenizer, [format.propose_prompt(kind)], format.chat)
        # Solving is asked for in about as many words, and the proposal.
        longest = max(longest, len(prompt) + sum(row_limits(config.engine, format, kind)))
    return longest


def memory(config: Config, model: Any, longest: int) -> dict[str, float]:
    """Bytes by what needs them, in the phase of a step that takes most, with rows of at most
    `longest` tokens; `model` may be on the meta device. Empty where its kind is not known.

    Raises UserError: the base has no layers of the names in `base.lora.target_modules`.
    """
    settings = engine_settings(config)
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
        rows=attempts(config.population) + replays(config.population),
        ranks=config.engine.workers,
    )
    peaks = phases(load, room_on(config.engine.device)).values()
    return max(peaks, key=lambda parts: sum(parts.values()))


def check_memory(config: Config, model: Any, longest: int) -> str:
    """A sentence on the memory that each process of the run takes. Raises UserError: this machine
    has no room for them; a Ray that runs elsewhere (RAY_ADDRESS) is not looked at."""
    parts, workers, device = (
        memory(config, model, longest),
        config.engine.workers,
        config.engine.device,
    )
    listed = ", ".join(f"{name} {size(amount)}" for name, amount in parts.items() if amount)
    each, needed = f" in each of {workers} processes" if workers > 1 else "", sum(parts.values())
    sentence = (
        f"memory on {device}{each}: at most {size(needed)} beside Python and its libraries "
        f"({listed})"
    )
    total, room = needed * (workers if device == "cpu" else 1), room_on(device)
    elsewhere = config.engine.name == "ray" and os.environ.get("RAY_ADDRESS")
    if total > room and not elsewhere:
        raise UserError(
            f"engine.device={device} has {size(room)} of memory, and the run takes up to "
            f"{size(total)} ({sentence}); lower population.teachers, population.students, "
            "base.lora.rank, engine.generate_batch_size, engine.micro_batch_tokens or "
            "engine.workers",
            key="engine.device",
        )
    return sentence


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


def proposals(population: PopulationConfig) -> int:
    """Rows that a step's teachers write."""
    return population.proposal_batch_size * max(1, population.teachers)


def attempts(population: PopulationConfig) -> int:
    """Rows that a step's students write at most at new tasks."""
    return proposals(population) * population.samples_per_task


def replays(population: PopulationConfig) -> int:
    """Rows that they write at tasks of earlier steps."""
    tasks = population.replay_batch_size * max(1, population.students)
    return tasks * population.samples_per_task


def engine_settings(config: Config) -> EngineSettings:
    """The engine of a local run."""
    engine, population = config.engine, config.population
    roster = Roster.make(population.teachers, population.students)
    return EngineSettings(
        base=str(config.base.path or nano_base_path()),
        names=tuple(member.name for member in roster),
        lora=lora_of(config.base.lora),
        device=engine.device,
        dtype=config.base.dtype,
        quantization=config.base.quantization,
        rollout=engine.rollout,
        generate_rows=engine.generate_batch_size,
        vllm=engine.vllm,
        learner=engine,
        seed=config.seed,
        threads=engine.threads,
    )


def base_of(base: BaseConfig) -> str:
    """The base's folder, or its name on the Hub. Raises UserError: with the command that makes
    SmolLM2, if it has not been made yet."""
    path = base.path or ""
    if base.name == "smollm2" and path.startswith(".") and not Path(path).is_dir():
        raise UserError(
            f"base.path={path} is not there yet; make it by `python tools/bases/warm_up.py --out "
            f"{path}`, or give its folder",
            key="base.path",
        )
    return str(base.path or nano_base_path())
