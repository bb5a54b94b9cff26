"""What members are asked with, and what judges them."""

from dataclasses import dataclass

from azr_population.config.schema import Config
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


def domain_of(config: Config) -> Domain:
    """What the run's tasks are about. Raises UserError."""
    return find_domain(config.task.domain)


def format_of(config: Config) -> Format:
    """How the run's members are asked. Raises UserError."""
    return domain_of(config).format(config.base.prompt_format)


def open_referee(config: Config) -> Referee:
    """The sandbox with the run's limits; a context manager."""
    return Referee(RefereeSettings(**config.referee.model_dump()))
