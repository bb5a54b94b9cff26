"""What a step needs around the population: engine, domain, format, referee."""

from dataclasses import dataclass

from azr_population.config.schema import BaseConfig, RefereeConfig, TaskConfig
from azr_population.domains.domain import Domain
from azr_population.domains.format import Format
from azr_population.domains.known import find_domain
from azr_population.engines.text import TextEngine
from azr_population.referee import Referee, RefereeSettings


@dataclass(frozen=True)
class StepContext:
    """The engine, the domain, the prompt format and the referee of a step."""

    engine: TextEngine
    referee: Referee
    domain: Domain
    format: Format


def format_of(task: TaskConfig, base: BaseConfig) -> Format:
    """The prompt format of a run. Raises UserError."""
    return find_domain(task.domain).format(base.prompt_format)


def open_referee(limits: RefereeConfig) -> Referee:
    """The sandbox with the run's limits; a context manager."""
    return Referee(RefereeSettings(**limits.model_dump()))
