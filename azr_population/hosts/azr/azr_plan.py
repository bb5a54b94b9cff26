"""The plan of a population inside AZR: made from AZR's command in its driver, played by our trainer
in AZR's TaskRunner, another process, which it is sent to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from omegaconf import OmegaConf

from azr_population.config.inside_azr import PopulationSettings
from azr_population.domains.known import find_domain
from azr_population.errors import UserError
from azr_population.hosts.azr.settings import (
    DOMAIN,
    agent_rows,
    engine_settings,
    read_settings,
    run_config,
)
from azr_population.method.run_plan import RunPlan

DECIDED = ("offload", "recompute_above_tokens")
"""Settings of the learner that are decided by what fits."""


@dataclass(frozen=True)
class AzrPlan(RunPlan):
    """One run inside AZR, decided; AZR's own configuration stays AZR's."""

    settings: PopulationSettings = field(kw_only=True)
    """The command's settings."""
    rows: int = field(kw_only=True)
    """Rows of each problem type that the single agent proposes, and that it solves."""

    @property
    def member_rows(self) -> int:
        """Rows of each problem type for a member that proposes or solves: the single agent's, or
        twice as many where a member does only one of the two, so that members of all arms train on
        equally many."""
        kinds = self.config.task.types or list(self.domain.types)
        return self.config.population.proposal_batch_size // len(kinds)

    @property
    def decided(self) -> dict[str, Any]:
        """Values of `DECIDED`, for the run's configuration."""
        return {key: getattr(self.engine.learner, key) for key in DECIDED}


def resolve(command: Any) -> AzrPlan:
    """The plan of AZR's composed command, not yet checked (see `checks.faults`). Raises UserError:
    a setting that is unknown or of another type, or numbers that make no plan."""
    for key in ("trainer.n_gpus_per_node", "trainer.nnodes"):
        if (count := int(OmegaConf.select(command, key))) < 1:
            way_out = "on CPUs it is the number of workers" if "gpus" in key else "one is enough"
            raise UserError(f"{key}={count} must be at least 1; {way_out}", key=key)
    settings, domain = read_settings(command.population), find_domain(DOMAIN)
    rows = agent_rows(command, settings)
    actor_lr = command.actor_rollout_ref.actor.optim.lr
    config = run_config(settings, actor_lr, rows, command.azr.problem_types)
    engine, format = engine_settings(command, settings), domain.format("chat")
    return AzrPlan(config, domain, format, engine, settings=settings, rows=rows)
