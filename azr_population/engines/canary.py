"""The check that the sampler serves what the learner holds: nothing may go wrong in silence.

A sampler with weights of its own (vLLM) can lose an adapter, serve an old one from its caches, mix
two up, or answer as the base because the modules' names do not match. So after each push every
pushed member continues one prompt, in one mixed batch with the bare base, and the learner must give
the same tokens the same log-probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from azr_population.engines.engine import BASE, Ids, Learner, Rollout, Sampling
from azr_population.errors import UserError
from azr_population.weights.adapter import Adapter, Factors

TOLERANCES = {"float32": 0.01, "bfloat16": 0.3, "float16": 0.05}
"""Mean absolute difference of log-probabilities, in nats a token, that rounding explains; ours.

Measured with SmolLM2-135M under vLLM 0.8.5 on a CPU: 2e-6 in float32; in bfloat16 0.09 to 0.21, and
0.25 to 0.55 where two members that change much were swapped.
"""

_TOKENS = 48


class Canary:
    """One prompt for all members, called `names` by slot.

    `prompt` should fill a block of the sampler's prefix cache, or a stale block goes unseen: 128
    tokens or more.
    """

    def __init__(self, prompt: Ids, names: Sequence[str], dtype: str) -> None:
        self._prompt = list(prompt)
        self._names = {BASE: "the bare base", **dict(enumerate(names))}
        self._dtype = dtype

    def check(self, rollout: Rollout, learner: Learner, slots: Sequence[int]) -> dict[int, float]:
        """The differences by slot, the bare base's beside them.

        Raises:
            UserError: one is larger than the tolerance; names the member and both figures.
        """
        asked = [BASE, *slots]
        prompts = [self._prompt] * len(asked)
        groups = rollout.generate(prompts, asked, Sampling(_TOKENS), seed=1)
        written = [one for (one,) in groups]
        ours, _ = learner.log_probs(prompts, [one.token_ids for one in written], asked)
        differences = {}
        for slot, one, expected in zip(asked, written, ours, strict=True):
            told = torch.tensor(one.logprobs)
            differences[slot] = float((told - expected).abs().mean())
            # A comparison with NaN is false, so it must not read "more than".
            if not differences[slot] <= TOLERANCES[self._dtype]:
                raise UserError(
                    f"the sampler does not serve {self._names[slot]} as the learner holds it: on "
                    f"the canary prompt its log-probabilities are {float(told.mean()):.4f} a token "
                    f"and the learner's {float(expected.mean()):.4f}, apart by "
                    f"{differences[slot]:.4f} where {self._dtype} allows "
                    f"{TOLERANCES[self._dtype]:g}; resume goes on from the last checkpoint"
                )
        return differences

    def rehearse(self, rollout: Rollout, learner: Learner, slots: int) -> None:
        """The same with adapters that change much, before a run: fresh ones change nothing, and
        nothing could be seen to be wrong with them. The learner's members stay as they are.

        Raises:
            UserError: as `check`.
        """
        members = [learner.read(slot) for slot in range(slots)]
        try:
            for slot, member in enumerate(members):
                loud = _loud(member, slot)
                learner.write(slot, loud)
                rollout.push(slot, loud)
            self.check(rollout, learner, range(slots))
        finally:
            for slot, member in enumerate(members):
                learner.write(slot, member)
        for slot, member in enumerate(members):
            rollout.push(slot, member)


def _loud(member: Adapter, seed: int) -> Adapter:
    """An adapter of the same shape whose update is large enough to be told from the base's."""
    generator = torch.Generator().manual_seed(seed)
    size = 0.25 / (member.spec.scaling * member.spec.rank**0.5)
    factors = {}
    for name, pair in member.factors.items():
        A = torch.randn(pair.A.shape, generator=generator) / pair.A.shape[1] ** 0.5
        B = torch.randn(pair.B.shape, generator=generator) * size
        factors[name] = Factors(A.to(pair.A), B.to(pair.B))
    return Adapter(member.spec, factors)
