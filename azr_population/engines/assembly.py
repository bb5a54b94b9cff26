"""An engine of one process, put together: what samples for a learner, and who checks it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from azr_population.engines import torch_rollout
from azr_population.engines import vllm_versions as versions
from azr_population.engines.base_model import stop_ids
from azr_population.engines.canary import Canary
from azr_population.engines.local import LocalEngine
from azr_population.engines.torch_learner import TorchLearner
from azr_population.engines.torch_rollout import TorchRollout
from azr_population.errors import UserError
from azr_population.versions import installed

IMPORTANCE_CAP = 2.0
"""Of the weights min(learner / sampler, cap) where the sampler is not quite the learner; veRL's and
TRL's default."""

_CANARY = "def f(numbers, word):\n    return sorted(numbers), word[::-1]\n\n"
_CANARY_TOKENS = 160


@dataclass(frozen=True)
class RolloutSettings:
    """What samples; plain data, because it travels to other processes."""

    name: str = "torch"
    rows: int = torch_rollout.ROWS
    tokens: int = torch_rollout.TOKENS
    """Of the torch rollout: most rows in a batch, most tokens in its KV cache."""
    vllm: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of `vllm.LLM` as the user gave them."""


def resolve(name: str, device: str) -> str:
    """`auto` is vLLM on a GPU where it is installed, and torch otherwise."""
    if name != "auto":
        return name
    return "vllm" if device == "cuda" and versions.is_installed() else "torch"


def check_engine(name: str, workers: int) -> None:
    """Refuses processes that nothing can start, with a `UserError`."""
    missing = [needed for needed in ("ray", "verl") if not installed(needed)]
    if name == "ray" and missing:
        raise UserError(
            f"engine=ray needs {' and '.join(missing)}; install azr_population[verl], or use "
            "engine=torch"
        )
    if name != "ray" and workers > 1:
        raise UserError(f"engine.workers={workers} needs engine=ray; or leave engine.workers out")


def check_rollout(name: str, rank: int) -> None:
    """Refuses what is known to fail before anything is loaded, with a `UserError`."""
    if name == "vllm":
        versions.version()
        versions.lora_rank(rank)


def check_served(base: str, dtype: str, device: str, settings: RolloutSettings) -> None:
    """Refuses a base that what samples does not know, before its weights are read.

    Raises:
        UserError: vLLM's reason.
    """
    if settings.name == "vllm":
        versions.check_base(base, dtype, device == "cuda", settings.vllm)


def importance_cap(wanted: float | None, rollout: str, dtype: str = "float32") -> float:
    """The cap of the importance weights; empty is 2 where the sampler's log-probabilities are not
    the learner's: vLLM, or a base of another `dtype` than the members' float32. Otherwise 0: off.

    `dtype` is for hosts that learn from the sampler's log-probabilities; AZR's computes them anew.
    """
    if wanted is not None:
        return wanted
    return IMPORTANCE_CAP if rollout == "vllm" or dtype != "float32" else 0.0


def join(
    learner: TorchLearner,
    tokenizer: Any,
    base: str,
    dtype: str,
    names: Sequence[str],
    settings: RolloutSettings,
) -> LocalEngine:
    """The learner with the rollout of `settings`; `base` is its folder, `names` are the members'.

    Raises:
        UserError: vLLM cannot serve this base, or does not serve it as the learner holds it.
    """
    stops = stop_ids(learner.model, tokenizer)
    if settings.name == "torch":
        return LocalEngine(
            TorchRollout(learner.model, learner.bank, stops, settings.rows, settings.tokens),
            learner,
        )
    # Imported late: vLLM is not installed everywhere, and takes many seconds.
    from azr_population.engines.vllm_rollout import VllmRollout

    rollout = VllmRollout(
        base,
        learner.bank.slots,
        learner.bank.spec.rank,
        stops,
        dtype=dtype,
        on_gpu=learner.bank.device.type == "cuda",
        options=settings.vllm,
    )
    text = tokenizer(_CANARY * 40, add_special_tokens=False)["input_ids"]
    canary = Canary(text[: min(_CANARY_TOKENS, rollout.max_model_len // 2)], names, dtype)
    canary.rehearse(rollout, learner, learner.bank.slots)
    return LocalEngine(rollout, learner, canary)
