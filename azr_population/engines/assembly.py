"""The engine of one process, and how it is made from its settings: base, members, learner, rollout,
canary. Every host and command makes its engine here.
"""

import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from azr_population.config.schema import LoraConfig
from azr_population.engines.base_folder import base_folder
from azr_population.engines.base_model import load_base, stop_ids, use_fused_kernels
from azr_population.engines.canary import Canary
from azr_population.engines.engine import (
    ROLLOUTS,
    Engine,
    EngineSettings,
    Finished,
    Hyperparameters,
    Ids,
    PromptBatch,
    Rollout,
    Samples,
    Sampling,
    Updates,
)
from azr_population.engines.optimizers import moments
from azr_population.engines.text import TextEngine
from azr_population.engines.torch_learner import TorchLearner
from azr_population.engines.torch_rollout import TorchRollout, make_bank
from azr_population.engines.vllm_rollout import VllmRollout
from azr_population.errors import NotInstalled, UserError
from azr_population.registry import own_code
from azr_population.versions import installed
from azr_population.weights.adapter import Adapter, LoraSpec

ROLLOUTS.register("torch", "ours")(TorchRollout)
ROLLOUTS.register("vllm", "vLLM, multi-LoRA")(VllmRollout)

_CANARY = "def f(numbers, word):\n    return sorted(numbers), word[::-1]\n\n"
_CANARY_TOKENS = 160


def lora_of(config: LoraConfig) -> LoraSpec:
    """The shape of every adapter."""
    return LoraSpec(config.rank, config.alpha, tuple(config.target_modules))


class LocalEngine(Engine):
    """An engine of a learner and a rollout that receives what the learner changes. With a canary
    every pushed member is checked before the next token is sampled.

    If the two have separate weights, the order of a step is: the rollout sleeps, the learner scores
    and updates, the rollout wakes, changed members are pushed, the canary checks them, and only
    then is the next token sampled. A rollout that has room beside the learner stays awake, and has
    nothing to do meanwhile.
    """

    def __init__(
        self, rollout: Rollout, learner: TorchLearner, canary: Canary | None = None
    ) -> None:
        self.rollout = rollout
        self.learner = learner
        self._canary = canary
        self._unchecked: set[int] = set()

    def stream(
        self, batch: PromptBatch, sampling: Sampling, seed: int
    ) -> Iterator[Sequence[Finished]]:
        if self._canary and self._unchecked:
            self._canary.check(self.rollout, self.learner, sorted(self._unchecked))
            self._unchecked.clear()
        stream = self.rollout.stream(batch, sampling, seed) if batch.prompts else iter(())
        try:
            for rows in stream:
                self._refuse_nan(rows)
                yield rows
        finally:  # at once, also while an error is on its way: requests must not stay in vLLM
            if isinstance(stream, Generator):
                stream.close()

    def _refuse_nan(self, rows: Sequence[Finished]) -> None:
        for done in (done for _, group in rows for done in group):
            if math.isnan(sum(done.logprobs)):
                raise UserError(
                    f"engine.rollout: {type(self.rollout).__name__} gave NaN as a token's "
                    f"log-probability (the member in slot {done.slot}), so it samples from broken "
                    "weights; check its dtype and quantization"
                )

    def update(self, samples: Samples, hyperparameters: Mapping[int, Hyperparameters]) -> Updates:
        changed = list(samples)  # any of them, if the update raises
        try:
            with self.rollout.asleep():
                updates = self.learner.update(samples, hyperparameters)
            changed = [slot for slot, figures in updates.items() if figures["updates"]]
        finally:
            self.push(changed)
        return updates

    def log_probs(
        self, prompts: Sequence[Ids], responses: Sequence[Ids], slots: Sequence[int]
    ) -> list[Tensor]:
        with self.rollout.asleep():
            return self.learner.log_probs(prompts, responses, slots)

    def read(self, slot: int) -> Adapter:
        return self.learner.read(slot).map(Tensor.cpu)

    def write(self, slot: int, adapter: Adapter) -> None:
        self.learner.write(slot, adapter)
        self.push([slot])

    def state_dict(self) -> dict[str, Any]:
        return self.learner.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.learner.load_state_dict(state)
        self.push(list(state["adapters"]))

    def push(self, slots: Sequence[int]) -> None:
        """Pushes these members from the learner to the rollout."""
        for slot in slots:
            self.rollout.push(slot, self.learner.read(slot))
        self._unchecked.update(slots)


def make_engine(
    settings: EngineSettings,
    generators: Sequence[torch.Generator],
    parallel: bool = False,
) -> tuple[LocalEngine, Any]:
    """The engine of these settings, slot i drawn by `generators[i]`, and its base's tokenizer; for
    `parallel` see `TorchLearner`. Raises UserError: the base does not load, or what samples cannot
    serve it, or does not serve it as the learner holds it."""
    settings = replace(settings, base=str(base_folder(settings.base)))
    if settings.quantization and settings.rollout_class.own_weights:
        # vLLM quantises its copy in the same way.
        settings = replace(settings, vllm={"quantization": "bitsandbytes", **settings.vllm})
    model, tokenizer = load_base(
        settings.base,
        settings.dtype,
        settings.device,
        settings.quantization,
        settings.prompt_date,
    )
    if settings.learner.fused_kernels and settings.device.startswith("cuda"):
        use_fused_kernels(model)
    return assemble(model, tokenizer, settings, generators, parallel), tokenizer


