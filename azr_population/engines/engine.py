"""The interfaces between self-play and the code that runs the model, on token ids.

A **rollout** samples, a **learner** trains (`TorchLearner`); an **engine** is both and keeps them
in sync. Members are addressed by their slot. Only `text.py` handles text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from torch import Tensor, nn

from azr_population.config.schema import PROMPT_DATE, LearnerConfig
from azr_population.errors import UserError
from azr_population.registry import Registry
from azr_population.weights.adapter import Adapter, LoraSpec

if TYPE_CHECKING:
    from azr_population.weights.bank import Bank

Ids = Sequence[int]
"""Token ids of one prompt or of one completion."""


NO_ADAPTER = -1
"""The slot of the bare base."""


@dataclass(frozen=True)
class Sampling:
    """How completions are drawn; `n` completions per prompt.

    `max_new_tokens` is one limit for all prompts, or one for each. At `temperature` 0 decoding is
    greedy; log-probabilities are those at temperature 1.
    """

    max_new_tokens: int | tuple[int, ...]
    temperature: float = 1.0
    top_p: float = 1.0
    n: int = 1

    def limits(self, prompts: int) -> list[int]:
        """The limits of this number of prompts."""
        limits = self.max_new_tokens
        return [limits] * prompts if isinstance(limits, int) else list(limits)

    def select(self, rows: Sequence[int]) -> Sampling:
        """The sampling of some rows of a call."""
        limits = self.max_new_tokens
        if isinstance(limits, int):
            return self
        return replace(self, max_new_tokens=tuple(limits[row] for row in rows))


@dataclass(frozen=True)
class Completion:
    """One sampled continuation.

    `token_ids` include the end-of-sequence token when `finished`; `logprobs[i]` is the natural log
    of the probability that the sampler gave `token_ids[i]` (see `Sampling`); `text` is without the
    end of sequence, and empty if it was not decoded.
    """

    slot: int
    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finished: bool
    text: str = ""


class Generated(NamedTuple):
    """Counts of what an engine has generated for a member."""

    rollouts: int
    tokens: int


class GeneratedCounts(dict[int, Generated]):
    """Counts of generated rollouts and tokens by slot."""

    def add(self, completions: Iterable[Completion]) -> None:
        """Counts the completions for their members."""
        for done in completions:
            rollouts, tokens = self.get(done.slot, (0, 0))
            self[done.slot] = Generated(rollouts + 1, tokens + len(done.token_ids))


@dataclass(frozen=True)
class TrainingSample:
    """One row of a policy-gradient update: a completion and its advantage."""

    completion: Completion
    advantage: float


Samples = Mapping[int, Sequence[TrainingSample]]
"""The rows of an update by slot."""


class Hyperparameters(NamedTuple):
    """The hyperparameters of a member's update."""

    lr: float
    kl_loss_coef: float = 0.0
    """Weight of the KL divergence from the bare base in the loss."""


@dataclass(frozen=True)
class PromptBatch:
    """Prompts as token ids, the slot of each one's writer, and the numbers by which rows draw."""

    prompts: Sequence[Ids]
    slots: Sequence[int]
    numbers: Sequence[int]

    def select(self, rows: Sequence[int]) -> PromptBatch:
        """Some of the rows."""
        return PromptBatch(
            [self.prompts[row] for row in rows],
            [self.slots[row] for row in rows],
            [self.numbers[row] for row in rows],
        )


Updates = dict[int, dict[str, float]]
"""The metrics of an update by slot."""


Finished = tuple[int, list[Completion]]
"""A row's place in its batch, and the completions of its prompt."""


class Sampler:
    """Samples completions of many members in one batch. A subclass has `stream`."""

    def stream(
        self, batch: PromptBatch, sampling: Sampling, seed: int
    ) -> Iterator[Sequence[Finished]]:
        """`sampling.n` completions of each prompt by its member, as rows end. A row's random
        numbers depend on (`seed`, its number) and not on other rows."""
        raise NotImplementedError

    def generate(
        self,
        prompts: Sequence[Ids],
        slots: Sequence[int],
        sampling: Sampling,
        seed: int,
        rows: Sequence[int] | None = None,
    ) -> list[list[Completion]]:
        """Completions of `stream` after all rows have ended, in the order of the prompts. Rows are
        numbered in order, or by `rows` if they are part of a larger call."""
        batch = PromptBatch(prompts, slots, range(len(prompts)) if rows is None else rows)
        groups = dict(chain.from_iterable(self.stream(batch, sampling, seed)))
        return [groups[row] for row in range(len(prompts))]


