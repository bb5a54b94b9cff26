"""Demonstrations to token rows: what several prompts have in common is read once.

A group becomes one document of `azr_population.bases.nano.packing`: the common beginning, then each
demonstration's rest in a branch that reads the beginning and itself.
"""

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import numpy as np

from azr_population.bases.demonstrations import DemonstrationSet
from azr_population.bases.nano.packing import Document

SOLVE_WEIGHT = 2.0
"""Of a token of an answer in the loss; 1 of a proposal's. Answers are short."""


def encode_group(group: DemonstrationSet, tokenizer: Any) -> Document:
    """Ids, positions, branches and weights; only tokens of completions have a weight."""
    turns = [
        [{"role": "user", "content": demonstration.prompt}]
        for demonstration in group.demonstrations
    ]
    prompts = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
    prompt_ids = tokenizer(prompts, add_special_tokens=False)["input_ids"]
    completions = [demonstration.completion for demonstration in group.demonstrations]
    completion_ids = tokenizer(completions, add_special_tokens=False)["input_ids"]
    weight = SOLVE_WEIGHT if group.phase == "solve" else 1.0
    return _document(prompt_ids, [[*ids, tokenizer.eos_token_id] for ids in completion_ids], weight)


def _document(
    prompts: Sequence[list[int]], completions: Sequence[list[int]], weight: float
) -> Document:
    shared = _common(prompts)
    ids = list(prompts[0][:shared])
    positions, branches, weights = list(range(shared)), [0] * shared, [0.0] * shared
    for branch, (prompt, completion) in enumerate(zip(prompts, completions, strict=True), 1):
        branch_tokens = [*prompt[shared:], *completion]
        ids += branch_tokens
        positions += range(shared, shared + len(branch_tokens))
        branches += [branch] * len(branch_tokens)
        weights += [0.0] * (len(prompt) - shared) + [weight] * len(completion)
    return Document(
        np.asarray(ids, dtype=np.int64),
        np.asarray(positions, dtype=np.int64),
        np.asarray(branches, dtype=np.int64),
        np.asarray(weights, dtype=np.float32),
    )


def _common(prompts: Sequence[list[int]]) -> int:
    """Tokens that all prompts begin with. The last one of a prompt stays with its branch: a token
    is predicted from the one before it in the row."""
    columns = zip(*prompts, strict=False)  # as many as the shortest prompt has tokens
    alike = sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, columns))
    return min(alike, min(map(len, prompts)) - 1)
