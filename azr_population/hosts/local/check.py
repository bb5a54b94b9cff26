"""What no local run could work with, beyond the bounds that stand on the fields: names that nothing
carries, engines that nothing starts, values that contradict each other."""

from __future__ import annotations

from collections.abc import Iterable

from azr_population.config.schema import Config
from azr_population.domains.code.formats import FORMATS
from azr_population.domains.code.task import TaskType
from azr_population.domains.code.validity import REFUSALS
from azr_population.engines.assembly import check_engine, check_rollout
from azr_population.errors import UserError
from azr_population.hosts.loggers import check_loggers
from azr_population.method.advantages import BASELINES
from azr_population.method.check import check_population
from azr_population.pages.console.view import VIEWS


def check_config(config: Config) -> None:
    """Refuses a run before anything is loaded, and imports what its dotted names name.

    Raises:
        UserError: naming the key, the value and what would be accepted.
    """
    check_playing(config)
    check_loggers(config.logger.names)
    VIEWS.find(config.run.view)
    BASELINES.find(config.population.solver_baseline)
    check_population(config.population, config.matchmaking, config.evolution, config.base.lora.rank)


def check_playing(config: Config) -> None:
    """The part of it that also holds for members measured after their run: engine, prompts, tasks.

    Raises:
        UserError: as `check_config`.
    """
    check_engine(config.engine.name, config.engine.workers)
    check_rollout(config.engine.rollout, config.base.lora.rank)
    FORMATS.find(config.base.format)
    for name in config.task.types:
        _one_of("task.types", name, [str(kind) for kind in TaskType])
    for name in config.task.refuse:
        _one_of("task.refuse", name, REFUSALS)


def _one_of(key: str, value: str, known: Iterable[str]) -> None:
    if value not in known:
        raise UserError(f"{key}={value} is unknown; choose from {', '.join(sorted(known))}")
