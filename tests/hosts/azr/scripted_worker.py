"""A worker whose members write AZR's formats by a script: random weights never write a program.

Everything but the choice of tokens is the real worker: log-probabilities, updates, checkpoints.
"""

import json
import os
import random
import re
from functools import cached_property
from pathlib import Path

from azr_population.engines.engine import Completion
from azr_population.hosts.azr.azr_worker import PopulationWorker

SKILL = (0.9, 0.8, 0.7, 0.6, 0.95, 0.7, 0.4, 0.2)
"""Chance that the member in a slot writes something valid, or right."""


class ScriptedWorker(PopulationWorker):
    """Proposes linear functions (for code_f inputs that are known to work) and answers by rote."""

    def stream(self, batch, sampling, seed):
        """See `PopulationWorker.stream`."""
        prompts, slots = batch.prompts, batch.slots
        print(f"one call for {len(prompts)} rows", flush=True)
        tokenizer = self.tokenizer
        limits = sampling.limits(len(prompts))
        written = []
        for row, prompt, slot, limit in zip(batch.numbers, prompts, slots, limits, strict=True):
            luck = random.Random(f"{seed} {row}")
            right = luck.random() < SKILL[slot % len(SKILL)]
            text = tokenizer.decode(prompt)
            answer = self.answer(text, luck) if right else "```python\nno\n```"
            ids = tokenizer(f"so </think> <answer>{answer}</answer>")["input_ids"]
            written.append([*ids, tokenizer.eos_token_id][:limit])
        for index, (prompt, ids, slot) in enumerate(zip(prompts, written, slots, strict=True)):
            # Each row alone: its last digits must not depend on the rows of the call.
            (scores,) = self.engine.log_probs([prompt], [ids], [slot])
            finished = Completion(slot, tuple(prompt), tuple(ids), tuple(scores.tolist()), True)
            yield [(index, [finished])]

    def answer(self, prompt, luck):
        """What a good member writes."""
        if "with one Matching In" in prompt:
            program = f"def f(a):\n    return a * {luck.randint(2, 99)} + {luck.randint(1, 99)}"
            return f"```python\n{program}\n```\n```input\n{luck.randint(0, 99)}\n```"
        if "Inputs that can be plugged" in prompt:
            program = _fenced(prompt, "python", -1).rpartition("\nf(")[0]
            given = self.outputs.get(program.strip(), ("1", ""))[0]
            inputs = "\n".join(f"```input\n{given}\n```" for _ in range(4))
            return f"{inputs}\n```message\n{program.strip()}\n```"
        if "```message" in prompt:
            return f"```python\n{_fenced(prompt, 'message', 0)}\n```"
        program = _fenced(prompt, "python", 0).strip()
        linear = re.fullmatch(r"def f\(a\):\n    return a \* (\d+) \+ (\d+)", program)
        known = self.outputs.get(program, ("0", "0"))
        if "Deduce the Output" in prompt:
            given = _fenced(prompt, "input", 0)
            output = int(given) * int(linear[1]) + int(linear[2]) if linear else known[1]
            return f"```output\n{output}\n```"
        wanted = _fenced(prompt, "output", 0)
        found = (int(wanted) - int(linear[2])) // int(linear[1]) if linear else known[0]
        return f"```input\n{found}\n```"

    @cached_property
    def outputs(self):
        """(input, output) of AZR's seed programs."""
        path = Path(os.environ["AZR_HOME"]) / "data/7b_coder_seed_io.jsonl"
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        return {row["snippet"].strip(): (row["input"], row["output"]) for row in rows}


class BrokenWorker(ScriptedWorker):
    """Has a defect."""

    def answer(self, prompt, luck):
        """Fails."""
        raise ZeroDivisionError("broken")


def _fenced(text, language, which):
    return re.findall(rf"```{language}\n(.*?)\n?```", text, re.DOTALL)[which]
