"""The engine of a local run, in this process or a group of workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from azr_population.engines.assembly import text_engine
from azr_population.engines.base_folder import base_folder
from azr_population.engines.base_model import load_tokenizer
from azr_population.engines.text import TextEngine
from azr_population.errors import UserError, first_line
from azr_population.hosts.local.local_plan import with_layout
from azr_population.method.run_plan import RunPlan
from azr_population.streams import Streams


@contextmanager
def open_engine(plan: RunPlan) -> Iterator[TextEngine]:
    """The engine of the run; with it end the processes that it started. Raises UserError: the base
    does not load, or something cannot serve or hold it."""
    config, settings, chat = plan.config, with_layout(plan).engine, plan.format.chat
    if config.engine.name == "ray":
        # Imported late: Ray and veRL take seconds and are not installed everywhere.
        try:
            from azr_population.engines.workers.ray_engine import ray_engine
        except ImportError as error:
            raise UserError(
                f"engine=ray: Ray or veRL does not import: {first_line(error)}; install "
                "azr_population[verl] anew, or use engine=torch"
            ) from error

        folder = base_folder(settings.base, weights=False)
        tokenizer = load_tokenizer(folder, settings.prompt_date)
        with ray_engine(settings, config.engine.workers, config.run.dir) as group:
            yield TextEngine(group, tokenizer, chat)
        return
    generator = Streams(config.seed).torch("adapters")
    yield text_engine(settings, [generator] * settings.slots, chat)
