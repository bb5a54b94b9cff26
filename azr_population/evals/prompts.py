"""Prompts and parsers of answers by name, as published figures use them.

The words are those of AZR's evaluation (evaluation/ of its repository), of evalplus and of
LiveCodeBench.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from azr_population.domains.puzzles.formats import ChatPuzzles
from azr_population.domains.puzzles.grammar import PUZZLE, puzzle_task
from azr_population.errors import UserError
from azr_population.evals.benchmarks import (
    BENCHMARKS,
    ContestProblem,
    FunctionProblem,
    MathProblem,
    Problem,
    PuzzleProblem,
    last_boxed,
)
from azr_population.evals.grading.rules import evalplus_module

_DISPLAY = re.compile(r"\\\[(.*?)\\\]")
_NUMBER = re.compile(r"-?\d*\.?\d+")
_PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
_ANSWER_IS = ("he answer is", "final answer is")


@dataclass(frozen=True)
class Prompt:
    """A user's turn, or plain text to be continued."""

    text: str
    chat: bool = False
    system: str = ""
    answer_begins: str = ""
    """Beginning of the model's turn, if the template allows one."""
    plain: str = ""
    """For a model without a chat template; '' takes `text`."""
    stops: tuple[str, ...] = ()
    """Texts that end an answer."""
    plain_stops: tuple[str, ...] = ()


@dataclass(frozen=True)
class PromptTemplate:
    """A prompt and the parser of its answer."""

    make: Callable[[Any], Prompt]
    """Prompt of a problem."""
    parse: Callable[[Problem, str], str]
    """The answer in a completion; '' for none."""
    source: str


def find_template(name: str, benchmark: str) -> PromptTemplate:
    """The template of that name, or the benchmark's own for ''. Raises UserError where there is
    none, or where it is for other problems."""
    suitable = templates_for(benchmark)
    if name and name not in suitable:
        raise UserError(f"prompt={name} is not for {benchmark}; choose from {', '.join(suitable)}")
    return TEMPLATES[name or BENCHMARKS[benchmark].prompt]


def templates_for(benchmark: str) -> tuple[str, ...]:
    """Names of the templates that suit a benchmark's problems."""
    return next(group for group in _GROUPS if BENCHMARKS[benchmark].prompt in group)


_GROUPS = (
    ("azr_boxed", "azr", "azr_think", "boxed", "cot"),
    ("evalplus",),
    ("livecodebench_azr", "livecodebench"),
    ("puzzle",),
)
"""Templates for one kind of problem."""


_THINK = (
    "A conversation between User and Assistant. The user asks a question, and the Assistant solves "
    "it. The assistant first thinks about the reasoning process in the mind and then provides the "
    "user with the answer. The reasoning process and answer are enclosed within <think> </think> "
    "and <answer> </answer> tags, respectively, i.e., <think> reasoning process here </think> "
    "<answer> answer here </answer>. "
)
_BOX = "And your final answer will be extracted automatically by the \\boxed{} tag. "
_MATH_EVAL = "AZR a82124e, evaluation/math_eval/eval/utils.py"


def _azr(before: str, after: str) -> Callable[[Any], Prompt]:
    return lambda problem: Prompt(f"{before}User: {problem.question}\nAssistant:{after}")


def _boxed(problem: MathProblem) -> Prompt:
    ask = "Please reason step by step, and put your final answer within \\boxed{}."
    return Prompt(f"{problem.question}\n{ask}", chat=True)


def _cot(problem: MathProblem) -> Prompt:
    return Prompt(f"Question: {problem.question}\nAnswer: ", stops=("\n\nQuestion:",))


def _puzzle(problem: PuzzleProblem) -> Prompt:
    return Prompt(ChatPuzzles().solve_prompt(puzzle_task(problem.program)), chat=True)


_ENDS = ("\nif __name__", "\ndef main(", "\nprint(")
_PLAIN_ENDS = {
    "humaneval": ("\ndef ", "\nclass ", "\nimport ", "\nfrom ", "\nassert "),
    "mbpp": ('\n"""', "\nassert"),
}


def _evalplus(problem: FunctionProblem) -> Prompt:
    """Chat with a begun answer; without a chat template, the bare prompt to be continued."""
    prompt = problem.prompt.strip() + "\n"
    ask = (
        "Please provide a self-contained Python script that solves the following problem in a "
        "markdown code block:"
    )
    begin = (
        "Below is a Python script with a self-contained function that solves the problem and "
        "passes corresponding tests:"
    )
    return Prompt(
        f"{ask}\n```\n{prompt.strip()}\n```\n",
        chat=True,
        answer_begins=f"{begin}\n```python\n",
        plain=prompt,
        stops=(*_ENDS, "\n```\n"),
        plain_stops=(*_ENDS, *_PLAIN_ENDS.get(problem.dataset, ())),
    )


