"""The configuration of a run, one pydantic model per section: each field with its default, its
meaning, its bounds and what it affects. The YAML groups beside this file fill them.

The groups of members, matches, evolution and adapters are those of both hosts; `inside_azr.py` has
what only AZR's needs. Values marked *ours* are not in the paper or in AZR: they are what held the
dynamics at nano scale.
"""

import os
import re
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
    NonNegativeFloat,
    PositiveFloat,
    field_validator,
    model_validator,
)
from typing_extensions import Self

from azr_population.config.section import Section
from azr_population.errors import UserError


def _absolute(path: str) -> str:
    """`path` from the root if it exists, since a run may be resumed elsewhere. Hub names stay."""
    expanded = os.path.expanduser(path)
    return os.path.abspath(expanded) if os.path.exists(expanded) else path


LocalPath = Annotated[str, AfterValidator(_absolute)]
"""A file or a folder, or a name on the Hub."""


def _day(text: str) -> str:
    return date.fromisoformat(text).isoformat()


IsoDate = Annotated[str, AfterValidator(_day)]
"""A day as YYYY-MM-DD."""
PROMPT_DATE = "2026-01-01"
"""The day for chat templates, also of members that come without a run's configuration."""

COMPARING = ("rloo", "positive_only")
"""Baselines that compare the attempts at one task: they need two."""

Dtype = Literal["float32", "bfloat16", "float16"]
Quantization = Literal["nf4"]

TRAINING: dict[str, Any] = {"affects": "training"}
"""Marks a field that affects training, which is also the default of a section. Two runs that differ
in it are different experiments."""
EVALUATION: dict[str, Any] = {"affects": "evaluation"}
"""Marks a field that affects how members are measured."""
DURATION: dict[str, Any] = {"affects": "duration"}
"""Marks a field that affects how long a run is, or how often it is measured."""
PERFORMANCE: dict[str, Any] = {"affects": "performance"}
"""Marks a field that affects speed; sums may be rounded otherwise."""
NONE: dict[str, Any] = {"affects": "none"}
"""Logging and console."""


Adapters = dict[Literal["teacher", "student", "agent"], list[LocalPath]]


def no_adapters() -> Adapters:
    """No adapters for any role."""
    return {"teacher": [], "student": [], "agent": []}


