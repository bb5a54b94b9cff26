"""The configuration of a run, one dataclass per room: each field with its default, its meaning, its
bounds and what it changes. The YAML groups beside this file fill them.

The groups of members, matches, evolution and adapters are those of both hosts; `inside_azr.py` has
what only AZR's needs. Values marked *ours* are not in the paper or in AZR: they are what held the
dynamics at nano scale.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from azr_population.config.setting import Effect, setting

COMPARING = ("task", "right", "rare")
"""Baselines that compare the attempts at one task: they need two."""

DTYPES = ("float32", "bfloat16", "float16")


@dataclass
class MembersConfig:
    """Who plays and what for, in both hosts."""

    name: str = setting("4t4s", effect=Effect.NOTHING)
    """What pages and consoles call it. A name that tells numbers is made to tell the true ones."""
    teachers: int = setting(4, least=0, most=128)
    students: int = setting(4, least=0, most=128)
    """0 teachers and 0 students is the single agent, which proposes and solves (stock AZR)."""
    teacher_reward: str = "adversarial"
    """adversarial, learnability, stock, or the path of a function of yours: `module.function`."""
    student_reward: str = "azr"
    """azr (1, -0.5 wrong, -1 no answer), or the path of yours."""
    advantage: str = "task_relative"
    """task_relative (TRR++), or the path of yours."""
    duplicate_price: float = setting(0.0, least=0)
    """Taken off a proposal's reward for each other copy of it in the step or buffer; ours."""

    def __post_init__(self) -> None:
        if re.fullmatch(r"single|\d+t\d+s", self.name):
            self.name = "single" if self.single else f"{self.teachers}t{self.students}s"

    @property
    def members(self) -> int:
        """How many adapters the run has."""
        return max(1, self.teachers + self.students)

    @property
    def single(self) -> bool:
        """Whether one agent plays both roles."""
        return self.teachers == 0 and self.students == 0


@dataclass
class PopulationConfig(MembersConfig):
    """Who plays, what for, and with what budget per step, in a local run."""

    rows: int = setting(48, least=2, most=100_000)
    """Training rows per member per step, equal in every arm; the single agent splits its rows."""
    attempts: int = setting(4, least=1, most=1000)
    """Answers drawn per valid task to estimate its solve rate (AZR's n_samples)."""
    solver_baseline: str = "type"
    """What an attempt is worth. `type`: against all attempts at that type of task (TRR++, as AZR);
    against the others at its task, where not all agree: `task` (RLOO), `right` (right answers
    only), `rare` (the same, worth more where few are right); or the path of yours."""
    duplicate_price: float = setting(0.3, least=0)
    teacher_lr: float = setting(1.5e-4, least=0)
    """AdamW step of teachers; bases set their own. Near their students' they ran away (ours,
    RESULTS.md)."""
    student_lr: float = setting(1e-3, least=0)
    agent_lr: float = setting(1e-3, least=0)


