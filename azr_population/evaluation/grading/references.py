"""What is right on the inputs of a function problem: computed in the sandbox, kept on disk.

A file is named by the hash of all that it depends on, so a changed benchmark, Python or rule never
meets an old answer. No sandbox can read it: programs there cannot open files.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from azr_population.errors import UserError
from azr_population.evaluation.grading import sandbox, sandboxed
from azr_population.evaluation.grading.outputs import Output, outputs_of, unpack
from azr_population.evaluation.grading.sandboxed.values import digest_of
from azr_population.evaluation.problem import FunctionProblem
from azr_population.files import write_atomically
from azr_population.referee.reasons import Reason
from azr_population.referee.sandbox import literal

_SECONDS = 120.0
"""Of processor time that a canonical solution may take on all inputs."""
_BATCH = 64


@dataclass(frozen=True)
class Reference:
    """What the canonical solution of a problem returns."""

    base_inputs: list[Any]
    plus_inputs: list[Any]
    base: list[Output]
    plus: list[Output]
    seconds: float
    """Of processor time that it took."""


class References:
    """The references of problems, computed once."""

    def __init__(self, folder: Path | None = None, workers: int = 0) -> None:
        """`folder`: default `azr_population/references` in the user's cache."""
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        self.folder = folder or cache / "azr_population" / "references"
        self.workers = workers
        self._known: dict[str, Reference] = {}
        """By what a file is named."""
        self._names: dict[int, tuple[FunctionProblem, str]] = {}
        """Of problems that were met, by their identity: naming takes a while."""

    def of(self, problems: Sequence[FunctionProblem]) -> dict[str, Reference]:
        """By the problems' ids.

        Raises UserError for a problem whose canonical solution does not do its work.
        """
        wanted = {problem.id: problem for problem in problems}
        missing = [
            problem
            for problem in wanted.values()
            if self._name(problem) not in self._known and not self._read(problem)
        ]
        for problem, reference in self._computed(missing):
            self._write(problem, reference)
            self._known[self._name(problem)] = reference
        return {key: self._known[self._name(problem)] for key, problem in wanted.items()}

    def _computed(
        self, problems: Sequence[FunctionProblem]
    ) -> Iterator[tuple[FunctionProblem, Reference]]:
        if not problems:
            return
        with sandbox.open_referee(_SECONDS, self.workers) as referee:
            for start in range(0, len(problems), _BATCH):
                batch = problems[start : start + _BATCH]
                inputs = [
                    (p.base_inputs or self._recorded(referee, p), p.plus_inputs) for p in batch
                ]
                works = [
                    call_task(p, p.canonical, sets) for p, sets in zip(batch, inputs, strict=True)
                ]
                ran = sandbox.run(referee, works)
                for problem, sets, (outcome,) in zip(batch, inputs, ran, strict=True):
                    if outcome.reason is not Reason.OK:
                        raise _broken(problem, f"{outcome.reason} {outcome.text}")
                    base, plus = unpack(outcome.text)
                    for record, group in zip((base, plus), sets, strict=True):
                        if record["error"] or len(record["lines"]) != len(group):
                            raise _broken(problem, record["error"])
                    yield (
                        problem,
                        Reference(
                            *sets,
                            outputs_of(base["lines"]),
                            outputs_of(plus["lines"]),
                            base["seconds"] + plus["seconds"],
                        ),
                    )

    def _recorded(self, referee: Any, problem: FunctionProblem) -> list[Any]:
        """The inputs of a problem that has a program for a test, such as HumanEval's."""
        work = sandbox.task(
            sandboxed.text_of("functions"),
            f"recorded({problem.check!r}, {problem.entry_point!r}, {problem.canonical!r})",
        )
        ((outcome,),) = sandbox.run(referee, [work])
        if outcome.reason is not Reason.OK:
            raise _broken(problem, f"{outcome.reason} {outcome.text}")
        return [literal.parse(text) for text in json.loads(outcome.text)]

    def _name(self, problem: FunctionProblem) -> str:
        if id(problem) not in self._names:
            self._names[id(problem)] = problem, _hash(problem)
        return self._names[id(problem)][1]

    def _path(self, problem: FunctionProblem) -> Path:
        return self.folder / f"{self._name(problem)}.json"

    def _read(self, problem: FunctionProblem) -> bool:
        try:
            stored = json.loads(self._path(problem).read_text(encoding="utf-8"))
            reference = Reference(
                base_inputs=problem.base_inputs or _parsed(stored["recorded"]),
                plus_inputs=problem.plus_inputs,
                base=[Output(**line) for line in stored["base"]],
                plus=[Output(**line) for line in stored["plus"]],
                seconds=stored["seconds"],
            )
        except (OSError, ValueError, KeyError, TypeError):
            return False  # not there, or half a file of another program: computed again
        self._known[self._name(problem)] = reference
        return True

    def _write(self, problem: FunctionProblem, reference: Reference) -> None:
        stored = {
            "id": problem.id,
            "recorded": [] if problem.base_inputs else list(map(repr, reference.base_inputs)),
            "base": [asdict(output) for output in reference.base],
            "plus": [asdict(output) for output in reference.plus],
            "seconds": reference.seconds,
        }
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self._path(problem), json.dumps(stored))
        except OSError as error:
            raise UserError(f"{self.folder} cannot be written: {error.strerror}") from error


def call_task(problem: FunctionProblem, solution: str, sets: Sequence[list[Any]]) -> Any:
    """The task that calls a solution's function on each set of inputs."""
    import marshal

    inputs = [marshal.dumps(group) for group in sets]
    return sandbox.task(
        sandboxed.text_of("functions"),
        f"call_all({solution!r}, {problem.entry_point!r}, {inputs!r})",
    )


def _hash(problem: FunctionProblem) -> str:
    """Of all that a reference depends on."""
    content = [
        problem.canonical,
        problem.entry_point,
        problem.check,
        digest_of([problem.base_inputs, problem.plus_inputs]).hex(),  # sets in any order
        sandboxed.text_of("functions"),
        platform.python_version(),
    ]
    digest = hashlib.sha256("\0".join(content).encode("utf-8", "backslashreplace"))
    return digest.hexdigest()[:32]


def _parsed(texts: list[str]) -> list[Any]:
    return [literal.parse(text) for text in texts]


def _broken(problem: FunctionProblem, why: str) -> UserError:
    return UserError(
        f"{problem.id}: the canonical solution does not run through its tests ({why.strip()}); the "
        "file of the benchmark is damaged, or this Python is not one that it was made for"
    )
