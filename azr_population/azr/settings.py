"""The `population` group of an AZR run, as dataclasses; the YAML beside this file fills it.

Values marked *ours* are neither in the paper nor in AZR.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from azr_population.conf.schema import EvolutionConfig, LoraConfig, MatchmakingConfig
from azr_population.errors import UserError

PLACEMENTS = ("colocated", "split")
REFEREES = ("azr", "sandbox")


@dataclass
class PopulationSettings:
    """Who plays and how, inside AZR; everything else stays AZR's own configuration."""

    name: str = "4t4s"
    teachers: int = 4
    students: int = 4
    """0 of both is the single agent, which proposes and solves as in stock AZR."""
    rows: int | None = None
    """Training rows per member per step, the same in every arm. Empty: what stock AZR's agent has,
    that is 2 * data.train_batch_size for each problem type."""
    teacher_reward: str = "adversarial"
    student_lr: float | None = None
    """AdamW step of students. Empty: 10 times actor.optim.lr, which AZR chose for full weights."""
    teacher_lr: float | None = None
    """Empty: 0.3 of the students', or teachers run away (ours)."""
    agent_lr: float | None = None
    """Of the single agent. Empty: as students."""
    placement: str = "colocated"
    """`colocated`: one worker group serves both roles; `split`: half of the workers for each."""
    referee: str = "azr"
    """`azr`: AZR's executor, without its in-process evals; `sandbox`: ours."""
    seed: int = 1
    run_dir: str | None = None
    """Where the run is recorded. Empty: `population` in AZR's trainer.default_local_dir."""
    dtype: str | None = None
    """Of the frozen base. Empty: bfloat16 on GPUs, float32 on CPUs. Adapters are float32."""
    worker: str = "azr_population.azr.worker.PopulationWorker"
    """The class of the workers, by its path; for engines of one's own."""
    threads: int = 0
    """Torch threads of each worker; 0 leaves torch's own choice."""
    generate_rows: int = 256
    """Most rows decoded in one batch on each worker."""
    generate_tokens: int = 393_216
    """Most tokens that a batch's KV cache can grow to on each worker (docs/azr.md, Memory)."""
    micro_batch_tokens: int = 8192
    """Tokens (with padding) in one forward and backward on each worker."""
    lora: LoraConfig = field(default_factory=lambda: LoraConfig(rank=32, alpha=64.0))
    matchmaking: MatchmakingConfig = field(default_factory=MatchmakingConfig)
    evolution: EvolutionConfig = field(default_factory=EvolutionConfig)

    @property
    def members(self) -> int:
        """How many adapters the run has."""
        return max(1, self.teachers + self.students)

    @property
    def single(self) -> bool:
        """Whether one agent plays both roles."""
        return self.teachers == 0 and self.students == 0


def read_settings(node: Any) -> PopulationSettings:
    """The checked settings of a config's `population` node.

    Raises:
        UserError: an unknown key, a value of the wrong type, or one that no run can work with.
    """
    try:
        merged = OmegaConf.merge(OmegaConf.structured(PopulationSettings), node)
        settings = OmegaConf.to_object(merged)
    except OmegaConfBaseException as error:
        lines = str(error).strip().splitlines()
        raise UserError(f"population: {lines[0]}") from error
    assert isinstance(settings, PopulationSettings)
    _check(settings)
    return settings


def _check(settings: PopulationSettings) -> None:
    from azr_population.conf.evolution_check import check_evolution
    from azr_population.matchmaking import Matchmaker
    from azr_population.members import RatingSystem, Roster
    from azr_population.selfplay.rewards import TEACHER_REWARDS

    Roster.make(settings.teachers, settings.students)
    TEACHER_REWARDS.find(settings.teacher_reward)
    Matchmaker(
        RatingSystem(draw_probability=settings.matchmaking.draw_probability),
        settings.matchmaking.weighting,
        settings.matchmaking.options,
    )
    for key, value, known in (
        ("placement", settings.placement, PLACEMENTS),
        ("referee", settings.referee, REFEREES),
        ("dtype", settings.dtype or "float32", ("float32", "bfloat16", "float16")),
    ):
        if value not in known:
            raise UserError(f"population.{key}={value} is unknown; choose from {', '.join(known)}")
    for key, number, least in (
        ("lora.rank", settings.lora.rank, 1),
        ("generate_rows", settings.generate_rows, 1),
        ("generate_tokens", settings.generate_tokens, 1),
        ("micro_batch_tokens", settings.micro_batch_tokens, 1),
    ):
        if number < least:
            raise UserError(f"population.{key}={number} is too small; the least is {least}")
    smallest = min(settings.teachers, settings.students)
    check_evolution(settings.evolution, smallest, settings.lora.rank, node="population.evolution")
    if settings.placement == "split" and settings.single:
        raise UserError(
            "population.placement=split needs teachers and students; the single agent is one "
            "member, use population.placement=colocated"
        )