@dataclass
class EvolutionConfig:
    """Replacement of the worst members by children of better ones (PBT)."""

    interval: int = setting(5, least=0)
    """Steps between replacements; 0 switches evolution off."""
    fraction: float = setting(0.25, least=0, most=1)
    """Share of each sub-population replaced at an interval, at least one member."""
    elites: int = setting(1, least=1)
    """The best members of each sub-population that can never be replaced."""
    ready: int = setting(8, least=0)
    """Steps in which a child cannot be replaced. Its rating is widened, so mu - 3 sigma would send
    it away first at the next interval. Longer than interval x members, and nobody is left to choose
    a victim from."""
    fitness: str = "conservative_rating"
    """conservative_rating, mu, mean_reward, blind; in local runs also crossplay (every student at
    the step's tasks of every teacher) and exam_validation (a held-out exam that nobody reports)."""
    validation_seed: int = setting(3011, least=0)
    """Of the exam of `exam_validation`, which leaves out the tasks of the reported one."""
    validation_tasks: int = setting(200, least=1, most=2000)
    """Of each type in it, answered once, greedily: at 40 tasks students' scores were mostly noise
    (reliability .06 to .21). `fitness_reliability` tells what they are worth."""
    selection: str = "truncation"
    replacement: str = "worst"
    selection_options: dict[str, float] = field(default_factory=dict)
    """Options of the selection: `top` (truncation), `size` (tournament), `base` (proportional)."""
    widen: float = setting(25.0 / 6.0, least=0)
    """What a child's rating deviation gains over its parents', in TrueSkill points."""
    operators: dict[str, float] = field(default_factory=dict)
    """Operator name -> weight in the draw; 0 or absent switches an operator off. A sequence is a
    name too: `svd_subspace+full_gaussian` mutates what the crossover made."""
    options: dict[str, dict[str, float]] = field(default_factory=dict)
    """Operator name -> its options, such as `dare: {p: 0.5}`; `azr-population evolve --list`."""
    adaptive: bool = False
    """Log-normal self-adaptation of the operators' step sizes: children inherit and vary them."""
    adaptive_tau: float = setting(0.3, above=0)
    """Standard deviation of the logarithm of a step size's change per child; ours."""


@dataclass
class MatchmakingConfig:
    """Who meets whom."""

    weighting: str = "balanced"
    options: dict[str, float] = field(default_factory=dict)
    """Options of the weighting, such as `k` of `hard`."""
    forfeit: bool = True
    """An invalid proposal counts as a game that its teacher lost."""
    draw_probability: float = setting(0.1, least=0, below=1)
    """Chance that a game between equals is a draw, as TrueSkill assumes."""
    tau: float = setting(25.0 / 300.0, least=0)
    """Drift of a skill per match, in TrueSkill points."""
    past: float = setting(0.0, least=0, below=1)
    """Share of each teacher's tasks that goes to, and is paid by, a student of an earlier snapshot
    (local runs with run.snapshot_every)."""


@dataclass
class TaskConfig:
    """Which tasks are asked for and which count as valid."""

    domain: str = "code"
    """What tasks are about: `code`, `code_e`, `puzzles`, or the path of a class of yours:
    `module.Class`."""
    types: list[str] | None = None
    """Of the domain's types of task (of `code` code_o, code_i, code_f); not given: all."""
    refuse: list[str] | None = None
    """Rules that make a task invalid, of `code` any of boolean, constant, identity, which refuse
    guessable answers; not given: all."""
    max_program_chars: int = setting(600, least=1)
    max_output_chars: int = setting(200, least=1)
    references: int = setting(0, least=0)
    """Tasks from the buffer shown to a proposing teacher (AZR: 6); the nano format uses none."""
    buffer_size: int = setting(4096, least=1)
    seed_file: str | None = None
    """AZR seed tasks (`*_seed_io.jsonl`) that fill the buffer before the first step."""


@dataclass
class RefereeConfig:
    """Limits of the sandbox; see `azr_population.referee.RefereeSettings`."""

    workers: int = setting(2, least=0, most=256, effect=Effect.NOTHING)
    deadline: float = setting(10.0, least=0.01, most=3600)
    """Wall-clock seconds for one execution: the last resort."""
    cpu_seconds: float = setting(0.5, least=0, most=3600)
    """CPU seconds of one execution: ends endless loops alike on a busy and on an idle machine."""
    share: int = setting(16, least=1, most=256)
    """Tasks that may share a child when their programs are plain; 1: none, see RefereeSettings."""
    memory_mb: int = setting(256, least=16, most=1 << 20)
    accept_unconfined: bool = False


@dataclass
class LoraConfig:
    """Shape of every adapter; fields as in `peft.LoraConfig`."""

    rank: int = setting(8, least=1, most=512)
    alpha: float = setting(16.0, above=0)
    target_modules: list[str] = field(default_factory=lambda: ["all-linear"])


