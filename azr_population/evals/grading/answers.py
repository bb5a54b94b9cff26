"""The answer in a completion. Which rule holds belongs to the prompt that was given."""

import re
from collections.abc import Callable

from azr_population.domains.puzzles.formats import ChatPuzzles
from azr_population.domains.puzzles.grammar import PUZZLE
from azr_population.evals.benchmarks import FunctionProblem, Problem, last_boxed
from azr_population.evals.grading.rules import evalplus_module

_DISPLAY = re.compile(r"\\\[(.*?)\\\]")
_NUMBER = re.compile(r"-?\d*\.?\d+")
_PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
_ANSWER_IS = ("he answer is", "final answer is")


def tagged(completion: str) -> str:
    """AZR's rule for its own prompts: the last box inside the last <answer>; or what is in that
    <answer>; without the tag the last box, or the first displayed formula."""
    if "<answer>" in completion:
        inside = completion.split("<answer>")[-1].split("</answer>")[0].strip()
        return last_boxed(inside) if "boxed" in inside else inside
    if "boxed" in completion:
        return last_boxed(completion)
    displayed = _DISPLAY.search(completion)
    return displayed.group(1).strip() if displayed else ""


def boxed_or_last_number(completion: str) -> str:
    """The usual rule: the last box; or what follows "the answer is"; or the last number."""
    if "boxed" in completion:
        return last_boxed(completion)
    for phrase in _ANSWER_IS:
        if phrase in completion:
            return completion.split(phrase)[-1].strip().split("\n")[0].strip().strip(":.").strip()
    numbers = _NUMBER.findall(completion.replace(",", ""))
    return numbers[-1] if numbers else ""


def last_python_block(completion: str) -> str:
    """LiveCodeBench's rule for AZR: the last fenced python block of the <answer>; or all of it."""
    answer = completion.split("<answer>")[-1].split("</answer>")[0].strip()
    blocks = _PYTHON.findall(answer)
    return blocks[-1] if blocks else answer


def last_fence(completion: str) -> str:
    """LiveCodeBench's rule for chat models: what stands between the last two fences."""
    lines = completion.split("\n")
    fences = [number for number, line in enumerate(lines) if "```" in line]
    return "\n".join(lines[fences[-2] + 1 : fences[-1]]) if len(fences) > 1 else ""


def sanitized(problem: Problem, completion: str) -> str:
    """evalplus's rule: the longest part that parses, of it what the function needs."""
    assert isinstance(problem, FunctionProblem)
    sanitize = evalplus_module("evalplus.sanitize", "sanitize").sanitize
    return str(sanitize(completion, problem.entry_point))


Rule = Callable[[Problem, str], str]


def _of_text(rule: Callable[[str], str]) -> Rule:
    return lambda problem, completion: rule(completion)


PARSERS: dict[str, Rule] = {
    "tagged": _of_text(tagged),
    "boxed_or_last_number": _of_text(boxed_or_last_number),
    "last_python_block": _of_text(last_python_block),
    "last_fence": _of_text(last_fence),
    "evalplus": sanitized,
    "puzzle": _of_text(lambda completion: ChatPuzzles().parse_answer(PUZZLE, completion) or ""),
}
"""How a completion's answer is found, by name."""
