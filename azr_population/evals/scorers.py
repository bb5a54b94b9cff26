"""Inspect's scorers: programs in the referee, mathematics by math-verify, tasks by their domain."""

import atexit
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cache, cached_property
from typing import Any

from inspect_ai.scorer import CORRECT, INCORRECT, Score, Scorer, Target, accuracy, scorer, stderr
from inspect_ai.solver import TaskState

from azr_population.domains.known import find_domain
from azr_population.domains.puzzles.grammar import puzzle_task
from azr_population.domains.task import Task
from azr_population.errors import UserError
from azr_population.evals.batcher import Batcher
from azr_population.evals.benchmarks import (
    ContestProblem,
    FunctionProblem,
    MathProblem,
    Problem,
    PuzzleProblem,
    read_benchmark,
)
from azr_population.evals.grading.contests import judge_contests
from azr_population.evals.grading.functions import FunctionJudge
from azr_population.evals.grading.mathematics import Workers, grade_answers
from azr_population.evals.grading.sandbox import NO_ANSWER, PASSED, WRONG, EvalVerdict
from azr_population.evals.prompts import find_template, sanitized
from azr_population.referee import Reason, Referee, RefereeSettings

_BATCH = 64
_FEW = 4
_WRONG = "271828182.5"
_CONTEST = ContestProblem("proof", "", "", "", lambda: (("2 3\n", "5\n"), ("0 7\n", "7\n")))
"""LiveCodeBench publishes no solutions."""
_PUZZLE = PuzzleProblem("proof", "def sat(x):\n    return x > 0 and x * x == 1369")
"""P3's solutions are programs, which would have to be run first."""


Completion = tuple[Problem, str]
Parser = Callable[[Problem, str], str]


class Graders:
    """Starts the processes of graders on first use; `close` ends them."""

    def __init__(self, processes: int = 0) -> None:
        """`processes`: 0 takes one per core."""
        self.processes = processes
        self._stack = ExitStack()
        self.close = self._stack.close

    def grade(self, parser: Parser, completions: Sequence[Completion]) -> list[EvalVerdict]:
        """Verdicts on completions for problems of one benchmark, in order."""
        answers = self.parse(parser, completions)
        return self.judge([(p, a) for (p, _), a in zip(completions, answers, strict=True)])

    def parse(self, parser: Parser, completions: Sequence[Completion]) -> list[str]:
        """The answers in the completions; '' for none."""
        if parser is not sanitized:
            return [parser(problem, text) for problem, text in completions]
        # It parses what the model wrote, again and again.
        return [answer or "" for answer in self.workers.map(parser, completions)]

    def judge(self, answers: Sequence[tuple[Any, str]]) -> list[EvalVerdict]:
        """Verdicts on answers to problems of one kind, in order."""
        kind = type(answers[0][0])
        if kind is MathProblem:
            return grade_answers(answers, self.workers)
        if kind is FunctionProblem:
            return self.functions.judge(answers)
        if kind is ContestProblem:
            return judge_contests(answers, self.processes)
        tasks = [(puzzle_task(problem.program), answer) for problem, answer in answers]
        return self.grade_tasks("puzzles", tasks)

    def grade_tasks(self, domain: str, answers: Sequence[tuple[Task, str]]) -> list[EvalVerdict]:
        """Verdicts on answers to a domain's tasks, in order."""
        asked = [(task, (answer,)) for task, answer in answers if answer]
        graded = iter(find_domain(domain).grade(asked, self.referee))
        return [_verdict(answer, next(graded)[0].reason if answer else "") for _, answer in answers]

    @cached_property
    def workers(self) -> Workers:
        """Processes that read what models wrote."""
        workers = Workers(self.processes)
        self._stack.callback(workers.close)
        return workers

    @cached_property
    def referee(self) -> Referee:
        """The referee of domains' tasks."""
        return self._stack.enter_context(Referee(RefereeSettings(workers=self.processes)))

    @cached_property
    def functions(self) -> FunctionJudge:
        """The judge of HumanEval+ and MBPP+."""
        return self._stack.enter_context(FunctionJudge(self.processes))


def _verdict(answer: str, reason: str) -> EvalVerdict:
    if not answer:
        return EvalVerdict(False, NO_ANSWER)
    if reason == Reason.SOLVED.value:
        return EvalVerdict(True, PASSED, answer=answer)
    return EvalVerdict(False, WRONG if reason == Reason.WRONG.value else reason, answer=answer)


@cache
def graders() -> Graders:
    """Those of this process."""
    shared = Graders()
    atexit.register(shared.close)
    return shared