@dataclass
class BaseConfig:
    """The frozen base model and the way it is talked to."""

    name: str = "nano"
    path: str | None = None
    """A Hugging Face folder, or a name on the Hub; empty means the nano base that ships."""
    format: str = "nano"
    """`nano` (special tokens), `chat` (instructions and fenced blocks) or `short` (a sentence; for
    bases warmed up by `azr-population base`)."""
    dtype: str = setting("float32", among=DTYPES)
    lora: LoraConfig = field(default_factory=LoraConfig)


@dataclass
class ComputeConfig:
    """How members are trained, as far as both hosts take it from the user."""

    importance_cap: float | None = setting(None, least=0)
    """Cap of the importance weights learner / sampler in an update; 0 switches them off. Empty: 2
    where vLLM samples, or where a local run's base is not float32, 0 otherwise."""
    micro_batch_tokens: int = setting(1024, least=1, effect=Effect.SPEED)
    """Tokens (with padding) in one forward and backward of an update."""
    products: str | None = setting(None, among=DTYPES)
    """The dtype in which adapters are multiplied in updates and scoring; their weights and AdamW
    stay float32. Empty: the base's on GPUs, float32 on CPUs."""
    keep_tokens: int | None = setting(None, least=0, effect=Effect.SPEED)
    """With gradient checkpointing: pieces of at most so many tokens keep their activations all the
    same, so that no layer is run twice for them. 0: none do. Empty: inside AZR as many as fit
    beside the rest on each GPU, else none."""
    shard: bool | None = setting(None, effect=Effect.SPEED)
    """Whether workers share the frozen base out (FSDP2), each holding a part; what samples needs
    weights of its own then. Empty: inside AZR where the base does not fit otherwise, else not."""


@dataclass
class LearnerConfig(ComputeConfig):
    """How members are trained; inside AZR the rest comes from `actor_rollout_ref.actor`."""

    max_grad_norm: float = setting(1.0, above=0)
    weight_decay: float = setting(0.0, least=0)
    clip_ratio: float = setting(0.2, least=0)
    gradient_checkpointing: bool = setting(False, effect=Effect.SPEED)
    """Whether an update runs the layers again in its backward pass and keeps no activations."""
    share_prompts: bool = setting(True, effect=Effect.SPEED)
    """Whether a prompt is computed once for all its completions, in sampling and in updates: on
    CPUs, where the base allows it. It changes rounding."""

    @property
    def most_tokens(self) -> int:
        """In one forward and backward of an update, but for a longer row, which goes alone."""
        kept = self.keep_tokens if self.gradient_checkpointing else None
        return min(self.micro_batch_tokens, kept or self.micro_batch_tokens)


@dataclass
class EngineConfig(LearnerConfig):
    """The engine that generates and trains."""

    name: str = setting("torch", among=("torch", "ray"))
    """`torch` computes in this process, `ray` in `workers` processes."""
    workers: int = setting(1, least=1, most=1024)
    """Processes, each with the whole base (and a GPU of its own where `device` is cuda)."""
    rollout: str = "torch"
    """What samples: `torch`, `vllm` where it is installed, or `module.class`: a `RolloutKind` of
    yours (`engines/rollouts.py`)."""
    vllm: dict[str, Any] = field(default_factory=dict)
    """Arguments of `vllm.LLM`, such as gpu_memory_utilization or max_model_len."""
    device: str = setting("cpu", among=("cpu", "cuda"))
    threads: int = setting(0, least=0, most=1024, effect=Effect.SPEED)
    """Torch threads; 0 leaves torch's own choice (one per core)."""
    temperature: float = setting(1.0, above=0)
    propose_tokens: int = setting(0, least=0)
    """Longest proposal in tokens; 0 takes the format's own limit."""
    solve_tokens: int = setting(0, least=0)
    generate_rows: int = setting(512, least=1, effect=Effect.SPEED)
    """Rows decoded in one batch."""


