"""AZR's fourth type: what our domain says against what AZR's own code says."""

import os
from pathlib import Path
from random import Random

import needs
import pytest
from fake_group import FakeGroup
from test_judging import SAMPLES, proposals

from azr_population.config.schema import TaskConfig
from azr_population.domains.code.domain import Code, CodeE
from azr_population.domains.known import find_domain
from azr_population.domains.task import ParsedProposal, Task
from azr_population.referee import Referee

AZR_HOME = os.environ.get("AZR_HOME", "")
pytestmark = pytest.mark.azr

RULES = TaskConfig(reject=[], max_program_chars=20_000)
GENERATED = 240


@pytest.fixture(name="executor")
def executor_fixture(monkeypatch):
    monkeypatch.syspath_prepend(AZR_HOME)
    needs.module("pebble", "AZR")
    from absolute_zero_reasoner.utils.code_utils.python_executor import PythonExecutor

    executor = PythonExecutor(timeout_length=2, ast_check=True)
    yield executor
    executor.cleanup()


def ours(asked):
    """The names, or in brackets why it is no task."""
    with Referee() as referee:
        verdicts = CodeE().judge(asked, referee, RULES)
    return [one.outputs[0] if isinstance(one, Task) else f"({one})" for one in verdicts]


def theirs(executor, asked):
    told = []
    for one in asked:
        valid, output = executor.check_all(
            code=one.program,
            inputs=one.inputs[0],
            imports=list(one.imports),
            check_error=True,
            banned_keywords=["random", "time"],
        )
        told.append(output if valid else "(invalid)")
    return told


def test_generated_programs_raise_what_azr_says(executor):
    domain, rng = find_domain("code_e"), Random(11)
    tasks = [domain.draw("code_e", rng) for _ in range(GENERATED)]
    asked = [ParsedProposal(task.type, task.program, task.inputs) for task in tasks]
    assert ours(asked) == theirs(executor, asked) == [task.outputs[0] for task in tasks]


def test_seeds_raise_what_azr_says(executor):
    """AZR has no seeds of errors: those of its other types, as they are, and given None."""
    seeds = Code().read_seeds(Path(AZR_HOME) / "data/7b_coder_seed_io.jsonl")
    asked = [
        ParsedProposal("code_e", one.program, one.inputs, imports=one.imports)
        for one in seeds
        if one.type == "code_o"
    ]
    for own, stock, one in zip(ours(asked), theirs(executor, asked), asked, strict=True):
        if "\n" in one.inputs[0]:  # AZR evaluates its last line alone
            assert (own, stock) == ("NoError", "SyntaxError")
        elif one.inputs[0].startswith("f("):  # an input that calls f meets ours
            assert own in ("TypeError", "AttributeError") and stock == "NoError"
        else:
            assert own == stock == "NoError"
    broken = [
        ParsedProposal("code_e", one.program, ("None",), imports=one.imports) for one in asked[:80]
    ]
    told = ours(broken)
    assert told == theirs(executor, broken) and len(set(told)) > 2


ALIKE = {
    "class A(Exception): pass\ndef f(n):\n    raise A('x: y')": "A",
    "class A(Exception):\n    class B(KeyError): pass\ndef f(n):\n    raise A.B(n)": "A.B",
    "import json\ndef f(n):\n    return json.loads('{')": "json.decoder.JSONDecodeError",
    "def f(n):\n    return object": "NoError",
    "def f(n):\n    return n if n > 3 else f(n + 1) + ''": "TypeError",
    "def f(n):\n    return f(n)": "RecursionError",
    "def f(n):\n    raise SystemExit(n)": "SystemExit",
    "def f(n):\n    raise KeyboardInterrupt": "KeyboardInterrupt",
    "def f(n):\n    raise StopIteration": "StopIteration", "def f(n):\n    raise n": "TypeError",
    "def f(n):\n    raise ValueError(n) from KeyError(n)": "ValueError",
    "def f(n):\n    try:\n        1 / 0\n    finally:\n        [][1]": "IndexError",
    "1 / 0\ndef f(n):\n    return n": "ZeroDivisionError", "def g(n):\n    return n": "NameError",
    "def f(n: int, m):\n    return n": "TypeError",
    "class R:\n    def __repr__(self): raise LookupError\ndef f(n):\n    return R()": "LookupError",
    "repr = lambda x: 1 / 0\ndef f(n):\n    return n": "ZeroDivisionError",
    "def f(n):\n    return n(": "(invalid)",
    "import random\ndef f(n):\n    return n // random.randrange(2)": "(invalid)",
    "def f(n):\n    return '\\ud800'.encode()": "UnicodeEncodeError",
    "def f(n):\n    assert n < 0, 'NoError'": "AssertionError",
}  # fmt: skip
"""Programs on which both agree; those in brackets are no tasks to either."""


def test_odd_programs_raise_what_azr_says(executor):
    asked = [ParsedProposal("code_e", program, ("1",)) for program in ALIKE]
    assert theirs(executor, asked) == list(ALIKE.values())
    told = ["(invalid)" if one.startswith("(") else one for one in ours(asked)]
    assert told == list(ALIKE.values())


