"""The `population` group of an AZR run: what AZR's command takes after `+population=<arm>`.

Values marked *ours* are neither in the paper nor in AZR.
"""

from pathlib import Path
from typing import Any, Literal

import yaml
from hydra.core.config_store import ConfigStore
from pydantic import Field

from azr_population.config.schema import (
    EVALUATION,
    NONE,
    PERFORMANCE,
    PROMPT_DATE,
    ComputeConfig,
    Dtype,
    EvolutionConfig,
    IsoDate,
    LoraConfig,
    MatchmakingConfig,
    MembersConfig,
    Quantization,
)

CALLBACK = {"_target_": "azr_population.hosts.azr.activation.ActivatePopulation"}
"""Callback that Hydra calls before AZR's main function."""
PROVIDER = "azr-population"
STOCK = {"single": {"teacher_reward": "stock"}}
"""Settings of an arm that differ inside AZR: its single agent is stock AZR's, as one adapter."""


class PopulationSettings(MembersConfig, ComputeConfig):
    """Members, rewards and engine inside AZR; everything else stays AZR's own configuration."""

    batch_size: int | None = Field(default=None, ge=1)
    """Training samples per member and step, equal in all arms. Empty: as stock AZR's agent, that is
    2 * data.train_batch_size for each problem type."""
    student_lr: float | None = Field(default=None, ge=0)
    """Learning rate of students. Empty: 10 * actor.optim.lr, which AZR chose for full weights."""
    teacher_lr: float | None = Field(default=None, ge=0)
    """Empty: 0.15 of the students'; at 0.3 tasks became too hard on an earlier nano base."""
    agent_lr: float | None = Field(default=None, ge=0)
    """Learning rate of the single agent. Empty: the students'."""
    merge_calls: bool = Field(default=True, json_schema_extra=PERFORMANCE)
    """Generate a step's proposals and answers in one call, its difficulty estimates in another.
    False: in one call for each of AZR's batches, nine a step. Every row draws the same tokens."""
    validate_members: Literal["best", "all", "last_all"] = Field(
        default="last_all", json_schema_extra=EVALUATION
    )
    """Students that take AZR's validation: the `best` rated one, `all`, or the best one and at the
    end all, so that members/best is the best of them."""
    referee: Literal["azr", "sandbox"] = "azr"
    """`azr`: AZR's executor, without its in-process evals; `sandbox`: ours."""
    seed: int = Field(default=1, ge=0)
    log_completions: int = Field(default=16, ge=0, json_schema_extra=NONE)
    """Completions of each step that are kept, as `run.log_completions` of a local run."""
    dry_run: bool = Field(default=False, json_schema_extra=NONE)
    """Prints what the run would be, and stops before anything is loaded."""
    gpu_memory: float | None = Field(default=None, gt=0, json_schema_extra=NONE)
    """GiB of each GPU, for the dry run. Empty: this machine's."""
    gpu: str | None = Field(default=None, coerce_numbers_to_str=True, json_schema_extra=NONE)
    """The kind of GPU, for the dry run: one of `DEVICES` in `engines/step_counts.py`. Empty: this
    machine's, or one with as much memory."""
    callbacks: list[str] = Field(default_factory=list)
    """Callbacks, as in a local run: names or `module.Class`."""
    run_dir: str | None = Field(default=None, json_schema_extra=NONE)
    """Folder of the run's records. Empty: `population` in AZR's trainer.default_local_dir."""
    dtype: Dtype | None = None
    """Data type of the frozen base. Empty: bfloat16 on GPUs, float32 on CPUs. Adapters are
    float32."""
    quantization: Quantization | None = None
    """Quantization of the frozen base, in the learner and in vLLM; see `base.quantization` of a
    local run."""
    prompt_date: IsoDate = PROMPT_DATE
    """The day that a chat template which asks for today's gets, as `base.prompt_date` of a local
    run."""
    worker: str = "azr_population.hosts.azr.azr_worker.PopulationWorker"
    """The class of the workers, by its path; for engines of yours."""
    threads: int = Field(default=0, ge=0, le=1024, json_schema_extra=PERFORMANCE)
    """Torch threads of each worker; 0 leaves torch's own choice."""
    rollout: str = "auto"
    """The sampler: as `engine.rollout` of a local run, or `auto`: vLLM on GPUs, torch on CPUs.
    vLLM's settings come from actor_rollout_ref.rollout."""
    generate_batch_size: int = Field(default=256, ge=1, json_schema_extra=PERFORMANCE)
    """Most rows decoded in one batch on each worker."""
    generate_tokens: int = Field(default=393_216, ge=1, json_schema_extra=PERFORMANCE)
    """Most tokens that a batch's KV cache can grow to on each worker (docs/azr_inside.md)."""
    micro_batch_tokens: int = Field(default=8192, ge=1, json_schema_extra=PERFORMANCE)
    """Tokens (with padding) in one forward and backward on each worker."""
    lora: LoraConfig = Field(default_factory=lambda: LoraConfig(rank=32, alpha=64.0))
    matchmaking: MatchmakingConfig = Field(default_factory=MatchmakingConfig)
    evolution: EvolutionConfig = Field(default_factory=EvolutionConfig)


def arms() -> dict[str, dict[str, Any]]:
    """The arms of both hosts, from the YAML files of the local one, by name."""
    files = sorted((Path(__file__).parent / "population").glob("*.yaml"))
    return {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in files}


def register_arms() -> None:
    """Puts the group `population` into Hydra's store, where AZR's command finds it.

    Arms of a user's own may start from `/population_defaults/inside_azr`, as these do.
    """
    store = ConfigStore.instance()
    evolution = Path(__file__).parent / "evolution" / "pbt.yaml"
    # Plain values: read_settings tells mistakes in one line, and Hydra over several.
    settings = PopulationSettings().model_dump()
    settings["evolution"] |= yaml.safe_load(evolution.read_text(encoding="utf-8"))
    hydra = {"callbacks": {"azr_population": CALLBACK}}
    nodes: dict[tuple[str, str], dict[str, Any]] = {
        ("population_defaults", "inside_azr"): {"population": settings, "hydra": hydra}
    }
    for name, arm in arms().items():
        members = {**arm, **STOCK.get(name, {})}
        defaults = ["/population_defaults/inside_azr", "_self_"]
        nodes["population", name] = {"defaults": defaults, "population": members}
    for (group, name), node in nodes.items():
        store.store(name, node, group=group, package="_global_", provider=PROVIDER)


def forget_arms() -> None:
    """Takes them out again: Hydra's store is the process's, and another application composed in it
    has groups of its own."""
    groups = ConfigStore.instance().repo
    for group in ("population_defaults", "population"):
        nodes = groups.pop(group, {})
        if others := {k: v for k, v in nodes.items() if v.provider != PROVIDER}:
            groups[group] = others
