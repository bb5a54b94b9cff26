"""What a warm-up learns from: prompts of a run, with completions that a run would count as right.

Tasks come from the nano base's endless grammar, from the grammar of another domain, and from seed
files. Those of a group have the beginning of their prompts in common, which comes once.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from azr_population.bases.nano.corpus import F, Group, I, Mix, O, draw_groups
from azr_population.bases.sft_trainer import Document, branched
from azr_population.config.schema import TaskConfig
from azr_population.domains.code.domain import Code
from azr_population.domains.code.formats import CODE_F_INPUTS
from azr_population.domains.code.seed_file import read_seed_file
from azr_population.domains.code.source import laid_out
from azr_population.domains.domain import Domain
from azr_population.domains.format import Format
from azr_population.domains.task import ParsedProposal, Task
from azr_population.method.phases import seed_tasks
from azr_population.referee import Referee

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
_PROPOSING = 0.25
"""Share of the groups of another domain that propose; each proposes three tasks."""
_FROM_SEED_FILES = 0.15
"""Share of the groups, where there are seed files."""
ANSWER_WEIGHTS: dict[str, float] = {O: 3.0}
"""Of a token of an answer in the loss, by type of task, where it is not 2; 1 of a proposal's.
Answers are short."""
_SEED_RULES = TaskConfig(max_program_chars=400, max_output_chars=60)

PROGRAMS_FILE = "warmup_programs.txt"
"""In the base's folder: the digests of the warm-up's programs, one a line."""


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
    if format.chat:
        turns = [[{"role": "user", "content": prompt}] for prompt in prompts]
        prompts = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
    ids = tokenizer([*prompts, *completions], add_special_tokens=False)["input_ids"]
    answers = [[*answer, tokenizer.eos_token_id] for answer in ids[len(prompts) :]]
    document = branched(zip(ids[: len(prompts)], answers, strict=True), weight)
    return document._replace(programs=tuple({task.program: None for task in tasks}))


def draw_documents(
    tokenizer: Any, domain: Domain, format: Format, seed: int, seeds: Sequence[Task], chunk: int
) -> list[Document]:
    """A chunk of a warm-up's documents; the same for the same numbers. `seeds` are executed tasks
    of seed files, which are added."""
    rng = Random(f"demonstrations {seed} {chunk}")
    added_types = [type for type in domain.types if type not in Code.types]
    if added_types:
        groups: list[Group] = []
        for _ in range(CHUNK):
            proposing, type = rng.random() < _PROPOSING, rng.choice(added_types)
            tasks = [domain.draw(type, rng) for _ in range(3 if proposing else 1)]
            groups.append(("propose" if proposing else "solve", tasks))
    else:
        groups = draw_groups(rng, CHUNK, MIX, strict=True)
    for _ in range(round(CHUNK * _FROM_SEED_FILES / (1 - _FROM_SEED_FILES)) if seeds else 0):
        groups.append((rng.choice(("propose", "solve")), [rng.choice(seeds)]))
    rng.shuffle(groups)
    return [encode(group, format, tokenizer) for group in groups]


def read_seed_tasks(paths: Iterable[str | Path]) -> list[Task]:
    """The valid, short tasks of seed files, each program once for each type. Raises UserError."""
    seeds: dict[tuple[str, str], ParsedProposal] = {}
    for path in paths:
        for seed in read_seed_file(path):
            inputs = tuple(dict.fromkeys(seed.inputs))[: CODE_F_INPUTS if seed.type == F else 1]
            if all(len(text) <= _SEED_RULES.max_output_chars for text in inputs):
                short = replace(seed, inputs=inputs, message="")
                seeds.setdefault((seed.type, seed.program), short)
    if not seeds:
        return []
    with Referee() as referee:
        return seed_tasks(list(seeds.values()), Code(), referee, _SEED_RULES)


def digest(program: str) -> str:
    """Twelve hex digits, the same however the program is laid out or commented."""
    text = laid_out(program) or program.strip()
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:12]


def read_digests(folder: Path) -> set[str]:
    """The digests of the programs of a base's warm-up; empty where it had none."""
    path = folder / PROGRAMS_FILE
    return set(path.read_text(encoding="ascii").split()) if path.is_file() else set()
