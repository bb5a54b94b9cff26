"""The policy-gradient loss on completion tokens: REINFORCE with one update per batch.

With one update on rows just sampled, PPO's ratio to the sampling policy is 1 and its clipping never
acts; so there is none, unlike in AZR.

Where the sampler is not the learner (vLLM), its log-probabilities differ a little from the
learner's own. With a cap, each token's loss is weighted by min(learner / sampler, cap): truncated
importance sampling, as in veRL's `algorithm.rollout_correction` and TRL.

With `kl_loss_coef` the loss also has the KL divergence from the base without adapters, by veRL's
`low_var_kl`: r - 1 - log r per token, r = base / learner (k3 of Schulman 2020,
http://joschu.net/blog/kl-approx.html).
"""

from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn

from azr_population.engines.micro_batches import MicroBatch
from azr_population.engines.token_log_probs import token_log_probs


def policy_loss(
    model: nn.Module,
    batch: MicroBatch,
    cap: float | None,
    kl_loss_coef: float,
    without_adapters: AbstractContextManager[None],
) -> tuple[Tensor, dict[str, float]]:
    """The summed loss over the batch's completion tokens, and summed metrics.

    The sum is divided by the member's token count by the caller, so that the loss is AZR's
    `token-mean` however the rows fall into micro-batches. `cap` is that of the importance weights;
    without one, all weights are 1. Inside `without_adapters` the model is the reference policy of
    `kl_loss_coef`.
    """
    reference = None
    if kl_loss_coef:
        with torch.no_grad(), without_adapters:
            reference, _ = token_log_probs(model, batch)
    logprobs, entropies = token_log_probs(model, batch)
    weights, corrections = torch.ones_like(logprobs), dict[str, float]()
    if cap:
        weights, corrections = _importance(logprobs.detach() - batch.old_logprobs, cap)
    # The ratio is 1 and carries the gradient.
    ratio = (logprobs - logprobs.detach()).exp()
    loss = -(weights * batch.advantages * ratio).sum()
    if reference is not None:
        divergence = low_var_kl(logprobs, reference).sum()
        loss = loss + kl_loss_coef * divergence
        corrections["kl_loss"] = float(divergence.detach())
    return loss, {
        "loss": float(loss.detach()),
        "entropy": float(entropies.detach().sum()),
        **corrections,
    }


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
    KL(sampler | learner) in nats by w - 1 - log w, `is_clip_frac` counts weights above `cap`. Log
    weights are clamped to 20 as in `low_var_kl`; NaN, which a broken learner gives, to -20."""
    log_weights = log_weights.nan_to_num(-20.0).clamp(-20.0, 20.0)
    weights = log_weights.exp()
    capped = weights.clamp(max=cap)
    return capped, {
        "mismatch_kl": float((weights - 1 - log_weights).sum()),
        "is_clip_frac": float((weights > cap).sum()),
        "weight": float(capped.sum()),
        "weight_squared": float(capped.square().sum()),
    }
