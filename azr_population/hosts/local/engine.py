"""What a local run is played on: the engine, in this process or a group of workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from azr_population.bases.nano import nano_base_path
from azr_population.config.schema import Config
from azr_population.domains.task import Task
from azr_population.engines.assembly import EngineSettings, text_engine
from azr_population.engines.base_folder import base_folder, context_of, meta_model
from azr_population.engines.base_model import load_tokenizer
from azr_population.engines.rollouts import RolloutSettings
from azr_population.engines.text import TextEngine, encode
from azr_population.errors import UserError, first_line
from azr_population.hosts.local.memory import check_memory, lora_of, row_limits, slot_names
from azr_population.method.check import check_made
from azr_population.method.tools import domain_of, format_of
from azr_population.runs.streams import Streams

if TYPE_CHECKING:
    from azr_population.engines.workers.worker import WorkerSettings


@contextmanager
def open_engine(config: Config) -> Iterator[TextEngine]:
    """The engine of the run; with it end the processes that it started. Raises UserError: the base
    does not load, or something cannot serve or hold it."""
    chat = format_of(config).chat
    model, tokenizer = meta_base(config)
    longest = longest_row(config, tokenizer, references=0)
    check_context(model, longest)
    check_memory(config, model, longest)
    if config.engine.name == "ray":
        # Imported late: Ray and veRL take seconds and are not installed everywhere.
        try:
            from azr_population.engines.workers.local_group import ray_engine
        except ImportError as error:
            raise UserError(
                f"engine=ray: Ray or veRL does not import: {first_line(error)}; install "
                "azr_population[verl] anew, or use engine=torch"
            ) from error

        with ray_engine(_worker_settings(config), config.engine.workers, config.run.dir) as group:
            yield TextEngine(group, tokenizer, chat)
        return
    settings = _engine_settings(config)
    generator = Streams(config.seed).torch("adapters")
    yield text_engine(settings, [generator] * settings.slots, chat)


def meta_base(config: Config) -> tuple[Any, Any]:
    """The base without its weights, on torch's meta device, and its tokenizer. Raises UserError:
    there is no causal LM, or no tokenizer of one."""
    folder = base_folder(base_of(config), weights=False)
    try:
        return meta_model(folder), load_tokenizer(folder)
    except (OSError, ValueError, KeyError) as error:
        reason = first_line(error).partition(". ")[0]
        raise UserError(
            f"base.path={base_of(config)} does not load as a causal LM: {reason}"
        ) from error


def longest_row(config: Config, tokenizer: Any, references: int | None = None) -> int:
    """Tokens of the longest row: a prompt that proposes and the proposal, or a prompt that holds a
    proposal and what is written in answer. The chat template counts, and so do `references`
    (`task.references` of them), as what they can be at most: far more than they mostly are."""
    format = format_of(config)
    references = config.task.references if references is None else references

    def tokens(prompt: str) -> int:
        return len(encode(tokenizer, [prompt], format.chat)[0])

    longest = 0
    for kind in domain_of(config).wanted(config.task.types):
        proposal, answer = row_limits(config, kind)
        bare = format.propose_prompt(kind)
        shown = format.propose_prompt(kind, [Task(kind, "", (), ())] * references)
        program = config.task.max_program_chars
        if not config.task.seed_file:
            program = min(program, proposal)  # Somebody wrote it in so many tokens.
        programs = references * program if shown != bare else 0
        longest = max(
            longest,
            tokens(shown) + programs + proposal,
            # Solving is asked for in about as many words.
            tokens(bare) + proposal + answer,
        )
    return longest


def check_context(model: Any, longest: int) -> None:
    """Refuses rows that the base has never seen the like of: it goes on with nonsense."""
    context = context_of(model)
    if context is not None and longest > context:
        raise UserError(
            f"rows of {longest} tokens (prompt, engine.propose_tokens, engine.solve_tokens) do not "
            f"fit the base's context of {context}; lower the two, or take another base"
        )


def _engine_settings(config: Config) -> EngineSettings:
    engine = config.engine
    return EngineSettings(
        base=base_of(config),
        names=tuple(slot_names(config)),
        lora=lora_of(config),
        device=engine.device,
        dtype=config.base.dtype,
        rollout=RolloutSettings(
            engine.rollout,
            engine.generate_rows,
            vllm=dict(engine.vllm),
            share_prompts=engine.share_prompts,
        ),
        learner=engine,
    )


def _worker_settings(config: Config) -> WorkerSettings:
    from azr_population.engines.workers.worker import WorkerSettings

    return WorkerSettings(
        **vars(_engine_settings(config)), seed=config.seed, threads=config.engine.threads
    )


def base_of(config: Config) -> str:
    """The base's folder, or its name on the Hub. Raises UserError: see `check_made`."""
    check_made(config.base)
    return str(config.base.path or nano_base_path())