class MembersConfig(Section):
    """Members and their rewards, in both hosts."""

    name: str = Field(default="4t4s", json_schema_extra=NONE)
    """The name on pages and consoles. Names like 4t4s are corrected to the actual numbers."""
    teachers: int = Field(default=4, ge=0, le=128)
    students: int = Field(default=4, ge=0, le=128)
    """0 teachers and 0 students is the single agent, which proposes and solves (stock AZR)."""
    teacher_reward: str = "learnability"
    """Reward of a valid task: `learnability` (1 - solve rate, 0 where nobody solves it: the
    paper's, as three readers report), `adversarial` (1 - solve rate, also for tasks that nobody
    solves: they become too hard within some hundred steps, docs/design.md), `stock` (AZR's code),
    or a function of yours: `module.function`. An invalid proposal costs 1."""
    duplicate_penalty: float = Field(default=0.0, ge=0)
    """Subtracted from a proposal's reward for each other copy in the step or the buffer; ours."""
    kl_loss_coef: float = Field(default=0.0, ge=0)
    """Weight of the KL divergence from the base in every member's loss (veRL's `kl_loss_coef`,
    estimated as its `low_var_kl`); above 0 an update costs one more forward pass. It keeps members
    near the base."""
    init_from: Adapters = Field(default_factory=no_adapters)
    """Adapters that the founders of a role start from: PEFT folders, members of runs (RUN/MEMBER),
    or names on the Hub. One for all members of the role, or one for each. Empty: PEFT's start,
    which changes nothing. A smaller rank is padded, and dW stays."""

    @field_validator("init_from", mode="before")
    @classmethod
    def _complete_roles(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        lists = {role: [v] if isinstance(v, str) else v for role, v in value.items()}
        return {**no_adapters(), **lists}

    @model_validator(mode="after")
    def _name_the_true_numbers(self) -> Self:
        if re.fullmatch(r"single|\d+t\d+s", self.name):
            self.name = "single" if self.single else f"{self.teachers}t{self.students}s"
        return self

    @property
    def single(self) -> bool:
        """Whether one agent plays both roles."""
        return self.teachers == 0 and self.students == 0


class PopulationConfig(MembersConfig):
    """Members, their rewards and their budget per step, in a local run."""

    batch_size: int = Field(default=48, ge=2, le=100_000)
    """Training samples per member and step, equal in all arms; the single agent splits them between
    proposing and solving."""
    samples_per_task: int = Field(default=4, ge=1, le=1000)
    """Answers drawn per valid task to estimate its solve rate (AZR's n_samples)."""
    student_advantage: Literal["batch", "rloo", "positive_only"] = "batch"
    """Baseline of a student's attempt. `batch`: all attempts at that type of task (TRR++, as in
    AZR). The other attempts at its task: `rloo` (Ahmadian et al. 2024), `positive_only` (trains on
    right answers only)."""
    replay_fraction: float = Field(default=0.5, ge=0, lt=1)
    """Share of a student's attempts at tasks drawn uniformly from all valid tasks so far (a sample
    of 4,096 is kept), as AZR trains its solver. Inside AZR this is AZR's. With 0 and
    the reward `adversarial` students forget (docs/design.md)."""
    duplicate_penalty: float = Field(default=0.3, ge=0)
    """Subtracted from a proposal's reward for each other copy in the step or the buffer; ours."""
    teacher_lr: float = Field(default=1.5e-4, ge=0)
    """Learning rate of teachers; bases set their own. Near the students' rate their tasks
    became too hard (ours)."""
    student_lr: float = Field(default=1e-3, ge=0)
    agent_lr: float = Field(default=1e-3, ge=0)

    @property
    def proposal_batch_size(self) -> int:
        """Proposals among a member's samples, if it proposes."""
        return (self.batch_size + 1) // 2 if self.single else self.batch_size

    @property
    def attempt_batch_size(self) -> int:
        """Attempts among a member's samples, if it solves."""
        return self.batch_size // 2 if self.single else self.batch_size

    @property
    def replay_batch_size(self) -> int:
        """Attempts at tasks of earlier steps among those."""
        return round(self.replay_fraction * self.attempt_batch_size)


class HyperparameterConfig(Section):
    """Evolution of one hyperparameter of the members (PBT, Jaderberg et al. 2017)."""

    init: list[PositiveFloat] = Field(min_length=2, max_length=2)
    """[low, high]: founders draw log-uniformly between them."""
    perturb: list[PositiveFloat] = Field(default_factory=lambda: [0.8, 1.25], min_length=1)
    """A child's value is its first parent's times one of these."""
    bounds: list[PositiveFloat] | None = Field(default=None, min_length=2, max_length=2)
    """[low, high]: no child's value leaves them. Empty: a hundred times beyond `init`."""
    resample: float = Field(default=0.25, ge=0, le=1)
    """Chance that a child draws anew like a founder instead (as in Ray Tune)."""
    inherit: bool = True
    """false: a child keeps the value of the member it replaces, so that only weights evolve."""
    roles: list[Literal["teacher", "student"]] = Field(default=["student"])
    """Roles with this hyperparameter; other members keep the run's value."""

    @field_validator("init", "bounds")
    @classmethod
    def _hold_a_range(cls, value: list[float] | None) -> list[float] | None:
        if value and value[0] > value[1]:
            raise ValueError("should have the lower number first")
        return value

    @model_validator(mode="after")
    def _begin_within_bounds(self) -> Self:
        (low, high), (least, most) = self.init, self.limits
        if not least <= low <= high <= most:
            raise ValueError("should have bounds around init")
        return self

    @property
    def limits(self) -> tuple[float, float]:
        """`bounds`, or what stands for them."""
        low, high = self.bounds or (self.init[0] / 100, self.init[1] * 100)
        return low, high


class EvolutionConfig(Section):
    """Replacement of the worst members by children of better ones (PBT)."""

    interval: int = Field(default=5, ge=0)
    """Steps between replacements; 0 switches evolution off."""
    replace_fraction: float = Field(default=0.25, ge=0, le=1)
    """Share of each sub-population replaced at an interval, at least one member. Its best member
    is never replaced."""
    grace_period: int = Field(default=8, ge=0)
    """Steps after birth in which a child is not replaced. Its rating is uncertain, so mu - 3 sigma
    would make it the next victim. The run warns if the grace period protects all members but one,
    so that there is no choice."""
    operators: dict[str, NonNegativeFloat] = Field(default_factory=dict)
    """Operator name -> weight in the draw; 0 or absent switches an operator off.
    `svd_subspace+full_gaussian` mutates the crossover's child."""
    options: dict[str, dict[str, float]] = Field(default_factory=dict)
    """Operator name -> its options, such as `dare: {p: 0.5}`; `azr-population evolve --list`."""
    hyperparameters: dict[Literal["lr"], HyperparameterConfig] = Field(default_factory=dict)
    """Settings that evolve with the weights: `lr: {init: [3e-5, 3e-3]}` (`evolution=pbt_hyper`), or
    nothing (the default)."""


class MatchmakingConfig(Section):
    """Draw of matches between teachers and students."""

    weighting: Literal["balanced", "uniform"] = "balanced"
    """Weight of a pairing in the draw of matches: `balanced` p (1 - p), where p is the
    student's chance to win; `uniform` all alike."""


class TaskConfig(Section):
    """Which tasks are proposed and which count as valid."""

    domain: str = "code"
    """The kind of tasks: `code`, or a class of yours: `module.Class`."""
    types: list[str] | None = None
    """Types of task of the domain (`code`: code_o, code_i, code_f). Not given: what the base's
    prompts are for (nano: code_o), else all."""
    reject: list[str] | None = None
    """Rules that make a task invalid. `code`: boolean, constant, identity refuse guessable answers,
    no_chain all programs but those that the nano base was made for. Not given: nano's prompts have
    identity and no_chain, others all but no_chain."""
    max_program_chars: int = Field(default=600, ge=1)
    max_output_chars: int = Field(default=200, ge=1)
    example_tasks: int = Field(default=0, ge=0)
    """Tasks from the buffer shown to a proposing teacher (AZR: 6); the nano format uses none."""


class RefereeConfig(Section):
    """Limits of the sandbox; see `azr_population.referee.RefereeSettings`."""

    workers: int = Field(default=2, ge=0, le=256, json_schema_extra=NONE)
    timeout: float = Field(default=60.0, ge=0.01, le=3600)
    """Wall-clock seconds for one execution, for what waits without computing."""
    cpu_seconds: float = Field(default=0.5, ge=0, le=3600)
    """CPU seconds of one execution: ends endless loops alike on a busy and on an idle machine."""
    memory_mb: int = Field(default=256, ge=16, le=1 << 20)
    allow_unsandboxed: bool = False


class LoraConfig(Section):
    """Shape of every adapter; fields as in `peft.LoraConfig`."""

    rank: int = Field(default=8, ge=1, le=512)
    alpha: float = Field(default=16.0, gt=0)
    target_modules: list[str] = Field(default_factory=lambda: ["all-linear"])


class BaseConfig(Section):
    """The frozen base model and its prompts."""

    name: str = "nano"
    path: LocalPath | None = None
    """A Hugging Face folder, or a name on the Hub; empty means the nano base that ships."""
    prompt_format: str = "nano"
    """`nano` (special tokens), `chat` (instructions and fenced blocks) or `short` (a sentence; for
    bases warmed up by `tools/bases/warm_up.py`)."""
    prompt_date: IsoDate = PROMPT_DATE
    """The day that a chat template which asks for today's gets (Llama 3.2, Granite, SmolLM3): the
    same on every day, so that a resumed run and an eval see the same prompts."""
    dtype: Dtype = "float32"
    quantization: Quantization | None = None
    """`nf4`: the base's linear layers in 4 bits (QLoRA, by bitsandbytes), about a quarter of
    bfloat16's memory. Members stay float32."""
    lora: LoraConfig = Field(default_factory=LoraConfig)


class UpdateConfig(Section):
    """Options of both hosts for the training of members."""

    optimizer: str = "adamw"
    """`adamw`, or a `torch.optim.Optimizer` of yours: `module.Class`. Each member has its
    own."""
    importance_sampling_cap: float | None = Field(default=None, ge=0)
    """Cap of the importance weights learner / sampler in an update; 0 switches them off. Empty: 2
    if vLLM samples or the base is not float32, otherwise 0."""
    micro_batch_tokens: int = Field(default=1024, ge=1, json_schema_extra=PERFORMANCE)
    """Tokens (with padding) in one forward and backward of an update."""
    fused_kernels: bool = Field(default=False, json_schema_extra=PERFORMANCE)
    """Whether norms and gating of the base are Liger's fused kernels, on GPUs; the extra `gpu`
    installs them. Tested in Triton's interpreter, not on a GPU."""


class TorchConfig(UpdateConfig):
    """Options of a local run for what torch computes."""

    gradient_checkpointing: bool | None = Field(default=None, json_schema_extra=PERFORMANCE)
    """Whether an update recomputes activations in its backward pass instead of keeping them. Empty:
    on GPUs, for bases of 100 million weights or more."""
    step_graphs: bool = Field(default=False, json_schema_extra=PERFORMANCE)
    """Whether the torch sampler records a decoding step as a CUDA graph and replays it, with
    the same tokens: half the time at 7B's shapes. Off: no long run has used it."""


class ComputeConfig(UpdateConfig):
    """Options inside AZR for updates that take much memory."""

    lora_dtype: Dtype | None = None
    """The dtype in which adapters are multiplied in updates and scoring; their weights and the
    optimizer stay float32. Empty: the base's on GPUs, float32 on CPUs."""
    recompute_above_tokens: int | None = Field(default=None, ge=0, json_schema_extra=PERFORMANCE)
    """With gradient checkpointing: micro-batches of at most this many tokens keep the results of
    their matrix products and recompute the rest, half of what all activations take. 0: all
    recompute. Empty: what fits on each GPU."""
    offload: bool | None = Field(default=None, json_schema_extra=PERFORMANCE)
    """Whether the learner's base, members and optimizer states are in the host's memory while vLLM
    is awake, and vLLM's while it sleeps. Empty: if they do not fit otherwise, or if param_offload
    or optimizer_offload of AZR's actor is on."""


class LearnerConfig(ComputeConfig, TorchConfig):
    """Training of members in either host. A local run sets the fields of `TorchConfig`; inside
    AZR those that neither host's configuration has come from `actor_rollout_ref.actor`."""

    max_grad_norm: float = Field(default=1.0, gt=0)
    weight_decay: float = Field(default=0.0, ge=0)
    share_prefix: bool = True
    """Whether a prompt is computed once for all its completions, in sampling and in updates: on
    CPUs, where the base allows it. It changes rounding."""

    @property
    def most_tokens(self) -> int:
        """In one forward and backward of an update, but for a longer row, which goes alone."""
        limit = self.recompute_above_tokens if self.gradient_checkpointing else None
        return min(self.micro_batch_tokens, limit or self.micro_batch_tokens)


class EngineConfig(TorchConfig):
    """The engine that generates and trains."""

    name: Literal["torch", "ray"] = "torch"
    """`torch` computes in this process, `ray` in `workers` processes."""
    workers: int = Field(default=1, ge=1, le=1024)
    """Processes, each with the whole base (and a GPU of its own where `device` is cuda)."""
    rollout: str = "torch"
    """The sampler: `torch`, `vllm` (if installed), or a `Rollout` of yours: `module.Class`
    (`engines/engine.py`)."""
    vllm: dict[str, Any] = Field(default_factory=dict)
    """Arguments of `vllm.LLM`, such as gpu_memory_utilization or max_model_len."""
    device: Literal["cpu", "cuda"] = "cpu"
    threads: int = Field(default=0, ge=0, le=1024, json_schema_extra=PERFORMANCE)
    """Torch threads; 0 leaves torch's own choice (one per core)."""
    max_proposal_tokens: int = Field(default=0, ge=0)
    """Longest proposal in tokens; 0: the prompt format's limit."""
    max_answer_tokens: int = Field(default=0, ge=0)
    generate_batch_size: int | None = Field(default=None, ge=1, json_schema_extra=PERFORMANCE)
    """Rows decoded in one batch. Empty: 512; on GPUs 4096 for bases below 100 million weights."""


class EvalConfig(Section):
    """A fixed eval on held-out tasks, which separates skill from a drift of the tasks."""

    every: int = Field(default=10, ge=0, json_schema_extra=DURATION)
    """Steps between evals, which also follow the first and the last step; 0: none."""
    tasks_per_type: int = Field(default=20, ge=1, le=2000, json_schema_extra=TRAINING)
    """Members may not propose the programs of these tasks, so a run keeps its eval on resume."""
    strata: list[str] = Field(default_factory=list, json_schema_extra=TRAINING)
    """Only tasks of these groups, such as `deep` or `07_statements`; empty: all."""
    samples: int = Field(default=4, ge=1, le=1000)
    """Samples per task at temperature 1, for tasks without an exact probability of the answer."""
    seed: int = Field(default=1121, ge=0, json_schema_extra=TRAINING)


class LoggerConfig(Section):
    """Loggers beside the run's records; they do not affect the run."""

    names: list[Literal["tensorboard", "wandb", "trackio"]] = Field(default_factory=list)
    """Any of tensorboard, wandb, trackio. Environment variables set the rest (WANDB_PROJECT,
    WANDB_ENTITY, WANDB_MODE; TRACKIO_PROJECT)."""


class RunConfig(Section):
    """Folder and length of the run, and what it records."""

    dir: str = ""
    """Empty: runs/<population>-<date>-<n>, with the first free number."""
    steps: int = Field(default=20, ge=0, json_schema_extra=DURATION)
    checkpoint_every: int = Field(default=5, ge=1)
    """Steps between checkpoints, of which the newest two are kept."""
    snapshot_every: int = Field(default=0, ge=0)
    """Steps between snapshots of the members (`snapshots/step_<n>`), for `azr-population eval` and
    `crossplay`; 0: none. A member of the nano base takes 0.5 MB."""
    log_completions: int = Field(default=16, ge=0)
    """Completions of each step that `completions.jsonl` keeps, of the first step all (1000 at
    most); 0: none. Spread over verdicts, members, task types and reasons."""
    console: Literal["auto", "live", "lines"] = "auto"
    """The console: tables that redraw (live), a line for each event, or auto: live in a terminal,
    lines elsewhere."""


class Config(Section):
    """A whole run."""

    seed: int = Field(default=1, ge=0)
    population: PopulationConfig = Field(default_factory=PopulationConfig)
    evolution: EvolutionConfig = Field(default_factory=EvolutionConfig)
    matchmaking: MatchmakingConfig = Field(default_factory=MatchmakingConfig)
    task: TaskConfig = Field(default_factory=TaskConfig)
    referee: RefereeConfig = Field(default_factory=RefereeConfig)
    base: BaseConfig = Field(default_factory=BaseConfig)
    engine: EngineConfig = Field(default_factory=EngineConfig)
    eval: EvalConfig = Field(default_factory=EvalConfig, json_schema_extra=EVALUATION)
    logger: LoggerConfig = Field(default_factory=LoggerConfig, json_schema_extra=NONE)
    run: RunConfig = Field(default_factory=RunConfig, json_schema_extra=NONE)
    callbacks: list[str] = Field(default_factory=list)
    """Callbacks of yours, `module.Class`, which measure in every step (docs/extending.md)."""

    @model_validator(mode="after")
    def _refuse_contradictions(self) -> Self:
        population = self.population
        if population.student_advantage in COMPARING and population.samples_per_task < 2:
            raise UserError(
                f"population.samples_per_task={population.samples_per_task} has nothing to "
                "compare an attempt with; give at least 2, or population.student_advantage=batch",
                key="population.samples_per_task",
            )
        if self.base.name != "nano" and not self.base.path:
            raise UserError(
                "base.path has no value; give the folder of a Hugging Face causal LM, or its name "
                "on the Hub",
                key="base.path",
            )
        return self
