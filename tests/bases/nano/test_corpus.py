import ast
from random import Random

from azr_population.bases.nano import corpus
from azr_population.bases.nano.executor import run_function
from azr_population.bases.nano.grammar import Grammar
from azr_population.domains.code.formats import NanoFormat
from azr_population.domains.code.task_types import TaskType
from azr_population.domains.domain import is_held_out


def _examples(count, **choices):
    grammar = Grammar(Random(3))
    values = []
    while len(values) < count:
        example = corpus.draw_example(grammar, len(values) % 4, simple=False, **choices)
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


def test_documents_are_reproducible_and_free_of_held_out_programs():
    first, second = (corpus.documents(5, 2, size=150) for _ in range(2))
    assert first == second != corpus.documents(6, 2, size=150)
    marks = {text[:4] for text in first}
    assert marks == {"<PO>", "<PI>", "<PF>", "<SO>", "<SI>", "<SF>"}
    for text in first:
        start = text.index("def f(")
        end = min(text.find(mark, start) % 10**6 for mark in ("<in>", "<out>", "<eos>"))
        assert not is_held_out(text[start:end])
    assert not any(map(is_held_out, (e.program for e in _examples(5))))
    assert all(map(is_held_out, (e.program for e in _examples(3, held_out=True))))


def test_strict_proposals_never_fail_and_never_return_an_argument():
    format = NanoFormat()
    kinds = {format.propose_prompt(type): type for type in TaskType}
    texts = [text for text in corpus.documents(5, 3, size=300, strict=True) if text[:4] in kinds]
    assert len(texts) > 60
    for text in texts:
        type = kinds[text[:4]]
        proposal = format.parse_proposal(type, text[4:].split("<eos>")[0])
        values = run_function(proposal.program, list(proposal.inputs))
        assert None not in values
        assert all(v not in a for v, a in zip(values, proposal.inputs, strict=True))
        if type == TaskType.CODE_F:
            values = [ast.literal_eval(f"({arguments},)") for arguments in proposal.inputs]
            assert [values[place] for place in (0, 3, 1, 4, 2, 5)] == sorted(values)
