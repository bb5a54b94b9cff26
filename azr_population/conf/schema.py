"""The configuration of a run, one dataclass per room; the YAML groups beside this file fill them.

Values marked *ours* are not in the paper or in AZR: they are what held the dynamics at nano scale.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class PopulationConfig:
    """Who plays, and with what budget per step."""

    name: str = "4t4s"
    teachers: int = 4
    students: int = 4
    """0 teachers and 0 students is the single agent, which proposes and solves (stock AZR)."""
    rows: int = 48
    """Training rows per member per step, equal in every arm; the single agent splits its rows."""
    attempts: int = 4
    """Answers drawn per valid task to estimate its solve rate (AZR's n_samples)."""
    teacher_reward: str = "adversarial"
    solver_baseline: str = "type"
    """What an attempt is compared with: `type` (all attempts at that type of task: TRR++, as in
    AZR) or `task` (the other attempts at the same task; tasks on which all agree are left out)."""
    duplicate_price: float = 0.3
    """Taken off a proposal's reward for each other copy of it in the batch or buffer; ours."""
    teacher_lr: float = 3e-4
    """AdamW step of teachers: 0.3 of the students', or the teacher runs away (ours)."""
    student_lr: float = 1e-3
    agent_lr: float = 1e-3


@dataclass
class EvolutionConfig:
    """Replacement of the worst members by children of better ones (PBT)."""

    interval: int = 5
    """Steps between replacements; 0 switches evolution off."""
    fraction: float = 0.25
    """Share of each sub-population replaced at an interval, at least one member."""
    elites: int = 1
    """The best members of each sub-population that can never be replaced."""
    ready: int = 20
    """Steps in which a child cannot be replaced. Its rating is widened, so mu - 3 sigma would send
    it away first at the next interval; 20 is what the paper's children need to recover (Fig 6)."""
    fitness: str = "conservative_rating"
    selection: str = "truncation"
    replacement: str = "worst"
    selection_options: dict[str, float] = field(default_factory=dict)
    """Options of the selection: `top` (truncation), `size` (tournament), `base` (proportional)."""
    widen: float = 25.0 / 6.0
    """What a child's rating deviation gains over its parents', in TrueSkill points."""
    operators: dict[str, float] = field(default_factory=dict)
    """Operator name -> weight in the draw; 0 or absent switches an operator off. A sequence is a
    name too: `svd_subspace+full_gaussian` mutates what the crossover made."""
    options: dict[str, dict[str, float]] = field(default_factory=dict)
    """Operator name -> its options, such as `dare: {p: 0.5}`; `azr-population evolve --list`."""
    adaptive: bool = False
    """Log-normal self-adaptation of the operators' step sizes: children inherit and vary them."""
    adaptive_tau: float = 0.3
    """Standard deviation of the logarithm of a step size's change per child; ours."""


@dataclass
class MatchmakingConfig:
    """Who meets whom."""

    weighting: str = "balanced"
    options: dict[str, float] = field(default_factory=dict)
    """Options of the weighting, such as `k` of `hard`."""
    forfeit: bool = True
    """An invalid proposal counts as a game that its teacher lost."""
    draw_probability: float = 0.1
    """Chance that a game between equals is a draw, as TrueSkill assumes."""
    tau: float = 25.0 / 300.0
    """Drift of a skill per match, in TrueSkill points."""


@dataclass
class TaskConfig:
    """Which tasks are asked for and which count as valid."""

    types: list[str] = field(default_factory=lambda: ["code_o", "code_i", "code_f"])
    refuse: list[str] = field(default_factory=lambda: ["boolean", "constant", "identity"])
    """Guessable answers that make a task invalid; any of boolean, constant, identity."""
    max_program_chars: int = 600
    max_output_chars: int = 200
    references: int = 0
    """Tasks from the buffer shown to a proposing teacher (AZR: 6); the nano format uses none."""
    buffer_size: int = 4096
    seed_file: str | None = None
    """AZR seed tasks (`*_seed_io.jsonl`) that fill the buffer before the first step."""


@dataclass
class RefereeConfig:
    """Limits of the sandbox; see `azr_population.referee.RefereeSettings`."""

    workers: int = 2
    deadline: float = 10.0
    """Wall-clock seconds for a task with all its attempts: the last resort."""
    cpu_seconds: float = 0.5
    """CPU seconds of a task: ends endless loops alike on a busy and on an idle machine."""
    share: int = 1
    """Tasks that may share a child when their programs are plain; faster, see RefereeSettings."""
    memory_mb: int = 256
    accept_unconfined: bool = False


@dataclass
class LoraConfig:
    """Shape of every adapter; fields as in `peft.LoraConfig`."""

    rank: int = 8
    alpha: float = 16.0
    target_modules: list[str] = field(default_factory=lambda: ["all-linear"])


@dataclass
class BaseConfig:
    """The frozen base model and the way it is talked to."""

    name: str = "nano"
    path: str | None = None
    """A Hugging Face folder; empty means the nano base that ships with the package."""
    format: str = "nano"
    """`nano` (special tokens) or `chat` (instructions and fenced blocks)."""
    dtype: str = "float32"
    lora: LoraConfig = field(default_factory=LoraConfig)


@dataclass
class EngineConfig:
    """The engine that generates and trains."""

    name: str = "torch"
    device: str = "cpu"
    threads: int = 0
    """Torch threads; 0 leaves torch's own choice (one per core)."""
    temperature: float = 1.0
    propose_tokens: int = 0
    """Longest proposal in tokens; 0 takes the format's own limit."""
    solve_tokens: int = 0
    generate_rows: int = 512
    """Rows decoded in one batch."""
    micro_batch_tokens: int = 1024
    """Tokens (with padding) in one forward and backward of an update."""
    max_grad_norm: float = 1.0
    weight_decay: float = 0.0
    clip_ratio: float = 0.2


@dataclass
class ExamConfig:
    """A fixed exam on held-out tasks, so that student skill can be told from task drift."""

    every: int = 10
    """Steps between exams, also after the first and after the last step; 0: none."""
    tasks_per_type: int = 20
    attempts: int = 1
    """At each task; one is greedy, several are drawn at temperature 1."""
    final_attempts: int = 0
    """The same at the sitting after the last step, where arms are compared; 0: `attempts`."""
    seed: int = 2605


@dataclass
class LoggerConfig:
    """Who else gets the figures of every step; the run does not depend on it."""

    names: list[str] = field(default_factory=list)
    """Any of tensorboard, wandb."""
    project: str = "azr-population"
    """Of Weights & Biases, as the fields below."""
    entity: str | None = None
    group: str | None = None
    """Empty: the population's name, so that seeds of an arm are one group."""
    run_name: str | None = None
    mode: str | None = None
    """online, offline or disabled; empty leaves it to WANDB_MODE."""


@dataclass
class RunConfig:
    """Where the run is recorded and how long it goes on."""

    dir: str = "runs/demo"
    steps: int = 20
    checkpoint_every: int = 5
    keep_checkpoints: int = 2
    resume: bool = False


@dataclass
class Config:
    """A whole run."""

    seed: int = 1
    population: PopulationConfig = field(default_factory=PopulationConfig)
    evolution: EvolutionConfig = field(default_factory=EvolutionConfig)
    matchmaking: MatchmakingConfig = field(default_factory=MatchmakingConfig)
    task: TaskConfig = field(default_factory=TaskConfig)
    referee: RefereeConfig = field(default_factory=RefereeConfig)
    base: BaseConfig = field(default_factory=BaseConfig)
    engine: EngineConfig = field(default_factory=EngineConfig)
    exam: ExamConfig = field(default_factory=ExamConfig)
    logger: LoggerConfig = field(default_factory=LoggerConfig)
    run: RunConfig = field(default_factory=RunConfig)