_LCB = "AZR a82124e, LiveCodeBench/lcb_runner/prompts/code_generation.py"
_EXPERT = (
    "You will be given a question (problem specification) and will generate a correct Python "
    "program that matches the specification and passes all tests."
)


def _livecodebench_azr(problem: ContestProblem) -> Prompt:
    """AZR's prompt: plain text that begins to think."""
    task = f"# Task: {_EXPERT} Your final answer should be wrapped in ```python``` tags."
    return Prompt(
        f"{_THINK}User: \n{task}\n\nQuestion: {problem.question}\n\n{_starter(problem, '')}"
        "Assistant: <think>"
    )


def _livecodebench(problem: ContestProblem) -> Prompt:
    """LiveCodeBench's own prompt for chat models."""
    return Prompt(
        f"### Question:\n{problem.question}\n\n{_starter(problem, '### Format: ')}"
        "### Answer: (use the provided format with backticks)\n\n",
        chat=True,
        system=f"You are an expert Python programmer. {_EXPERT}",
    )


def _starter(problem: ContestProblem, heading: str) -> str:
    if problem.starter_code:
        return (
            f"{heading}You will use the following starter code to write the solution to the "
            f"problem and enclose your code within delimiters.\n```python\n{problem.starter_code}"
            "\n```\n\n"
        )
    return (
        f"{heading}Read the inputs from stdin solve the problem and write the answer to stdout (do "
        "not directly test on the sample inputs). Enclose your code within delimiters as follows. "
        "Ensure that when the python program runs, it reads the inputs, runs the algorithm and "
        "writes output to STDOUT.\n```python\n# YOUR CODE HERE\n```\n\n"
    )


def tagged(problem: Problem, completion: str) -> str:
    """AZR's rule for its own prompts: the last box inside the last <answer>; or what is in that
    <answer>; without the tag the last box, or the first displayed formula."""
    if "<answer>" in completion:
        inside = completion.split("<answer>")[-1].split("</answer>")[0].strip()
        return last_boxed(inside) if "boxed" in inside else inside
    if "boxed" in completion:
        return last_boxed(completion)
    displayed = _DISPLAY.search(completion)
    return displayed.group(1).strip() if displayed else ""


def boxed_or_last_number(problem: Problem, completion: str) -> str:
    """The usual rule: the last box; or what follows "the answer is"; or the last number."""
    if "boxed" in completion:
        return last_boxed(completion)
    for phrase in _ANSWER_IS:
        if phrase in completion:
            return completion.split(phrase)[-1].strip().split("\n")[0].strip().strip(":.").strip()
    numbers = _NUMBER.findall(completion.replace(",", ""))
    return numbers[-1] if numbers else ""


def last_python_block(problem: Problem, completion: str) -> str:
    """LiveCodeBench's rule for AZR: the last fenced python block of the <answer>; or all of it."""
    answer = completion.split("<answer>")[-1].split("</answer>")[0].strip()
    blocks = _PYTHON.findall(answer)
    return blocks[-1] if blocks else answer


def last_fence(problem: Problem, completion: str) -> str:
    """LiveCodeBench's rule for chat models: what stands between the last two fences."""
    lines = completion.split("\n")
    fences = [number for number, line in enumerate(lines) if "```" in line]
    return "\n".join(lines[fences[-2] + 1 : fences[-1]]) if len(fences) > 1 else ""


def sanitized(problem: Problem, completion: str) -> str:
    """evalplus's rule: the longest part that parses, of it what the function needs."""
    assert isinstance(problem, FunctionProblem)
    sanitize = evalplus_module("evalplus.sanitize").sanitize
    return str(sanitize(completion, problem.entry_point))


def last_answer_block(problem: Problem, completion: str) -> str:
    """The last fenced block named answer."""
    return ChatPuzzles().parse_answer(PUZZLE, completion) or ""


TEMPLATES = {
    "azr": PromptTemplate(_azr(_THINK, ""), tagged, f"{_MATH_EVAL}: azr (its base models)"),
    "azr_boxed": PromptTemplate(
        _azr(_THINK + _BOX, ""), tagged, f"{_MATH_EVAL}: azr_boxed (its coder models)"
    ),
    "azr_think": PromptTemplate(_azr(_THINK, " <think>"), tagged, f"{_MATH_EVAL}: azr_think"),
    "boxed": PromptTemplate(_boxed, boxed_or_last_number, f"{_MATH_EVAL}: qwen-boxed, as chat"),
    "cot": PromptTemplate(_cot, boxed_or_last_number, f"{_MATH_EVAL}: cot"),
    "puzzle": PromptTemplate(_puzzle, last_answer_block, "ours: the prompt of the domain puzzles"),
    "evalplus": PromptTemplate(_evalplus, sanitized, "evalplus 0.3.1, evalplus/codegen.py"),
    "livecodebench_azr": PromptTemplate(_livecodebench_azr, last_python_block, f"{_LCB}: azr"),
    "livecodebench": PromptTemplate(_livecodebench, last_fence, f"{_LCB}: generic chat"),
}
"""By name."""
