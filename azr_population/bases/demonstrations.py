"""What a warm-up learns from: prompts of a run, with completions that a run would count as right.

Tasks come from the nano base's endless grammar, or from the grammar of another domain. Those of a
group have the beginning of their prompts in common, which comes once.
"""

from random import Random
from typing import Any

from azr_population.bases.sft_trainer import Document, branched
from azr_population.domains.code.generator.corpus import F, Group, I, Mix, O, draw_groups
from azr_population.domains.domain import Domain
from azr_population.domains.format import Format
from azr_population.engines import text

CHUNK = 250
"""Groups that a child makes at a time."""
MIX: Mix = {
    ("propose", O): (54, (5, 55, 28, 12)),
    ("propose", I): (54, (5, 55, 28, 12)),
    ("propose", F): (6, (50, 40, 10, 0)),
    ("solve", O): (36, (15, 48, 26, 11)),
    ("solve", I): (16, (15, 48, 26, 11)),
    ("solve", F): (12, (50, 40, 10, 0)),
}
"""There are so few programs without any statement that proposing them would mean repeating them."""
ANSWER_WEIGHTS: dict[str, float] = {O: 3.0}
"""Of a token of an answer in the loss, by type of task, where it is not 2; 1 of a proposal's.
Answers are short."""


def encode(group: Group, format: Format, tokenizer: Any) -> Document:
    """The group as the prompts and completions of a run."""
    phase, tasks = group
    if phase == "propose":
        prompts = [format.propose_prompt(task.type) for task in tasks]
        completions, weight = [format.write_proposal(task) for task in tasks], 1.0
    else:
        prompts = [format.solve_prompt(task) for task in tasks]
        completions = [format.write_answer(task) for task in tasks]
        weight = ANSWER_WEIGHTS.get(tasks[0].type, 2.0)
    ids = tokenizer(completions, add_special_tokens=False)["input_ids"]
    answers = [[*answer, tokenizer.eos_token_id] for answer in ids]
    asked = text.encode(tokenizer, prompts, format.chat)
    return branched(zip(asked, answers, strict=True), weight)


def draw_documents(
    tokenizer: Any, domain: Domain, format: Format, seed: int, chunk: int
) -> list[Document]:
    """A chunk of a warm-up's documents; the same for the same numbers."""
    rng = Random(f"demonstrations {seed} {chunk}")
    groups = draw_groups(rng, CHUNK, MIX, strict=True)
    rng.shuffle(groups)
    return [encode(group, format, tokenizer) for group in groups]
