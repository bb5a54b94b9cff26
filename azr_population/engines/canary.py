"""The canary: checks that the sampler serves the members that the learner holds.

A sampler with separate weights (vLLM) can lose an adapter, serve an old one from its caches, swap
two, or answer as the base because the modules' names do not match. So after each push every pushed
member continues one prompt, in one mixed batch with the bare base, and the learner scores the
tokens under each of its members: the member that was asked must give them the highest likelihood.
"""

import math
import sys
from collections.abc import Sequence

import torch
from torch import Tensor

from azr_population.engines.engine import NO_ADAPTER, Ids, Rollout, Sampling
from azr_population.engines.torch_learner import TorchLearner
from azr_population.errors import UserError
from azr_population.weights.adapter import Adapter, Factors

TOLERANCES = {"float32": 0.01, "bfloat16": 0.3, "float16": 0.05}
"""Mean absolute difference of log-probabilities, in nats a token, that rounding explains; ours.
More is refused in float32 and reported in the others, where a larger base may well round more.

Measured with SmolLM2-135M under vLLM 0.8.5 on a CPU: 2e-6 in float32; in bfloat16 0.09 to 0.21, and
0.25 to 0.55 where two members that change much were swapped.
"""

BETTER = 0.75
"""Another member is served if its difference is less than this share of the asked member's, by
three standard errors over the tokens. Equal members, such as fresh ones, pass."""

_TOKENS = 48


class Canary:
    """One prompt for all members, called `names` by slot.

    `prompt` should fill a block of the sampler's prefix cache, or a stale block goes unseen: 128
    tokens or more.
    """

    def __init__(self, prompt: Ids, names: Sequence[str], dtype: str) -> None:
        self._prompt = list(prompt)
        self._names = {NO_ADAPTER: "the bare base", **dict(enumerate(names))}
        self._dtype = dtype

    def check(
        self, rollout: Rollout, learner: TorchLearner, slots: Sequence[int]
    ) -> dict[int, float]:
        """The differences by slot, the bare base's beside them. Raises UserError: the learner's
        bare base or another of these members explains what a member wrote better than that member
        does, or the difference is NaN or beyond float32's tolerance; names the member and the
        figures."""
        members = [NO_ADAPTER, *slots]
        prompts = [self._prompt] * len(members)
        written = [row for (row,) in rollout.generate(prompts, members, Sampling(_TOKENS), seed=1)]
        # Each row under each member; the learner needs the memory that the sampler has.
        with rollout.asleep():
            scores = learner.log_probs(
                prompts * len(members),
                [row.token_ids for row in written for _ in members],
                members * len(members),
            )
        differences = {}
        for row, (member, completion) in enumerate(zip(members, written, strict=True)):
            sampled, by_member = torch.tensor(completion.logprobs), scores[row * len(members) :]
            off = {m: (sampled - s).abs() for m, s in zip(members, by_member, strict=False)}
            best = min(members, key=lambda other: float(off[other].mean()))
            difference = differences[member] = float(off[member].mean())
            name, allowed, reason = self._names[member], TOLERANCES[self._dtype], ""
            # A comparison with NaN is false, so it must not read "more than".
            large = not difference <= allowed
            if is_better(off[best], off[member]):
                nearest = float(off[best].mean())
                reason = f"{self._names[best]} explains it better, to {nearest:.4f}"
            elif large and (self._dtype == "float32" or math.isnan(difference)):
                reason = f"{self._dtype} allows {allowed:g}"
            if reason:
                raise UserError(
                    f"the sampler does not serve {name} as the learner holds it: on the canary "
                    f"prompt their log-probabilities are {difference:.4f} nats a token apart, and "
                    f"{reason}; resume continues from the last checkpoint"
                )
            if large:
                print(
                    "azr-population: on the canary prompt the sampler's log-probabilities of "
                    f"{name} are {difference:.2f} nats a token from the learner's (more than "
                    f"{allowed:g} is unusual in {self._dtype}); these tokens match no "
                    "other member",
                    file=sys.stderr,
                )
        return differences

    def self_test(self, rollout: Rollout, learner: TorchLearner, slots: int) -> None:
        """`check` with adapters that change much, before a run: fresh ones change nothing, and
        nothing could be seen to be wrong with them. The learner's members stay as they are. Raises
        UserError: as `check`."""
        members = [learner.read(slot) for slot in range(slots)]
        try:
            for slot, member in enumerate(members):
                loud = random_adapter(member, slot)
                learner.write(slot, loud)
                rollout.push(slot, loud)
            self.check(rollout, learner, range(slots))
        finally:
            for slot, member in enumerate(members):
                learner.write(slot, member)
        for slot, member in enumerate(members):
            rollout.push(slot, member)


def is_better(other: Tensor, member: Tensor) -> bool:
    """Whether differences [tokens] are smaller than the member's by more than chance; of one token
    nobody knows."""
    less = member - other
    if len(less) < 2:
        return False
    by_chance = 3 * float(less.std()) / len(less) ** 0.5
    return bool(other.mean() < BETTER * member.mean()) and float(less.mean()) > by_chance


def random_adapter(member: Adapter, seed: int) -> Adapter:
    """An adapter of the same shape whose update is large enough to be distinguished from the
    base."""
    generator = torch.Generator().manual_seed(seed)
    size = 0.25 / (member.spec.scaling * member.spec.rank**0.5)
    factors = {}
    for name, pair in member.factors.items():
        A = torch.randn(pair.A.shape, generator=generator) / pair.A.shape[1] ** 0.5
        B = torch.randn(pair.B.shape, generator=generator) * size
        factors[name] = Factors(A.to(pair.A), B.to(pair.B))
    return Adapter(member.spec, factors)
