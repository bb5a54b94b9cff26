from collections import Counter
from random import Random

import pytest

from azr_population.bases.demonstrations import _chunk, from_grammar, from_tasks
from azr_population.bases.nano.executor import run_function
from azr_population.domains.code.formats import ShortFormat
from azr_population.domains.code.task_types import Task, TaskType
from azr_population.domains.domain import is_held_out

FORM = ShortFormat()
PROMPTS = {FORM.propose_prompt(type): type for type in TaskType}


@pytest.fixture(scope="module")
def groups():
    return _chunk(1, "short", 0)


def kind(group):
    """(phase, task type) by the texts alone."""
    first = group.demonstrations[0]
    if group.phase == "propose":
        return "propose", PROMPTS[first.prompt]
    openings = {"What is f(": TaskType.CODE_O, "Find an input": TaskType.CODE_I}
    for text, type in openings.items():
        if text in first.prompt:
            return "solve", type
    return "solve", TaskType.CODE_F


def test_a_chunk_is_the_same_for_the_same_numbers(groups):
    assert groups == _chunk(1, "short", 0)
    assert groups != _chunk(1, "short", 1) and groups != _chunk(2, "short", 0)


def test_all_kinds_come_and_most_is_code_o_and_code_i(groups):
    counts = Counter(map(kind, groups))
    assert len(counts) == 6
    assert sum(n for (_, type), n in counts.items() if type != TaskType.CODE_F) > 0.7 * 250


def test_what_is_proposed_parses_and_runs_and_is_not_of_the_eval(groups):
    seen = Counter()
    for group in groups:
        phase, type = kind(group)
        assert not any(map(is_held_out, group.programs))
        if phase != "propose":
            continue
        for demonstration, program in zip(group.demonstrations, group.programs, strict=True):
            proposal = FORM.parse_proposal(type, demonstration.completion)
            assert proposal.program == program
            assert None not in run_function(program, list(proposal.inputs))
            seen[program] += 1
    assert len(seen) > 0.97 * sum(seen.values()) > 200


def test_answers_are_right(groups):
    checked = Counter()
    for group in groups:
        phase, type = kind(group)
        if phase != "solve" or type == TaskType.CODE_F:
            continue
        (program,) = group.programs
        for demonstration in group.demonstrations:
            answer = FORM.parse_answer(type, demonstration.completion)
            if type == TaskType.CODE_O:
                arguments = demonstration.prompt.split("What is f(")[1][:-2]
                assert run_function(program, [arguments]) == [answer]
            else:
                value = demonstration.prompt.split("returns ")[1]
                assert run_function(program, [answer]) == [value]
            checked[type] += 1
    assert min(checked.values()) > 100


def test_chunks_come_in_order_from_where_one_left_off():
    chunks = from_grammar(1, "short", start=3)
    assert [number for number, _ in (next(chunks), next(chunks))] == [3, 4]
    chunks.close()


def test_tasks_are_proposed_and_solved_by_turns():
    tasks = [
        Task(TaskType.CODE_O, f"def f(n):\n    return n + {i}", ("1",), (str(1 + i),))
        for i in range(5)
    ]
    stream = from_tasks(tasks, FORM, Random(1))
    rounds = [[next(stream) for _ in tasks] for _ in range(2)]
    for groups in rounds:
        assert {group.programs[0] for group in groups} == {task.program for task in tasks}
        assert len({group.phase for group in groups}) == 2
