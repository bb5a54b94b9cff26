"""What members are asked with, and what judges them."""

from dataclasses import dataclass

from azr_population.config.schema import BaseConfig, RefereeConfig, TaskConfig
from azr_population.domains.domain import Domain
from azr_population.domains.format import Format
from azr_population.domains.known import find_domain
from azr_population.engines.text import TextEngine
from azr_population.referee import Referee, RefereeSettings


@dataclass(frozen=True)
class StepContext:
    """The engine that speaks and learns for members, the domain and one of its formats, in which
    they are asked, and the referee."""

    engine: TextEngine
    referee: Referee
    domain: Domain
    format: Format


def format_of(task: TaskConfig, base: BaseConfig) -> Format:
    """How the run's members are asked. Raises UserError."""
    return find_domain(task.domain).format(base.prompt_format)


def open_referee(limits: RefereeConfig) -> Referee:
    """The sandbox with the run's limits; a context manager."""
    return Referee(RefereeSettings(**limits.model_dump()))
