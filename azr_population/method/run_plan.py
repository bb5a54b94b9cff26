"""The plan of a run: everything that is decided before anything is loaded.

Each host makes one from what the user typed (`resolve`), checks it, prints it (the dry run) and
plays it. Nothing writes into a plan or into its configuration: what makes a run fit returns a new
plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from azr_population.bases.nano import nano_base_path
from azr_population.config.schema import Config, LearnerConfig, TorchConfig
from azr_population.domains.domain import Domain
from azr_population.domains.format import Format
from azr_population.domains.known import find_domain
from azr_population.engines.assembly import check_engine, check_settings, lora_of
from azr_population.engines.engine import EngineSettings
from azr_population.engines.memory import GpuLayout
from azr_population.method.members import Roster


@dataclass(frozen=True)
class RunPlan:
    """One run, decided."""

    config: Config
    """Whole: what was left open is filled in."""
    domain: Domain
    format: Format
    """Format of the prompts; not used inside AZR, which has its own."""
    engine: EngineSettings
    layout: GpuLayout | None = None
    """Contents of each process's engine; None: not yet worked out, or a base of another kind than
    `Architecture` knows."""

    @classmethod
    def of(cls, config: Config) -> RunPlan:
        """The plan of a local configuration: engine, prompts and tasks are checked, the population
        is not. Raises UserError: naming the key, the value and what would be accepted."""
        check_engine(config.engine.name, config.engine.workers)
        domain = find_domain(config.task.domain)
        format = domain.format(config.base.prompt_format)
        threads = {"threads": config.engine.threads or torch.get_num_threads()}
        config = config.model_copy(
            update={
                "task": domain.with_defaults(config.task, format),
                "engine": config.engine.model_copy(update=threads),
            }
        )
        engine, population = config.engine, config.population
        roster = Roster.make(population.teachers, population.students)
        settings = EngineSettings(
            base=str(config.base.path or nano_base_path()),
            names=tuple(member.name for member in roster),
            lora=lora_of(config.base.lora),
            device=engine.device,
            dtype=config.base.dtype,
            quantization=config.base.quantization,
            prompt_date=config.base.prompt_date,
            rollout=engine.rollout,
            generate_rows=engine.generate_batch_size,
            vllm=engine.vllm,
            learner=LearnerConfig(**engine.model_dump(include=set(TorchConfig.model_fields))),
            seed=config.seed,
            threads=engine.threads,
        )
        check_settings(settings)
        return cls(config, domain, format, settings)

    @property
    def roster(self) -> Roster:
        """The members before the first step."""
        return Roster.make(self.config.population.teachers, self.config.population.students)

    @property
    def types(self) -> list[str]:
        """The types of task that are proposed."""
        return self.domain.resolve_types(self.config.task.types)

    def recorded_in(self, folder: str) -> RunPlan:
        """The plan of a run in this folder."""
        run = self.config.run.model_copy(update={"dir": folder})
        return replace(self, config=self.config.model_copy(update={"run": run}))