DIFFERENT = {
    # A message of several lines: AZR reads its last line.
    "def f(n):\n    raise ValueError('a\\nKeyError: b')": ({"KeyError"}, "ValueError"),
    # Endless: AZR makes a task of its own clock, by one of two names.
    "def f(n):\n    while True: pass": (
        {"Timeout Error", "timeout_decorator.timeout_decorator.TimeoutError"},
        "(timeout)",
    ),
    # Two errors that differ: AZR compares outputs, and an error has none.
    "import secrets\ndef f(n):\n    raise [KeyError, ValueError][secrets.randbelow(2)]": (
        {"KeyError", "ValueError"},
        "(nondeterministic)",
    ),
    # What the sandbox does not import.
    "import os\ndef f(n):\n    return os.listdir('/nowhere')": ({"FileNotFoundError"}, "(banned)"),
}
"""Where AZR's answer is an accident of how it runs programs: (AZR's, ours)."""


def test_where_we_differ_on_purpose(executor):
    asked = [ParsedProposal("code_e", program, ("1",)) for program in DIFFERENT]
    assert ours(asked) == [own for _, own in DIFFERENT.values()]
    for told, (stock, _) in zip(theirs(executor, asked), DIFFERENT.values(), strict=True):
        assert told in stock


def test_proposals_inside_azr(executor, tokenizer, azr_manager):
    """AZR's manager alone fails at its first valid proposal; under the judge it pays."""
    needs.verl()
    from azr_population.config.schema import EvolutionConfig
    from azr_population.hosts.azr.azr_step import Step
    from azr_population.hosts.azr.judging import Judge
    from azr_population.hosts.azr.settings import PopulationSettings, population_of

    # The first of the samples is right, in AZR's loose spelling.
    names = ["zerodivisionerror: division by zero", "NoError"]
    answers = [f"so </think> <answer>```output\n{name}\n```</answer>" for name in names]
    students = FakeGroup(lambda prompt, sample: tokenizer(answers[sample])["input_ids"], SAMPLES)
    arguments = {
        **{"problem_type": "gen_code_e", "executor": executor, "n_samples": SAMPLES},
        **{"rollout_actor_wg": students, "banned_words": [], "error_type_counters": {}},
    }
    with pytest.raises(KeyError):
        azr_manager(tokenizer)(data=proposals(tokenizer, ["1 // a"]), **arguments)

    settings = PopulationSettings(
        teachers=2, students=2, teacher_reward="adversarial", evolution=EvolutionConfig(interval=0)
    )
    step = Step(population_of(settings, 1e-6))
    step.begin(1)
    data = proposals(tokenizer, ["1 // a", "1", None, "1 // 0", "(", "len(a)"])
    step.assign(data, "gen_code_e")
    judge = Judge(azr_manager(tokenizer), step, students)
    judge.begin_step(executor)
    tensor, _, programs, _ = judge(data=data, **arguments)
    judge.executor.close()
    # Inputs are 0, 1, 2, ...: the first and the fourth divide by zero.
    errors = [row.task.outputs[0] if row.task else row.reason for row in step.rows]
    assert errors == [
        *("ZeroDivisionError", "NoError", "unparsable", "ZeroDivisionError"),
        *("invalid", "TypeError"),
    ]
    assert [[one.solved for one in row.attempts] for row in step.rows] == [
        *([True, False], [False, True], [], [True, False], [], [False, False])
    ]
    assert tensor.sum(dim=1).tolist() == pytest.approx([0.5, 0.5, -1.0, 0.5, -1.0, 1.0])
    assert len(programs) == 4 and all("error" not in one for one in programs)


def test_answers_inside_azr(tokenizer, azr_manager, executor):
    """AZR's own verdicts on answers to AZR's own tasks, and ours."""
    needs.verl()
    import numpy as np

    answers = ["ZeroDivisionError", "zerodivisionERROR: x", "NoError", "ZeroDivision", "Zero Error"]
    data = proposals(tokenizer, [None] * len(answers))
    replies = [f"so </think> <answer>```output\n{one}\n```</answer>" for one in answers]
    written = [tokenizer(reply)["input_ids"] for reply in replies]
    from azr_population.hosts.azr.batches import with_responses

    tensors = {
        "input_ids": data.batch["prompts"],
        "attention_mask": data.batch["attention_mask"][:, : data.batch["prompts"].shape[1]],
        "position_ids": data.batch["position_ids"][:, : data.batch["prompts"].shape[1]],
    }
    made = with_responses(tensors, written, max(map(len, written)), 0)
    told = type(data).from_dict(tensors=made)
    task = Task("code_e", "def f(a):\n    return 1 // a", ("0",), ("ZeroDivisionError",))
    extra = {"input": "0", "output": "ZeroDivisionError", "imports": []}
    told.non_tensor_batch = {
        **{name: column for name, column in data.non_tensor_batch.items() if name != "extra_info"},
        "extra_info": np.array([extra] * len(answers), dtype=object),
        "problem": np.array([task.program] * len(answers), dtype=object),
    }
    tensor, *_ = azr_manager(tokenizer)(data=told, problem_type="pred_code_e", executor=executor)
    with Referee() as referee:
        ((*verdicts,),) = CodeE().grade([(task, answers)], referee)
    assert [value > 0 for value in tensor.sum(dim=1).tolist()] == [one.solved for one in verdicts]
    assert [one.solved for one in verdicts] == [True, True, False, False, False]
