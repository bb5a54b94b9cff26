"""How a problem is asked, by name, in the words that published figures go by.

A prompt is chat (a user's turn, and perhaps the beginning of the answer) or plain text. The words
are those of AZR's evaluation (evaluation/ of its repository), of evalplus and of LiveCodeBench.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from azr_population.domains.puzzles.formats import ChatPuzzles
from azr_population.domains.puzzles.grammar import puzzle_task
from azr_population.errors import UserError
from azr_population.measuring.evaluation.benchmark import Benchmark
from azr_population.measuring.evaluation.problem import (
    ContestProblem,
    FunctionProblem,
    MathProblem,
    Problem,
    PuzzleProblem,
)
from azr_population.registry import Registry


@dataclass(frozen=True)
class Prompt:
    """What is put before a model."""

    text: str
    """The user's turn; or all there is, where there is no chat."""
    chat: bool = False
    system: str = ""
    answer_begins: str = ""
    """What the model's turn begins with, where the template allows that."""
    plain: str = ""
    """For a model without a chat template; '' takes `text`."""
    stops: tuple[str, ...] = ()
    """Texts that end an answer."""
    plain_stops: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wording:
    """A named way of asking problems of one kind, and of finding the answer."""

    name: str
    kind: type
    make: Callable[[Problem], Prompt]
    rule: str
    """Of `grading.extraction.RULES`."""

    def __call__(self, problem: Problem) -> Prompt:
        return self.make(problem)


WORDINGS: Registry[Wording] = Registry("--prompts")


def _wording(
    name: str, kind: type, rule: str, source: str
) -> Callable[[Callable[..., Prompt]], Callable[..., Prompt]]:
    def file(make: Callable[..., Prompt]) -> Callable[..., Prompt]:
        WORDINGS.register(name, source)(Wording(name, kind, make, rule))
        return make

    return file


def wordings(names: str, benchmarks: Sequence[Benchmark]) -> dict[str, Wording]:
    """The wording of each benchmark, by its name: those in `names` for their kinds of problems, the
    benchmark's own elsewhere. Raises UserError for a name that there is not."""
    given = [WORDINGS.find(name.strip()).function for name in names.split(",") if name.strip()]
    by_kind = {wording.kind: wording for wording in given}
    if len(by_kind) < len(given):
        raise UserError(f"--prompts={names} names two wordings for one kind of problem")
    chosen = {}
    for benchmark in benchmarks:
        own = WORDINGS.find(benchmark.prompt).function
        chosen[benchmark.name] = by_kind.get(own.kind, own)
    return chosen


_THINK = (
    "A conversation between User and Assistant. The user asks a question, and the Assistant solves "
    "it. The assistant first thinks about the reasoning process in the mind and then provides the "
    "user with the answer. The reasoning process and answer are enclosed within <think> </think> "
    "and <answer> </answer> tags, respectively, i.e., <think> reasoning process here </think> "
    "<answer> answer here </answer>. "
)
_BOXED = "Please reason step by step, and put your final answer within \\boxed{}."
_MATH_EVAL = "AZR a82124e, evaluation/math_eval/eval/utils.py"


@_wording("azr", MathProblem, "tagged", f"{_MATH_EVAL}: azr (its base models)")
def azr(problem: MathProblem) -> Prompt:
    return Prompt(f"{_THINK}User: {problem.question}\nAssistant:")


@_wording("azr_boxed", MathProblem, "tagged", f"{_MATH_EVAL}: azr_boxed (its coder models)")
def azr_boxed(problem: MathProblem) -> Prompt:
    box = "And your final answer will be extracted automatically by the \\boxed{} tag. "
    return Prompt(f"{_THINK}{box}User: {problem.question}\nAssistant:")


@_wording("azr_think", MathProblem, "tagged", f"{_MATH_EVAL}: azr_think")
def azr_think(problem: MathProblem) -> Prompt:
    return Prompt(f"{_THINK}User: {problem.question}\nAssistant: <think>")


@_wording("boxed", MathProblem, "boxed_or_last_number", f"{_MATH_EVAL}: qwen-boxed, as chat")
def boxed(problem: MathProblem) -> Prompt:
    return Prompt(f"{problem.question}\n{_BOXED}", chat=True)


@_wording("cot", MathProblem, "boxed_or_last_number", f"{_MATH_EVAL}: cot")
def cot(problem: MathProblem) -> Prompt:
    return Prompt(f"Question: {problem.question}\nAnswer: ", stops=("\n\nQuestion:",))


_ENDS = ("\nif __name__", "\ndef main(", "\nprint(")
_COMPLETION_ENDS = {
    "humaneval": ("\ndef ", "\nclass ", "\nimport ", "\nfrom ", "\nassert "),
    "mbpp": ('\n"""', "\nassert"),
}


@_wording("evalplus", FunctionProblem, "evalplus", "evalplus 0.3.1, evalplus/codegen.py")
def evalplus(problem: FunctionProblem) -> Prompt:
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
        plain_stops=(*_ENDS, *_COMPLETION_ENDS.get(problem.dataset, ())),
    )


_WITH_STARTER = (
    "You will use the following starter code to write the solution to the problem and enclose your "
    "code within delimiters."
)
_WITHOUT_STARTER = (
    "Read the inputs from stdin solve the problem and write the answer to stdout (do not directly "
    "test on the sample inputs). Enclose your code within delimiters as follows. Ensure that when "
    "the python program runs, it reads the inputs, runs the algorithm and writes output to STDOUT."
)
_LCB = "AZR a82124e, LiveCodeBench/lcb_runner/prompts/code_generation.py"


@_wording("livecodebench_azr", ContestProblem, "last_python_block", f"{_LCB}: azr")
def livecodebench_azr(problem: ContestProblem) -> Prompt:
    task = (
        "# Task: You will be given a question (problem specification) and will generate a correct "
        "Python program that matches the specification and passes all tests. Your final answer "
        "should be wrapped in ```python``` tags."
    )
    return Prompt(
        f"{_THINK}User: \n{task}\n\nQuestion: {problem.question}\n\n{_format(problem, '')}"
        "Assistant: <think>"
    )


@_wording("livecodebench", ContestProblem, "last_fence", f"{_LCB}: generic chat")
def livecodebench(problem: ContestProblem) -> Prompt:
    return Prompt(
        f"### Question:\n{problem.question}\n\n{_format(problem, '### Format: ')}"
        "### Answer: (use the provided format with backticks)\n\n",
        chat=True,
        system=(
            "You are an expert Python programmer. You will be given a question (problem "
            "specification) and will generate a correct Python program that matches the "
            "specification and passes all tests."
        ),
    )


@_wording("puzzle", PuzzleProblem, "puzzle", "ours: the prompt of the domain puzzles")
def puzzle(problem: PuzzleProblem) -> Prompt:
    return Prompt(ChatPuzzles().solve_prompt(puzzle_task(problem.program)), chat=True)


def _format(problem: ContestProblem, heading: str) -> str:
    if problem.starter_code:
        return f"{heading}{_WITH_STARTER}\n```python\n{problem.starter_code}\n```\n\n"
    return f"{heading}{_WITHOUT_STARTER}\n```python\n# YOUR CODE HERE\n```\n\n"
