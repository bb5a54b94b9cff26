"""AZR on random weights, timed: population.worker=timed_worker.TimedWorker

Members sample as in any run, each row for a number of tokens drawn from a log-normal distribution
(`TIMED_MEAN` tokens, `TIMED_SIGMA`). Its text is then replaced by the script of `ScriptedWorker`
(tests/hosts/azr), because random weights never write a program. Calls, rows, tokens, pushes, the
referee and AZR's loop are those of a run; how many tasks are valid, and what is learned, is not.
"""

from __future__ import annotations

import math
import os
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from scripted_worker import ScriptedWorker

MEAN = float(os.environ.get("TIMED_MEAN", 600))
SIGMA = float(os.environ.get("TIMED_SIGMA", 0.6))
VALID = 0.6
"""The chance of a valid proposal and of a right answer: rewards must differ, or no row trains."""


class TimedWorker(ScriptedWorker):
    """Samples for as long as a row's length says, and answers by the script."""

    def stream(self, batch: Any, sampling: Any, seed: int) -> Iterator[Any]:
        """See `PopulationWorker.stream`; prints rows, tokens and seconds of each call."""
        most = sampling.limits(len(batch.prompts))
        scripts = [self._script(batch, row, seed, limit) for row, limit in enumerate(most)]
        lengths = tuple(
            min(limit, max(len(script), _length(f"{seed} {number} tokens")))
            for limit, script, number in zip(most, scripts, batch.numbers, strict=True)
        )
        start, tokens = time.monotonic(), 0
        for group in self.engine.stream(batch, replace(sampling, max_new_tokens=lengths), seed):
            tokens += sum(len(done.token_ids) for _, rows in group for done in rows)
            yield [
                (row, [self._scripted(done, scripts[row]) for done in rows]) for row, rows in group
            ]
        seconds = time.monotonic() - start
        print(
            f"timed: {len(lengths)} prompts x {sampling.n}, {tokens} tokens in {seconds:.2f} s, "
            f"{tokens / seconds:.0f} a second",
            flush=True,
        )

    def _script(self, batch: Any, row: int, seed: int, limit: int) -> list[int]:
        luck = random.Random(f"{seed} {batch.numbers[row]}")
        prompt, answer = self.tokenizer.decode(batch.prompts[row]), "```python\nno\n```"
        if luck.random() < VALID:
            answer = self.answer(prompt, luck)
        text = f" </think> <answer>{answer}</answer>"
        ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return [*ids, self.tokenizer.eos_token_id][:limit]

    def _scripted(self, done: Any, script: list[int]) -> Any:
        """The completion with the script as its last tokens; a member may have ended earlier."""
        length = len(done.token_ids)
        (filler, *_) = self.tokenizer(" so", add_special_tokens=False)["input_ids"]
        ids = [filler] * max(0, length - len(script)) + script[:length]
        return replace(done, token_ids=tuple(ids), finished=ids[-1] == script[-1])


def _length(seed: str) -> int:
    """A number of tokens with a mean of `MEAN`."""
    return int(random.Random(seed).lognormvariate(math.log(MEAN) - SIGMA**2 / 2, SIGMA))
