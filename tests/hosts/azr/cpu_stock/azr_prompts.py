r"""Warms a base up on AZR's own prompts, so that stock AZR gets valid proposals from it.

    AZR_HOME=... PYTHONPATH=$AZR_HOME \
        python tests/hosts/azr/cpu_stock/azr_prompts.py BASE OUT STEPS

AZR's prompts are read from its checkout. They are answered as AZR's `answer_conditional` wants it:
a thought (here a fixed one), then the answer between tags.
"""

import ast
import json
import os
import sys
from functools import cache
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[4] / "tools" / "bases"))
from absolute_zero_reasoner.data_construction.prompts import (
    get_code_problem_generator_prompt,
    get_code_problem_predictor_prompt,
)
from warm_up import MIX, warm_up

from azr_population.domains.code.formats import FORMATS, ChatFormat
from azr_population.domains.code.task_types import TaskType

HOME = Path(os.environ["AZR_HOME"])
TEMPLATE = "{{ messages[0]['content'] }}"
"""A prompt as it is, like AZR's `pretrained_tokenizer`."""


@cache
def references():
    """AZR's short seed tasks: a prompt for a proposal shows one of them."""
    lines = (HOME / "data" / "7b_coder_seed_io.jsonl").read_text().splitlines()
    seeds = [json.loads(line) for line in lines]
    return [seed for seed in seeds if len(seed["snippet"]) < 250]


@cache
def wrapper():
    """What AZR puts around a prompt; read and not imported, because its module imports veRL."""
    path = HOME / "absolute_zero_reasoner" / "data_construction" / "process_data.py"
    for statement in ast.parse(path.read_text()).body:
        if isinstance(statement, ast.Assign) and statement.targets[0].id == "instruction_following":
            return ast.literal_eval(statement.value)
    raise SystemExit(f"{path} has no instruction_following: another AZR?")


@cache
def banned():
    import yaml

    config = HOME / "absolute_zero_reasoner" / "configs" / "azr_ppo_trainer.yaml"
    return yaml.safe_load(config.read_text())["azr"]["data_selection_strategy"]["banned_words"]


class AzrFormat(ChatFormat):
    """AZR's prompts, and answers in the form that they ask for."""

    def __init__(self):
        self.rng = Random(1)
        self.asked = 0

    def propose_prompt(self, type, shown=()):
        """With one reference, the same for the two proposals of a group, which share its tokens."""
        if self.asked % 2 == 0:
            self.reference = self.rng.choice(references())
        self.asked += 1
        prompt = get_code_problem_generator_prompt(str(type), [self.reference], banned(), [], [])
        return wrapper().format(prompt)

    def solve_prompt(self, task):
        prompt = get_code_problem_predictor_prompt(
            str(task.type), task.program, task.inputs[0], task.outputs[0]
        )
        return wrapper().format(prompt)

    def write_proposal(self, task):
        return f" Something new. </think>\n<answer>\n{super().write_proposal(task)}\n</answer>"

    def write_answer(self, task):
        return f" Step by step. </think>\n<answer>\n{super().write_answer(task)}\n</answer>"


def main(base, out, steps):
    """Warms `base` up into the folder `out`."""
    from azr_population.engines.base_model import load_base

    FORMATS.register("azr", "AZR's own prompts")(AzrFormat)
    mix = [kind for kind in MIX if kind.type != TaskType.CODE_F]
    model, tokenizer = load_base(base, "float32", "cpu")
    tokenizer.chat_template = TEMPLATE
    Path(out).mkdir(parents=True, exist_ok=True)
    warm_up(model, tokenizer, Path(out), "azr", int(steps), rows=1, longest=1100, mix=mix)


if __name__ == "__main__":
    main(*sys.argv[1:])
