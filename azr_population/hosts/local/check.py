"""What no local run could work with, beyond the bounds that stand on the fields: names that nothing
carries, engines that nothing starts, values that contradict each other."""

from azr_population.config.schema import Config, TaskConfig
from azr_population.domains.known import find_domain
from azr_population.engines.assembly import (
    check_base_placement,
    check_engine,
    check_learner,
    check_rollout,
)
from azr_population.engines.rollouts import RolloutSettings
from azr_population.errors import UserError
from azr_population.hosts.loggers import check_loggers
from azr_population.method.advantages import BASELINES
from azr_population.method.config_check import check_population
from azr_population.pages.console.view import VIEWS


def check_config(config: Config) -> None:
    """Refuses a run before anything is loaded, and imports what its dotted names name. Raises
    UserError: naming the key, the value and what would be accepted."""
    check_playing(config)
    if "temperature" in config.evolution.hyperparameters and config.engine.rollout == "vllm":
        raise UserError(
            "evolution.hyperparameters.temperature needs engine.rollout=torch, because vLLM gives "
            "log-probabilities at temperature 1; leave it out, or sample with torch",
            key="evolution.hyperparameters.temperature",
        )
    check_loggers(config.logger.names)
    VIEWS.find(config.run.console)
    BASELINES.find(config.population.student_advantage)
    check_population(config.population, config.matchmaking, config.evolution, config.base.lora.rank)


def check_playing(config: Config) -> None:
    """The part of it that also holds for members measured after their run: engine, prompts, tasks.
    Raises UserError: as `check_config`."""
    check_engine(config.engine.name, config.engine.workers)
    check_learner(config.engine)
    check_rollout(config.engine.rollout, config.base.lora.rank)
    rollout = RolloutSettings(config.engine.rollout, vllm=dict(config.engine.vllm))
    check_base_placement(config.engine, config.base.quantization, rollout, config.engine.device)
    domain = find_domain(config.task.domain)
    domain.format(config.base.prompt_format)
    domain.wanted(config.task.types)
    domain.check(config.task)


def fill_in(tasks: TaskConfig) -> None:
    """Writes out what a configuration leaves to its domain: all of its types, all of its rules."""
    domain = find_domain(tasks.domain)
    tasks.types = domain.wanted(tasks.types)
    tasks.reject = list(domain.rules) if tasks.reject is None else tasks.reject