@dataclass
class ExamConfig:
    """A fixed exam on held-out tasks, so that student skill can be told from task drift."""

    every: int = setting(10, least=0, effect=Effect.SPAN)
    """Steps between exams, also after the first and after the last step; 0: none."""
    tasks_per_type: int = setting(20, least=1, most=2000)
    attempts: int = setting(4, least=1, most=1000)
    """Samples at each task whose chance to be solved cannot be had exactly; temperature 1."""
    final_attempts: int = setting(0, least=0, most=1000)
    """The same after the first and the last step, where gains are measured; 0: `attempts`."""
    seed: int = setting(1121, least=0)
    own_tasks: int = setting(0, least=0, most=2000, effect=Effect.PLAY)
    """Tasks of a second exam: of the teacher before step 1, kept in `exam_own.jsonl`, sat greedily;
    0: none. Copies of their programs are refused, so it is a part of what is played."""


@dataclass
class LoggerConfig:
    """Who else gets the figures of every step; the run does not depend on it."""

    names: list[str] = field(default_factory=list)
    """Any of tensorboard, wandb, trackio, and the paths of yours."""
    project: str = "azr-population"
    """Of Weights & Biases and trackio, as the fields below."""
    entity: str | None = None
    group: str | None = None
    """Empty: the population's name, so that seeds of an arm are one group."""
    run_name: str | None = None
    mode: str | None = setting(None, among=("online", "offline", "disabled"))
    """Empty leaves it to WANDB_MODE."""


@dataclass
class RunConfig:
    """Where the run is recorded and how long it goes on."""

    dir: str = "runs/demo"
    steps: int = setting(20, least=0, effect=Effect.SPAN)
    checkpoint_every: int = setting(5, least=1)
    keep_checkpoints: int = setting(2, least=1)
    """The newest ones."""
    keep_every: int = setting(0, least=0)
    """Steps between checkpoints that stay besides, for `run.fork`; 0: none. Each holds the members
    and their optimizers: 3 times a snapshot."""
    snapshot_every: int = setting(0, least=0)
    """Steps between snapshots of the members (`snapshots/step_<n>`), for `azr-population exam` and
    `crossplay`; 0: none. A member of the nano base takes 0.5 MB."""
    snapshot_early: list[int] = setting(factory=list, least=0)
    """Further steps after which there is one; 0 is before the first: most is learned early."""
    completions: int = setting(16, least=0)
    """Completions of each step that `completions.jsonl` keeps, of the first step all (1000 at
    most); 0: none. Spread over verdicts, members, task types and reasons."""
    view: str = "auto"
    """Who shows it: auto (tables in a terminal, lines elsewhere), live, plain, lines, or the path
    of yours."""
    resume: bool = False
    fork: str | None = setting(None, effect=Effect.PLAY)
    """RUN@STEP: go on from a checkpoint of another run (`keep_every`) under this configuration.
    Members, optimizers, ratings, lineage and buffer are those of the checkpoint, and its records up
    to there are copied. Draws depend on (seed, step): with the seed of the other run both draw the
    same random numbers from there on (a pair), with another seed others."""


@dataclass
class Config:
    """A whole run."""

    seed: int = setting(1, least=0)
    population: PopulationConfig = field(default_factory=PopulationConfig)
    evolution: EvolutionConfig = field(default_factory=EvolutionConfig)
    matchmaking: MatchmakingConfig = field(default_factory=MatchmakingConfig)
    task: TaskConfig = field(default_factory=TaskConfig)
    referee: RefereeConfig = field(default_factory=RefereeConfig)
    base: BaseConfig = field(default_factory=BaseConfig)
    engine: EngineConfig = field(default_factory=EngineConfig)
    exam: ExamConfig = setting(factory=ExamConfig, effect=Effect.MEASURE)
    logger: LoggerConfig = setting(factory=LoggerConfig, effect=Effect.NOTHING)
    run: RunConfig = setting(factory=RunConfig, effect=Effect.NOTHING)