class Rollout(Sampler):
    """A sampler that receives the members' weights. A subclass has `make`, `stream` and `push`; one
    of your own is in a module that the run can import: `engine.rollout=my_module.MyRollout`."""

    own_weights = False
    """Whether it has weights beside the learner's: then its log-probabilities are rounded in
    another way, and a canary checks what it serves."""
    longest: int | None = None
    """Most tokens of a prompt and its completion together; None if only the base limits it."""

    @classmethod
    def check(cls, rank: int) -> None:
        """Refuses what is known to fail before anything is loaded; `rank` is the adapters'."""

    @classmethod
    def make(
        cls, model: nn.Module, bank: Bank, stop_ids: frozenset[int], settings: EngineSettings
    ) -> Rollout:
        """That of an engine on a loaded base, whose completions end with one of `stop_ids`. Of the
        members in the bank only number and shape are asked, they are pushed later."""
        raise NotImplementedError

    def push(self, slot: int, adapter: Adapter) -> None:
        """Sets the slot's member to `adapter` from the next `generate` on."""
        raise NotImplementedError

    def asleep(self) -> AbstractContextManager[None]:
        """Inside the block nothing is sampled, and the learner may use the rollout's memory."""
        return nullcontext()

    def close(self) -> None:
        """Frees its resources; it cannot generate afterwards."""


ROLLOUTS: Registry[type[Rollout]] = Registry("engine.rollout")
"""By name; `assembly` registers ours."""

IMPORTANCE_CAP = 2.0
"""Cap of the weights min(learner / sampler, cap) where the sampler is not quite the learner; veRL's
and TRL's default."""

ROWS, TOKENS = 512, 393_216
"""Most rows of a batch, and most tokens of its KV cache (docs/azr_inside.md, Memory)."""

SMALL_BASE, SMALL_BASE_ROWS = 100_000_000, 4096
"""Weights below which a base costs a GPU more launches than work, and rows of a batch there."""


@dataclass(frozen=True)
class EngineSettings:
    """The settings of an engine; plain data, because they are sent to other processes."""

    base: str
    """Folder of the base, or its name on the Hub."""
    names: tuple[str, ...]
    """The members' names by slot."""
    lora: LoraSpec
    device: str = "cpu"
    dtype: str = "float32"
    """The base's dtype."""
    quantization: str | None = None
    """The base's quantization; see `BaseConfig`."""
    prompt_date: str = PROMPT_DATE
    """The day for chat templates; see `BaseConfig`."""
    rollout: str = "torch"
    """The sampler, by its name in `ROLLOUTS`."""
    generate_rows: int | None = None
    generate_tokens: int = TOKENS
    """Limits of the torch rollout: rows in a batch (None: by the base's size), tokens in its KV
    cache."""
    vllm: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of `vllm.LLM` as the user gave them."""
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    chat: bool = True
    """Whether prompts may be turns of the base's own chat template; see `stop_ids`."""
    seed: int = 0
    """Seed for initialising members in worker processes; the hosts then load their founders."""
    threads: int = 0
    """Torch threads of a worker; 0: torch's own choice."""

    def for_base(self, weights: int) -> EngineSettings:
        """The settings for a base of so many weights, with what they leave to its size."""
        on_gpu, small = self.device.startswith("cuda"), weights < SMALL_BASE
        learner, rows = self.learner, SMALL_BASE_ROWS if on_gpu and small else ROWS
        if learner.gradient_checkpointing is None:
            learner = learner.model_copy(update={"gradient_checkpointing": on_gpu and not small})
        return replace(self, learner=learner, generate_rows=self.generate_rows or rows)

    @property
    def slots(self) -> int:
        """The number of members."""
        return len(self.names)

    @property
    def rollout_class(self) -> type[Rollout]:
        """The class of what samples. Raises UserError when there is none."""
        kind = ROLLOUTS.find(self.rollout)
        if not (isinstance(kind, type) and issubclass(kind, Rollout)):
            raise UserError(
                f"engine.rollout={self.rollout} is not a class of {Rollout.__module__}.Rollout",
                key="engine.rollout",
            )
        return kind

    @property
    def tensor_parallel_size(self) -> int:
        """Ranks that sample the same rows together: vLLM's tensor parallelism."""
        return int(self.vllm.get("tensor_parallel_size") or 1)

    @property
    def importance_sampling_cap(self) -> float:
        """The cap of the importance weights. Empty: 2 if the sampler's log-probabilities differ
        from the learner's, because it has its own weights or the base is not float32; otherwise 0,
        off."""
        cap = self.learner.importance_sampling_cap
        if cap is not None:
            return cap
        own_weights = self.rollout_class.own_weights
        return IMPORTANCE_CAP if own_weights or self.dtype != "float32" else 0.0


class Engine(Sampler):
    """A learner and a sampler that always samples from the learner's newest weights."""

    def update(self, samples: Samples, hyperparameters: Mapping[int, Hyperparameters]) -> Updates:
        """One policy-gradient step per slot on its own samples; metrics per slot."""
        raise NotImplementedError

    def log_probs(
        self, prompts: Sequence[Ids], responses: Sequence[Ids], slots: Sequence[int]
    ) -> list[Tensor]:
        """For each row the log-probability (temperature 1) of each response token, in nats; float32
        on the CPU."""
        raise NotImplementedError

    def read(self, slot: int) -> Adapter:
        """A copy of the member's factors, on the CPU."""
        raise NotImplementedError

    def write(self, slot: int, adapter: Adapter) -> None:
        """Replaces the member's factors and resets its optimizer."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """Everything a checkpoint needs: `adapters` and `optimizers`, both by slot."""
        raise NotImplementedError

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of `state_dict`."""
        raise NotImplementedError
