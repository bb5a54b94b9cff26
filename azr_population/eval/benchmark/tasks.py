"""The benchmarks as Inspect tasks.

    inspect eval azr_population/mbpp_plus -T data=DIR --model azrpop/runs/mine/student_0
    inspect eval azr_population/math500 -T data=DIR --model openai/gpt-4o

Inspect finds them, and the provider `azrpop`, by the entry point of the package.
"""

from dataclasses import asdict
from functools import cache
from typing import Any

from inspect_ai import Task as InspectTask
from inspect_ai import task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, GenerateConfig
from inspect_ai.scorer import CORRECT, INCORRECT, Score, Scorer, Target, accuracy, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

from azr_population.errors import UserError
from azr_population.eval.benchmark import provider as provider
from azr_population.eval.benchmark.batcher import Batcher
from azr_population.eval.benchmark.benchmarks import BENCHMARKS, Data, read_benchmark
from azr_population.eval.benchmark.problem import EvalVerdict, Problem, VerdictLost

_BATCH = 64
_SELF_TESTS = 4
"""Problems of a benchmark that its judge is tested on."""
_STOPS = 4
"""Stop sequences that OpenAI's protocol allows."""


@solver
def ask() -> Solver:
    """Generates once. Only members get the beginning of their answer: servers' protocol has no
    prefill."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        user = state.messages[-1]
        about = user.metadata or {}
        user.metadata = {**about, "sample": str(state.sample_id), "epoch": state.epoch}
        is_member = state.model.api == "azrpop"
        if is_member and (beginning := about.get("answer_begins")):
            state.messages.append(ChatMessageAssistant(content=beginning, metadata=user.metadata))
        stops = list(about.get("stops", ()))[: None if is_member else _STOPS]
        options: dict[str, Any] = {"stop_seqs": stops} if stops else {}
        state = await generate(state, **options)
        if len(state.output.choices) != 1:
            raise ValueError(f"{len(state.output.choices)} completions where 1 was asked for")
        return state

    return solve


@scorer(metrics=[accuracy(), stderr()])
def answers(name: str, data: str = "", identity: str = "") -> Scorer:
    """Scores answers to a benchmark's problems; a sample whose verdict is lost twice is an error.
    Raises UserError as `_read`."""
    problems = {problem.id: problem for problem in _read(name, data, identity).problems}

    async def score(state: TaskState, target: Target) -> Score:
        problem = problems[str(state.sample_id)]
        text, plain = state.output.completion, problem.prompt.plain
        if plain and (state.output.metadata or {}).get("plain"):
            text = plain + text  # the prompt was the beginning of the program
        try:
            verdict = await _batcher(name, _BATCH).ask((problem, text))
        except VerdictLost:  # once more, alone: the fault of one answer is not that of its batch
            verdict = await _batcher(name, 1).ask((problem, text))
        return Score(
            value=CORRECT if verdict.passed else INCORRECT,
            answer=verdict.answer,
            explanation=f"{verdict.reason} {verdict.detail}".strip(),
            metadata={"reason": verdict.reason},
        )

    return score


@cache
def _batcher(name: str, size: int) -> Batcher[tuple[Problem, str], EvalVerdict]:
    """The batcher of one kind of problems: a batch has one judge."""
    return Batcher(grade, size)


def grade(completions: list[tuple[Problem, str]]) -> list[EvalVerdict]:
    """Verdicts on completions for problems of one kind, in order. Raises VerdictLost."""
    kind, problems = type(completions[0][0]), [problem for problem, _ in completions]
    return kind.judge(list(zip(problems, kind.read_all(completions), strict=True)))


@cache
def self_test(name: str, data: str = "") -> None:
    """Tests the judge of a benchmark. Raises UserError unless right answers pass and spoilt ones
    fail."""
    problems = read_benchmark(name, data).problems[:_SELF_TESTS]
    completions = type(problems[0]).known_completions(problems)
    verdicts = grade([(problem, text) for problem, *texts in completions for text in texts])
    for (problem, *_), verdict in zip(completions, verdicts[::2], strict=True):
        if not verdict.passed:
            why = f"{verdict.reason} {verdict.detail}".strip()
            raise _broken(name, f"fails {problem.id}'s own right answer ({why})")
    # Not every one: for a few problems evalplus accepts any value but None.
    if all(verdict.passed for verdict in verdicts):
        raise _broken(name, f"passes a wrong answer to {problems[0].id}")


def _broken(name: str, fault: str) -> UserError:
    return UserError(
        f"{name}: its grader {fault}, so no figure would mean anything and nothing was asked; "
        "compare the versions installed with those of `pip install 'azr-population[eval]'`"
    )


def _read(name: str, data: str, identity: str) -> Data:
    """A benchmark's problems. Raises UserError as `read_benchmark`, or where the file is not the
    one of this identity ('' takes any), as when a log of another file is retried."""
    read = read_benchmark(name, data)
    if identity not in ("", read.identity):
        raise UserError(
            f"{name}: the file in data={data} is {read.identity}, and not {identity}, which the "
            "log is of; restore it, or start anew by azr-population benchmark"
        )
    return read


def _sample(problem: Problem) -> Sample:
    """Its prompt as the user's message, with what the provider needs as metadata."""
    about = {name: value for name, value in asdict(problem.prompt).items() if value}
    message = ChatMessageUser(content=about.pop("text"), metadata=about)
    return Sample([message], id=problem.id, target=str(getattr(problem, "gold", "")))


def _benchmark_task(name: str) -> Any:
    @task(name=name)
    def benchmark(data: str = "", identity: str = "") -> InspectTask:
        # As a task argument the identity is in the log's key: other data are another task.
        read = _read(name, data, identity)
        self_test(name, data)
        return InspectTask(
            dataset=MemoryDataset([_sample(problem) for problem in read.problems], name=name),
            solver=ask(),
            scorer=answers(name, data=data, identity=read.identity),
            config=GenerateConfig(temperature=0.0, max_tokens=BENCHMARKS[name].max_tokens),
            metadata={"data": read.identity, "prompt": BENCHMARKS[name].prompt},
            name=name,
        )

    return benchmark


TASKS = {name: _benchmark_task(name) for name in BENCHMARKS}
"""The benchmarks' tasks by name."""