@cache
def _batcher(parser: Parser, benchmark: str) -> Batcher[Completion, EvalVerdict]:
    """Of one kind of problems: a batch has one grader."""
    return Batcher(lambda asked: graders().grade(parser, asked), _BATCH)


@scorer(metrics=[accuracy(), stderr()])
def answers(benchmark: str, data: str = "", prompt: str = "") -> Scorer:
    """Scores answers to a benchmark's problems, by its own rules."""
    problems = {problem.id: problem for problem in read_benchmark(benchmark, data).problems}
    batcher = _batcher(find_template(prompt, benchmark).parse, benchmark)

    async def score(state: TaskState, target: Target) -> Score:
        problem = problems[str(state.sample_id)]
        text = state.output.completion
        if isinstance(problem, FunctionProblem) and (state.output.metadata or {}).get("plain"):
            # The prompt was the beginning of the program.
            text = problem.prompt.strip() + "\n" + text
        return _score(await batcher.ask((problem, text)))

    return score


@scorer(metrics=[accuracy(), stderr()])
def domain_answers(domain: str, prompt_format: str, tasks: dict[str, Task]) -> Scorer:
    """Scores answers to a domain's tasks, which are given by the ids of their samples."""
    format = find_domain(domain).format(prompt_format)
    batcher: Batcher[tuple[Task, str], EvalVerdict] = Batcher(
        lambda asked: graders().grade_tasks(domain, asked), _BATCH
    )

    async def score(state: TaskState, target: Target) -> Score:
        task = tasks[str(state.sample_id)]
        finished = state.output.stop_reason == "stop"
        answer = format.parse_answer(task.type, state.output.completion) if finished else None
        return _score(await batcher.ask((task, answer or "")))

    return score


def _score(verdict: EvalVerdict) -> Score:
    return Score(
        value=CORRECT if verdict.passed else INCORRECT,
        answer=verdict.answer,
        explanation=f"{verdict.reason} {verdict.detail}".strip(),
        metadata={"reason": verdict.reason, "base_passed": verdict.base_passed},
    )


@cache
def check_grader(benchmark: str, data: str = "", prompt: str = "") -> None:
    """Self-test of a benchmark's grader on its first problems: right answers must pass, spoilt ones
    fail. Raises UserError otherwise."""
    problems = read_benchmark(benchmark, data).problems[:_FEW]
    parser = find_template(prompt, benchmark).parse
    self_tests = [case for problem in problems for case in _known_answers(problem)]
    if not all(graders().parse(parser, [(problem, text) for problem, _, _, text in self_tests])):
        raise _broken(benchmark, "reads no answer in a completion that has one")
    # As they are: evalplus's parser leaves out generators, as one canonical solution has.
    verdicts = graders().judge([(problem, answer) for problem, _, answer, _ in self_tests])
    for (problem, right, _, _), verdict in zip(self_tests, verdicts, strict=True):
        if right and not verdict.passed:
            why = f"{verdict.reason} {verdict.detail}".strip()
            raise _broken(benchmark, f"fails {problem.id}'s own right answer ({why})")
    # Not every one: for a few problems evalplus accepts any value but None.
    if all(verdict.passed for verdict in verdicts):
        raise _broken(benchmark, f"passes a wrong answer to {problems[0].id}")


def _known_answers(problem: Problem) -> list[tuple[Problem, bool, str, str]]:
    """(problem, whether the answer is right, answer, completion)."""
    if isinstance(problem, MathProblem):
        texts = (True, problem.gold), (False, _WRONG)
        return [(problem, right, a, f"<answer>\\boxed{{{a}}}</answer>") for right, a in texts]
    if isinstance(problem, PuzzleProblem):
        texts = (True, "37"), (False, "36")
        return [(_PUZZLE, right, a, f"```answer\n{a}\n```") for right, a in texts]
    if isinstance(problem, FunctionProblem):
        spoilt = f"def {problem.entry_point}(*arguments):\n    return {_WRONG}\n"
        texts = (True, problem.canonical), (False, spoilt)
    else:
        program = "a, b = map(int, input().split())\nprint(a {} b)"
        problem = _CONTEST
        texts = (True, program.format("+")), (False, program.format("-"))
    return [(problem, right, a, f"```python\n{a.strip()}\n```") for right, a in texts]


def _broken(benchmark: str, what: str) -> UserError:
    return UserError(
        f"{benchmark}: its grader {what}, so no figure would mean anything and nothing was asked; "
        "compare the versions installed with those of `pip install 'azr-population[eval]'`"
    )
