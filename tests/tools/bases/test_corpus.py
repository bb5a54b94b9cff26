import ast
from random import Random

from corpus import draw_groups

from azr_population.domains.code.formats import NanoFormat
from azr_population.domains.code.generator.grammar import Grammar
from azr_population.domains.code.generator.programs import core_program, examine, run_function
from azr_population.domains.code.task_types import TaskType
from azr_population.domains.domain import is_held_out


def _examples(count, held_out=False):
    grammar = Grammar(Random(3))
    values = []
    while len(values) < count:
        written = core_program(grammar, len(values) % 4, simple=False)
        example = examine(grammar, written, held_out)
        if example is not None:
            values.append(example)
    return values


def test_examples_carry_what_the_program_returns():
    for example in _examples(40):
        arguments, values = zip(*example.pairs, strict=True)
        assert run_function(example.program, list(arguments)) == list(values)
        assert len(set(values)) >= 5
        assert not {"True", "False", "None"} & set(values)


def test_a_stable_fiftieth_of_programs_is_held_out():
    sources = [f"def f(n):\n    return n + {number}" for number in range(5000)]
    share = sum(map(is_held_out, sources)) / len(sources)
    assert 0.014 < share < 0.026
    assert [number for number in range(100) if is_held_out(sources[number])] == HELD_OUT


HELD_OUT = [3, 35, 77]


def test_groups_are_reproducible_and_free_of_held_out_programs():
    first, second, other = (draw_groups(Random(seed), 150) for seed in (5, 5, 6))
    assert first == second != other
    assert len({(phase, tasks[0].type) for phase, tasks in first}) == 6
    for _, tasks in first:
        assert len({task.program for task in tasks}) == 1
        for task in tasks:
            assert not is_held_out(task.program)
            assert run_function(task.program, list(task.inputs)) == list(task.outputs)
    assert not any(map(is_held_out, (e.program for e in _examples(5))))
    assert all(map(is_held_out, (e.program for e in _examples(3, held_out=True))))


def test_strict_proposals_parse_and_never_return_an_argument():
    format = NanoFormat()
    groups = draw_groups(Random(5), 300, strict=True)
    proposed = [task for phase, tasks in groups if phase == "propose" for task in tasks]
    assert len(proposed) > 60
    for task in proposed:
        proposal = format.parse_proposal(task.type, format.write_proposal(task))
        assert (proposal.program, proposal.inputs) == (task.program, task.inputs)
        assert all(v not in a for v, a in zip(task.outputs, task.inputs, strict=True))
        if task.type == TaskType.CODE_F:
            values = [ast.literal_eval(f"({arguments},)") for arguments in task.inputs]
            assert [values[place] for place in (0, 3, 1, 4, 2, 5)] == sorted(values)