def text_engine(
    settings: EngineSettings, generators: Sequence[torch.Generator], chat: bool = False
) -> TextEngine:
    """An engine with text in and out; for `chat` see `TextEngine`."""
    return TextEngine(*make_engine(settings, generators), chat)


def assemble(
    model: nn.Module,
    tokenizer: Any,
    settings: EngineSettings,
    generators: Sequence[torch.Generator],
    parallel: bool = False,
    canary: bool = True,
) -> LocalEngine:
    """An engine on a loaded base, which is frozen and gets the members' adapters. Without `canary`
    a sampler with weights of its own is not checked."""
    settings = settings.for_base(sum(weight.numel() for weight in model.parameters()))
    bank = make_bank(model, settings.lora, generators)
    cap = {"importance_sampling_cap": settings.importance_sampling_cap}
    learner = TorchLearner(model, bank, settings.learner.model_copy(update=cap), parallel)
    stops = stop_ids(model, tokenizer, settings.chat)
    rollout = settings.rollout_class.make(model, bank, stops, settings)
    if not (canary and settings.rollout_class.own_weights):
        return LocalEngine(rollout, learner)
    text = tokenizer(_CANARY * 40, add_special_tokens=False)["input_ids"]
    length = min(_CANARY_TOKENS, (rollout.longest or 2 * _CANARY_TOKENS) // 2)
    checks = Canary(text[:length], settings.names, settings.dtype)
    checks.self_test(rollout, learner, bank.slots)
    return LocalEngine(rollout, learner, checks)


def check_engine(name: str, workers: int) -> None:
    """Refuses processes that nothing can start, with a `UserError`."""
    missing = [needed for needed in ("ray", "verl") if not installed(needed)]
    if name == "ray" and missing:
        raise UserError(
            f"engine=ray needs {' and '.join(missing)}; install azr_population[verl], or use "
            "engine=torch"
        )
    if name != "ray" and workers > 1:
        raise UserError(
            f"engine.workers={workers} needs engine=ray; or leave engine.workers out",
            key="engine.workers",
        )


def _try_rollout(settings: EngineSettings) -> None:
    """Samples once by a rollout of the user's own from a tiny base with two members. One that has
    weights of its own may need the real base and is only looked at. Raises UserError: it fails, or
    what it gives is not what was asked for."""
    kind, key = settings.rollout_class, "engine.rollout"
    missing = [n for n in ("make", "stream", "push") if getattr(kind, n) is getattr(Rollout, n)]
    if missing:
        raise UserError(f"{key}={settings.rollout} has no {', no '.join(missing)}", key=key)
    if kind.own_weights:
        return
    # Imported late: 1,600 modules that only a rollout of the user's own needs.
    from transformers import LlamaConfig, LlamaForCausalLM

    shape = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "vocab_size": 16}
    model = LlamaForCausalLM(LlamaConfig(num_attention_heads=2, **shape)).eval()
    generators = [torch.Generator().manual_seed(slot) for slot in range(2)]
    bank = make_bank(model, replace(settings.lora, target_modules=("all-linear",)), generators)
    with own_code(key, settings.rollout, kind.stream):
        rollout = kind.make(model, bank, frozenset((0,)), replace(settings, names=("a", "b")))
        rollout.push(1, bank.read(1))
        groups = rollout.generate([[1, 2, 3], [4]], [1, 0], Sampling(4, n=2), seed=0)
        rollout.close()
        for slot, group in zip((1, 0), groups, strict=True):
            for done in group:
                if done.slot != slot or not 0 < len(done.token_ids) == len(done.logprobs) <= 4:
                    raise ValueError(f"a wrong completion of slot {slot}: {done!r:.200}")
            if len(group) != 2:
                raise ValueError(f"{len(group)} completions of a prompt, and 2 were asked for")


def check_settings(settings: EngineSettings) -> None:
    """Refuses what is known to fail before anything is loaded, with a `UserError`: an optimizer
    or a sampler that there is not, adapters of a rank that the sampler does not take, a base
    that is offloaded or quantised where nothing computes with it."""
    learner, quantization = settings.learner, settings.quantization
    moments(learner.optimizer)  # in one step on a dummy
    settings.rollout_class.check(settings.lora.rank)
    if settings.rollout not in ROLLOUTS:
        _try_rollout(settings)
    own_weights = settings.rollout_class.own_weights
    if learner.offload and not own_weights:
        raise UserError(
            f"offload=true needs a sampler with weights of its own, and rollout={settings.rollout} "
            "samples from the learner's; use rollout=vllm, or offload=false",
            key="offload",
        )
    if quantization is None:
        return
    key = "base.quantization"
    if not (installed("bitsandbytes") and installed("accelerate")):
        raise NotInstalled(
            f"{key}={quantization} needs bitsandbytes and accelerate; install "
            "azr_population[quantization]",
            key=key,
        )
    if own_weights and settings.tensor_parallel_size > 1:
        reason = "cannot be cut for tensor parallelism; set tensor_parallel_size=1"
    elif own_weights and not settings.device.startswith("cuda"):
        reason = "is served by vLLM on GPUs only; use rollout=torch"
    else:
        return
    raise UserError(f"{key}={quantization}: the base {reason}, or leave it out", key=key)
