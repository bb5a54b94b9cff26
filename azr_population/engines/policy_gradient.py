"""The clipped policy-gradient loss on completion tokens: PPO's without a critic, as in AZR.

Where the sampler is not the learner (vLLM), its log-probabilities differ a little from the
learner's own. With `cap`, each token's loss is weighted by min(learner / sampler, cap): truncated
importance sampling, as in veRL's `algorithm.rollout_correction` and TRL. The policy's own ratio is
then taken against the learner, which is exact for one update per batch.

With `kl_loss_coef` the loss also has the KL divergence from the base without adapters, by veRL's
`low_var_kl`: r - 1 - log r per token, r = base / learner (k3 of Schulman 2020,
http://joschu.net/blog/kl-approx.html).
"""

from collections.abc import Callable
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn

from azr_population.config.schema import LearnerConfig
from azr_population.engines.engine import Hyperparameters
from azr_population.engines.micro_batches import MicroBatch
from azr_population.engines.token_log_probs import token_log_probs
from azr_population.registry import Registry

_ROUNDING = 1e-4
"""Nats by which log-probabilities in float32 differ when nothing but a batch's shape does."""

PolicyLoss = Callable[[Tensor, Tensor, float], Tensor]
"""(ratio to the sampling policy, advantage, clip ratio) -> loss, one number per token."""
POLICY_LOSSES: Registry[PolicyLoss] = Registry("engine.policy_loss")


@POLICY_LOSSES.register("ppo", "Schulman et al. 2017 (arXiv 1707.06347)")
def ppo(ratio: Tensor, advantages: Tensor, clip_ratio: float) -> Tensor:
    """The clipped surrogate."""
    clipped = ratio.clamp(1 - clip_ratio, 1 + clip_ratio)
    return -torch.minimum(ratio * advantages, clipped * advantages)


def policy_loss(
    model: nn.Module,
    batch: MicroBatch,
    config: LearnerConfig,
    token_loss: PolicyLoss,
    settings: Hyperparameters,
    without_adapters: AbstractContextManager[None],
) -> tuple[Tensor, dict[str, float]]:
    """The summed loss over the batch's completion tokens, and summed metrics.

    The sum is divided by the member's token count by the caller, so that the loss is AZR's
    `token-mean` however the rows fall into micro-batches. Inside `without_adapters` the model is
    the reference policy of `kl_loss_coef`. Log-probabilities are those at the member's temperature,
    as the batch has the sampler's.
    """
    temperature, cap, reference = settings.temperature, config.importance_sampling_cap, None
    if settings.kl_loss_coef:
        with torch.no_grad(), without_adapters:
            reference, _ = token_log_probs(model, batch, temperature)
    logprobs, entropies = token_log_probs(model, batch, temperature)
    old = batch.old_logprobs
    weights, corrections = torch.ones_like(old), dict[str, float]()
    if cap:
        weights, corrections = _importance(logprobs.detach() - old, cap)
        old = logprobs.detach()
    # A difference that is rounding is no change of the policy: AdamW would make steps of it.
    old = torch.where((logprobs.detach() - old).abs() < _ROUNDING, logprobs.detach(), old)
    log_ratio = logprobs - old
    ratio = log_ratio.exp()
    loss = (weights * token_loss(ratio, batch.advantages, config.clip_ratio)).sum()
    if reference is not None:
        divergence = low_var_kl(logprobs, reference).sum()
        loss = loss + settings.kl_loss_coef * divergence
        corrections["kl_loss"] = float(divergence.detach())
    with torch.no_grad():
        outside = ((ratio - 1).abs() > config.clip_ratio).sum()
        metrics = {
            "loss": float(loss),
            "entropy": float(entropies.sum()),
            "approx_kl": float((ratio - 1 - log_ratio).sum()),
            "clip_frac": float(outside),
            **corrections,
        }
    return loss, metrics


def low_var_kl(logprobs: Tensor, reference: Tensor) -> Tensor:
    """KL(policy | reference) in nats by tokens of the policy, each at least 0; as veRL, log ratios
    are clamped to 20 and estimates to 10."""
    log_ratio = (reference - logprobs).clamp(-20, 20)
    return (log_ratio.exp() - 1 - log_ratio).clamp(max=10)


def finish_metrics(means: dict[str, float]) -> dict[str, float]:
    """Means over tokens as they are recorded: the weights' moments become `ess`, the
    effective sample size as a share of the tokens."""
    if "weight" not in means:
        return means
    recorded = {name: value for name, value in means.items() if not name.startswith("weight")}
    squares = means["weight_squared"]
    return {**recorded, "ess": means["weight"] ** 2 / squares if squares else 0.0}


def _importance(log_weights: Tensor, cap: float) -> tuple[Tensor, dict[str, float]]:
    """The capped weights of log(learner / sampler), and sums over tokens: `mismatch_kl` estimates
    KL(sampler | learner) in nats by w - 1 - log w, `is_clip_frac` counts weights above `cap`."""
    weights = log_weights.exp()
    capped = weights.clamp(max=cap)
    return capped, {
        "mismatch_kl": float((weights - 1 - log_weights).sum()),
        "is_clip_frac": float((weights > cap).sum()),
        "weight": float(capped.sum()),
        "weight_squared": float(capped.square().sum()),
    }
