"""A worker whose members write odd programs, inputs and answers in AZR's formats."""

import re

from odd_programs import VALUES, WORDS, mutated, seeds
from scripted_worker import ScriptedWorker

HEAVY = re.compile(r"10 \*\* (5000|6|9)|while True")
"""What AZR's own executor is spared, which has no limit on memory; our referee gets it too."""


class OddWorker(ScriptedWorker):
    """Writes odd programs, inputs and answers, and now and then a plain task."""

    def answer(self, prompt, luck):
        """A proposal or an answer."""
        if luck.random() < 0.2:
            return super().answer(prompt, luck)
        program, inputs_given = luck.choice(seeds())
        program, value = mutated(program, luck), luck.choice([*VALUES, *WORDS, "1", "[1, 2]"])
        if "with one Matching In" in prompt:
            inputs_given = inputs_given if luck.random() < 0.7 else value
            text = f"```python\n{program}\n```\n```input\n{inputs_given}\n```"
        elif "Inputs that can be plugged" in prompt:
            inputs = [luck.choice(["1", "'a', 2", inputs_given, value]) for _ in range(4)]
            blocks = "".join(f"```input\n{input}\n```\n" for input in inputs)
            text = f"{blocks}```message\n{value}\n```"
        elif "```message" in prompt:
            text = f"```python\n{program}\n```"
        else:
            text = f"```{'output' if 'Deduce the Output' in prompt else 'input'}\n{value}\n```"
        text = text.encode(errors="replace").decode()  # a tokenizer writes no half of a pair
        return "no" if not self.confined and HEAVY.search(text) else text

    confined = True


class UnconfinedOddWorker(OddWorker):
    """For AZR's own executor."""

    confined = False
