"""Files that `azr-population new` writes: a strategy of one's own and its test."""

import importlib.util
import keyword
import re
from pathlib import Path

from azr_population.errors import UserError
from azr_population.files import write_atomically, writing

REWARD = '''\
"""A teacher's reward: population.teacher_reward=my_name.my_name."""


def my_name(solve_rate: float) -> float:
    """The reward of a valid task; `solve_rate` is the share of attempts that solved it. Other
    parameters: proposal, attempts, buffer, gold_probability (docs/extending.md)."""
    return 1.0 - solve_rate if solve_rate > 0 else 0.0
'''
REWARD_TEST = """\
from my_name import my_name


def test_harder_tasks_pay_more_unless_nobody_solves_them():
    assert my_name(0.25) > my_name(0.75) > my_name(1.0)
    assert my_name(0.0) == 0.0
"""
OPERATOR = '''\
"""An operator: evolution.operators.my_name.my_name=1."""

from collections.abc import Sequence

import torch

from azr_population import Adapter, Factors, operator


@operator(parents=1, ranges={"share": (0.0, 1.0)})
def my_name(
    parents: Sequence[Adapter], generator: torch.Generator, *, share: float = 0.9
) -> Adapter:
    """The parent's update times `share`. A layer's update is dW = B A (A: rank x inputs, B: outputs
    x rank); take randomness from `generator` alone."""
    (parent,) = parents
    factors = {name: Factors(pair.A, pair.B * share) for name, pair in parent.factors.items()}
    return Adapter(parent.spec, factors)
'''
OPERATOR_TEST = """\
import torch

from azr_population import Adapter, Factors, LoraSpec
from my_name import my_name


def test_a_child_has_its_share_of_the_update():
    pair = Factors(torch.ones(2, 4), torch.ones(3, 2))
    parent = Adapter(LoraSpec(rank=2, alpha=4.0), {"layer": pair})
    child = my_name([parent], torch.Generator().manual_seed(1), share=0.5)
    torch.testing.assert_close(child.factors["layer"].B, pair.B * 0.5)
"""
DOMAIN = '''\
"""A domain: task.domain=my_name.MyName base.prompt_format=my_name (docs/extending.md)."""

from collections.abc import Sequence

from azr_population import Program, Question, Referee
from azr_population.config.schema import TaskConfig
from azr_population.domains.code.formats import NanoFormat
from azr_population.domains.domain import Domain, Verdict
from azr_population.domains.task import ParsedProposal, Task
from azr_population.registry import Registry


class Prompts(NanoFormat):
    """Prompts by type of task; those of other bases are text (domains/format.py)."""

    TYPES, REJECT = None, None
    PROPOSE = {"value": "<PO>"}
    SOLVE = {"value": "<SO>{program}<in>{input}<out>"}
    TOKENS = {"value": (144, 160)}


class MyName(Domain):
    """Programs whose value on an input is asked for."""

    types = {"value": "find the value"}
    formats = Registry("base.prompt_format")

    def judge(
        self, proposals: Sequence[ParsedProposal], referee: Referee, rules: TaskConfig
    ) -> list[Task | str]:
        """For each proposal the task, or in a word why it is none."""
        runs = referee.check([Program(p.program, p.inputs) for p in proposals])
        return [
            Task(**vars(proposal), outputs=run.outputs) if run.valid else run.reason.value
            for proposal, run in zip(proposals, runs, strict=True)
        ]

    def grade(
        self, answered: Sequence[tuple[Task, Sequence[str]]], referee: Referee
    ) -> list[list[Verdict]]:
        """For each task the verdicts on the answers to it."""
        questions = [
            Question("code_o", outputs=task.outputs, answers=tuple(answers))
            for task, answers in answered
        ]
        return [
            [Verdict(grade.solved, grade.reason.value) for grade in grades]
            for grades in referee.grade(questions)
        ]


MyName.formats.register("my_name", "prompts of the nano base")(Prompts)
'''
DOMAIN_TEST = """\
from azr_population import Referee, RefereeSettings
from azr_population.config.schema import TaskConfig
from my_name import MyName, Prompts


def test_a_proposal_becomes_a_task_whose_value_is_right():
    proposal = Prompts().parse_proposal("value", "def f(x):\\n    return x[::-1]<in>[1, 2, 3]")
    with Referee(RefereeSettings(workers=1)) as referee:
        (task,) = MyName().judge([proposal], referee, TaskConfig())
        ((right, wrong),) = MyName().grade([(task, ["[3, 2, 1]", "[1, 2, 3]"])], referee)
    assert right.solved and not wrong.solved
    assert Prompts().solve_prompt(task).endswith("<in>[1, 2, 3]<out>")
"""
KINDS = {
    "domain": (
        DOMAIN,
        DOMAIN_TEST,
        "task.domain=my_name.MyName base.prompt_format=my_name eval.every=0",
    ),
    "reward": (REWARD, REWARD_TEST, "population.teacher_reward=my_name.my_name"),
    "operator": (OPERATOR, OPERATOR_TEST, "evolution.operators.my_name.my_name=1"),
}
"""By kind: the file, its test, and the overrides that use it."""


def write_new(kind: str, name: str) -> list[str]:
    """Writes NAME.py and test_NAME.py into the current folder and returns the lines to print.
    Raises UserError: the name is not one of a Python module, or a file exists."""
    if not name.isidentifier() or keyword.iskeyword(name) or not name.islower():
        proper = "".join(sign if sign.isalnum() else "_" for sign in name.lower()).strip("_")
        usable = proper.isidentifier() and not keyword.iskeyword(proper)
        proper = proper if usable else f"my_{proper or kind}"
        raise UserError(f"{name} cannot be a module's name; try {proper}")
    title = name.title().replace("_", "")
    file, test, overrides = (
        text.replace("my_name", name).replace("MyName", title) for text in KINDS[kind]
    )
    paths = {Path(f"{name}.py"): file, Path(f"test_{name}.py"): test}
    for path in paths:
        if path.exists():
            raise UserError(f"{path} exists; choose another name")
    if importlib.util.find_spec(name) or re.search(rf"\b{title}\b", KINDS[kind][0]):
        raise UserError(f"{name} is the name of something that is imported; try my_{name}")
    for path, text in paths.items():
        with writing(path):
            write_atomically(path, text)
    return [
        f"{' and '.join(map(str, paths))} written; try them:",
        f"  python -m pytest test_{name}.py",
        f"  azr-population train population=1t1s run.steps=2 {overrides}",
    ]
