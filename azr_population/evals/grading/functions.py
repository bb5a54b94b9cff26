"""Judges solutions of HumanEval and MBPP problems by evalplus's rules, in the referee's sandbox.

What is right is computed there too, and kept on disk. A file is named by the hash of all that it
depends on, so a changed benchmark, Python or rule never meets an old answer. No sandbox can read
it: programs there cannot open files.
"""

import hashlib
import json
import marshal
import math
import os
import platform
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from azr_population.errors import UserError
from azr_population.evals.benchmarks import FunctionProblem
from azr_population.evals.grading import sandbox
from azr_population.evals.grading.rules import (
    MalformedOutput,
    SolutionOutput,
    first_wrong,
    outputs_and_error,
)
from azr_population.evals.grading.sandbox import PASSED, WRONG, EvalVerdict
from azr_population.evals.grading.sandboxed import digest_of
from azr_population.files import write_atomically, writing
from azr_population.referee import Reason
from azr_population.referee.jobs import CallOutcome
from azr_population.referee.sandbox import literal

_SECONDS = (0.25, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
"""Of processor time that a canonical solution is given for all inputs, the first that is enough.
The sandbox shows programs no true clock, so this is how it is known what one takes."""
SHORTEST = _SECONDS[0]
LEAST_SECONDS = 4.0
INPUTS = 4.0
TIME_FACTOR = 4.0
"""Processor time that a solution has for the base inputs, and again for the plus inputs: the least,
of which one input may take a part (`LEAST_SECONDS / INPUTS`); or, where `SHORTEST` was not enough
for the canonical one, the factor on what was, for one input or all. evalplus gives each input 1
second by the wall, or 4 times what the canonical one took, and 60 to all."""
Limits = tuple[float, float]
"""Seconds for all inputs, and for one; 0: no limit of its own."""
Solution = tuple[FunctionProblem, str]


@dataclass(frozen=True)
class Reference:
    """What the canonical solution of a problem returns."""

    inputs: tuple[list[Any], list[Any]]
    """Base and plus."""
    outputs: tuple[list[SolutionOutput], list[SolutionOutput]]
    seconds: float
    """Of processor time that were enough for it, and half of it was not; at least `SHORTEST`."""


class References:
    """The references of problems, computed once."""

    def __init__(self, folder: Path | None = None, workers: int = 0) -> None:
        """`folder`: default `azr_population/references` in the user's cache."""
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        self.folder = folder or cache / "azr_population" / "references"
        self.workers = workers
        self._cached: dict[int, tuple[FunctionProblem, Reference]] = {}
        """By identity: hashing a problem takes a while."""

    def of(self, problems: Sequence[FunctionProblem]) -> dict[str, Reference]:
        """By the problems' ids. Raises UserError for a problem whose canonical solution does not do
        its work."""
        missing = []
        for problem in {id(problem): problem for problem in problems}.values():
            if id(problem) not in self._cached:
                stored = self._read(problem)
                if stored:
                    self._cached[id(problem)] = problem, stored
                else:
                    missing.append(problem)
        for problem, reference in self._computed(missing):
            self._write(problem, reference)
            self._cached[id(problem)] = problem, reference
        return {problem.id: self._cached[id(problem)][1] for problem in problems}

    def _computed(
        self, problems: Sequence[FunctionProblem]
    ) -> Iterator[tuple[FunctionProblem, Reference]]:
        waiting = list(zip(problems, self._inputs(problems), strict=True))
        for seconds in _SECONDS:
            if not waiting:
                return
            calls = (
                _call(problem, problem.canonical, inputs[plus])
                for problem, inputs in waiting
                for plus in (False, True)
            )
            slow = []
            with sandbox.open_referee(seconds, self.workers) as referee:
                outcomes = sandbox.run(referee, calls)
                for (problem, inputs), both in zip(
                    waiting, zip(outcomes, outcomes, strict=True), strict=True
                ):
                    if Reason.TIMEOUT in [outcome.reason for outcome in both]:
                        slow.append((problem, inputs))
                        continue
                    base, plus = (
                        _outputs(problem, len(given), outcome)
                        for given, outcome in zip(inputs, both, strict=True)
                    )
                    yield problem, Reference(inputs, (base, plus), seconds)
            waiting = slow
        if waiting:
            raise _broken(waiting[0][0], f"it takes more than {_SECONDS[-1]:g} seconds")

    def _inputs(self, problems: Sequence[FunctionProblem]) -> list[tuple[list[Any], list[Any]]]:
        """Base and plus inputs; base inputs that only a test program has are recorded."""
        bare = [problem for problem in problems if not problem.base_inputs]
        recorded: dict[str, list[Any]] = {}
        if bare:
            with sandbox.open_referee(_SECONDS[-1], self.workers) as referee:
                calls = [f"recorded({p.check!r}, {p.entry_point!r}, {p.canonical!r})" for p in bare]
                for problem, outcome in zip(bare, sandbox.run(referee, calls), strict=True):
                    if outcome.reason is not Reason.OK:
                        raise _broken(problem, f"{outcome.reason} {outcome.text}")
                    recorded[problem.id] = list(map(literal.parse, json.loads(outcome.text)))
        return [(recorded.get(p.id, p.base_inputs), p.plus_inputs) for p in problems]

    def _read(self, problem: FunctionProblem) -> Reference | None:
        try:
            stored = json.loads(self._path(problem).read_text(encoding="utf-8"))
            base = problem.base_inputs or list(map(literal.parse, stored["recorded"]))
            outputs = [
                [SolutionOutput(**line) for line in stored[part]] for part in ("base", "plus")
            ]
            return Reference(
                (base, problem.plus_inputs), (outputs[0], outputs[1]), stored["seconds"]
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None  # not there, or half a file of another program: computed again

    def _write(self, problem: FunctionProblem, reference: Reference) -> None:
        base, plus = ([asdict(output) for output in part] for part in reference.outputs)
        recorded = [] if problem.base_inputs else list(map(repr, reference.inputs[0]))
        stored = {"recorded": recorded, "base": base, "plus": plus, "seconds": reference.seconds}
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self._path(problem), json.dumps(stored))

    def _path(self, problem: FunctionProblem) -> Path:
        content = [
            problem.canonical,
            problem.entry_point,
            problem.check,
            digest_of([problem.base_inputs, problem.plus_inputs]).hex(),  # sets in any order
            sandbox.source(),
            platform.python_version(),
        ]
        digest = hashlib.sha256("\0".join(content).encode("utf-8", "backslashreplace"))
        return self.folder / f"{digest.hexdigest()[:32]}.json"


class FunctionJudge(AbstractContextManager["FunctionJudge"]):
    """Judges solutions, knowing what is right from the canonical ones; a context manager."""

    def __init__(
        self, references: References, workers: int = 0, least_seconds: float = LEAST_SECONDS
    ) -> None:
        self.references = references
        self.workers = workers
        self.least_seconds = least_seconds
        self._stack = ExitStack()
        self._referees: dict[tuple[Limits, bool], sandbox.Referee] = {}

    def __exit__(self, *exception: object) -> None:
        self._referees.clear()
        self._stack.close()

    def judge(self, solutions: Sequence[Solution]) -> list[EvalVerdict]:
        """Verdicts in order.

        Base inputs come first, where most wrong solutions fail; what passes them is run on the
        plus inputs, in a process of its own, as evalplus does.
        """
        references = self.references.of([problem for problem, _ in solutions])
        verdicts = {
            number: EvalVerdict(False, why, base_passed=False)
            for number, (_, solution) in enumerate(solutions)
            if (why := sandbox.unfit(solution))
        }
        for plus in (False, True):
            groups: dict[tuple[Limits, bool], list[int]] = defaultdict(list)
            for number, (problem, solution) in enumerate(solutions):
                if number not in verdicts:
                    limits = self._limits(references[problem.id])
                    groups[limits, "numpy" in solution].append(number)
            for (limits, numpy), numbers in sorted(groups.items()):
                asked = [(solutions[n], references[solutions[n][0].id]) for n in numbers]
                calls = (_call(*solution, reference.inputs[plus]) for solution, reference in asked)
                outcomes = sandbox.run(self._referee(limits, numpy), calls)
                for number, about, outcome in zip(numbers, asked, outcomes, strict=True):
                    verdict = _verdict(*about, plus, outcome)
                    if plus or not verdict.passed or not about[0][0].plus_inputs:
                        verdicts[number] = verdict
        return [verdicts[number] for number in range(len(solutions))]

    def _referee(self, limits: Limits, numpy: bool) -> sandbox.Referee:
        """Opened when it is first needed, and kept: workers take a while to start."""
        key = limits, numpy
        if key not in self._referees:
            seconds, part = limits
            self._referees[key] = self._stack.enter_context(
                sandbox.open_referee(seconds, self.workers, numpy, part)
            )
        return self._referees[key]

    def _limits(self, reference: Reference) -> Limits:
        """Up to a power of two where the canonical solution is slow, so that referees are few."""
        least = self.least_seconds
        if reference.seconds <= SHORTEST:
            return least, least / INPUTS
        return float(2 ** math.ceil(math.log2(max(least, TIME_FACTOR * reference.seconds)))), 0.0


def _verdict(
    solution: Solution, reference: Reference, plus: bool, outcome: CallOutcome
) -> EvalVerdict:
    problem, program = solution
    if outcome.reason is not Reason.OK:
        return EvalVerdict(False, str(outcome.reason), outcome.text[:200], program, plus)
    try:
        outputs, error = outputs_and_error(outcome.text)
    except MalformedOutput as malformed:
        return EvalVerdict(False, str(Reason.TAMPERED), str(malformed), program, plus)
    wrong = first_wrong(problem, reference.inputs[plus], outputs, reference.outputs[plus])
    if wrong is None:
        return EvalVerdict(True, PASSED, "", program, True)
    if wrong >= len(outputs):
        return EvalVerdict(False, "error", error[:200], program, plus)
    return EvalVerdict(False, WRONG, f"{'plus' if plus else 'base'} input {wrong}", program, plus)


def _call(problem: FunctionProblem, solution: str, inputs: list[Any]) -> str:
    packed = marshal.dumps(inputs)
    return f"call_all({solution!r}, {problem.entry_point!r}, {packed!r}, time_part)"


def _outputs(problem: FunctionProblem, number: int, outcome: CallOutcome) -> list[SolutionOutput]:
    if outcome.reason is not Reason.OK:
        raise _broken(problem, f"{outcome.reason} {outcome.text}")
    outputs, error = outputs_and_error(outcome.text)
    if error or len(outputs) != number:
        raise _broken(problem, error)
    return outputs


def _broken(problem: FunctionProblem, why: str) -> UserError:
    return UserError(
        f"{problem.id}: the canonical solution does not run through its tests ({why.strip()}); the "
        "file of the benchmark is damaged, or this Python is not one that it was made for"
    )
