from collections import Counter
from random import Random

import pytest
import torch
from tiny_chat_base import make_model

from azr_population.bases import demonstrations
from azr_population.bases.demonstrations import (
    ANSWER_WEIGHTS,
    MIX,
    draw_documents,
    encode,
)
from azr_population.bases.sft_trainer import branched, pack
from azr_population.domains.code.domain import Code
from azr_population.domains.code.formats import ShortFormat
from azr_population.domains.code.generator.corpus import draw_groups, run_function
from azr_population.domains.code.task_types import Task, TaskType
from azr_population.domains.domain import is_held_out

FORM = ShortFormat()
PROGRAM = "def f(n):\n    return n + 1"


def question(number, type=TaskType.CODE_O):
    return Task(type, PROGRAM, (str(number),), (str(number + 1),))


def words(document, tokenizer, weighed=False):
    return tokenizer.decode(
        [i for i, w in zip(document.ids, document.weights, strict=True) if w or not weighed]
    )


def test_what_prompts_share_comes_once_and_completions_alone_are_learned(tokenizer):
    document = encode(("solve", [question(12), question(305)]), FORM, tokenizer)
    first, second = ([w for w, b in zip(document.ids, document.branches, strict=True) if b == k]
                     for k in (1, 2))  # fmt: skip
    end = "<|im_end|><|im_start|>```output\n{}\n```<|im_end|>"
    # The last common token is in both branches.
    assert tokenizer.decode(first) == "(12)?" + end.format(13)
    assert tokenizer.decode(second) == "(305)?" + end.format(306)
    assert words(document, tokenizer).count(PROGRAM) == 1
    answers = "```output\n13\n```<|im_end|>```output\n306\n```<|im_end|>"
    assert words(document, tokenizer, weighed=True) == answers
    assert set(document.weights) == {0.0, ANSWER_WEIGHTS["code_o"]}
    shared = document.branches.count(0)
    assert document.positions[shared : shared + len(first)] == [*range(shared, shared + len(first))]
    assert document.positions[-len(second) :] == [*range(shared, shared + len(second))]


def test_completions_that_begin_alike_are_learned_once():
    document = branched([([5, 6], [7, 8, 1]), ([5, 6], [7, 9, 1])], 1.0)
    assert document[:4] == (
        [5, 6, 7, 8, 1, 7, 9, 1],
        [0, 1, 2, 3, 4, 2, 3, 4],
        [0, 0, 1, 1, 1, 2, 2, 2],
        [0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0],
    )
    alone = branched([([5, 6], [7, 1])], 2.0)
    assert (alone.ids, alone.weights) == ([5, 6, 7, 1], [0.0, 0.0, 2.0, 2.0])


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_a_branch_in_a_row_reads_what_it_would_read_alone(tokenizer, attention):
    model = make_model(attn_implementation=attention)
    documents = draw_documents(tokenizer, Code(), FORM, 1, 0)[:30]
    batch = next(pack(documents, rows=2, length=1024))
    allowed = batch.may_attend
    bias = torch.zeros(allowed.shape).masked_fill(~allowed, torch.finfo(torch.float32).min)
    with torch.no_grad():
        packed = model(
            input_ids=batch.ids,
            position_ids=batch.positions,
            attention_mask=bias[:, None],
            use_cache=False,
        ).logits
        compared = 0
        for row in range(2):
            for number in range(int(batch.documents[row].max()) + 1):
                inside = batch.documents[row] == number
                last = batch.branches[row][inside].max()
                visible = inside & torch.isin(batch.branches[row], torch.tensor([0, last]))
                alone = model(batch.ids[row][visible][None]).logits[0]
                assert (alone - packed[row][visible]).abs().max() < 1e-4
                compared += 1
    assert compared >= 3


def test_the_mix_of_a_warm_up_proposes_new_programs_and_asks_for_right_answers():
    groups = draw_groups(Random(1), 250, MIX, strict=True)
    assert len({(phase, tasks[0].type) for phase, tasks in groups}) == 6
    proposed = Counter(tasks[0].program for phase, tasks in groups if phase == "propose")
    assert len(proposed) > 0.9 * sum(proposed.values()) > 100
    for phase, tasks in groups:
        for task in tasks:
            assert not is_held_out(task.program)
            assert run_function(task.program, list(task.inputs)) == list(task.outputs)
            if phase == "propose":
                proposal = FORM.parse_proposal(task.type, FORM.write_proposal(task))
                assert (proposal.program, proposal.inputs) == (task.program, task.inputs)


def test_a_chunk_is_the_same_for_the_same_numbers(tokenizer, monkeypatch):
    monkeypatch.setattr(demonstrations, "CHUNK", 40)
    first, again, other = (draw_documents(tokenizer, Code(), FORM, 1, n) for n in (0, 0, 1))
    assert first == again != other and len(first) == 40
