"""What is right on the inputs of a function problem: computed in the sandbox, kept on disk.

A file is named by the hash of all that it depends on, so a changed benchmark, Python or rule never
meets an old answer. No sandbox can read it: programs there cannot open files.
"""

import hashlib
import json
import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from azr_population.errors import UserError
from azr_population.evals.benchmarks import FunctionProblem
from azr_population.evals.grading import sandbox, sandboxed
from azr_population.evals.grading.outputs import Output, outputs_and_error
from azr_population.evals.grading.sandboxed.values import digest_of
from azr_population.files import write_atomically, writing
from azr_population.referee.jobs import Outcome
from azr_population.referee.reasons import Reason
from azr_population.referee.sandbox import literal

_SECONDS = (0.25, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
"""Of processor time that a canonical solution is given for all inputs, the first that is enough.
The sandbox shows programs no true clock, so this is how it is known what one takes."""
SHORTEST = _SECONDS[0]


@dataclass(frozen=True)
class Reference:
    """What the canonical solution of a problem returns."""

    base_inputs: list[Any]
    plus_inputs: list[Any]
    base: list[Output]
    plus: list[Output]
    seconds: float
    """Of processor time that were enough for it, and half of it was not; at least `SHORTEST`."""

    def part(self, plus: bool) -> tuple[list[Any], list[Output]]:
        """Base or plus inputs, and what is right on them."""
        return (self.plus_inputs, self.plus) if plus else (self.base_inputs, self.base)


Part = tuple[str, bool]
"""The base or (True) the plus inputs of the problem with that id."""


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
        """By the problems' ids. Raises UserError for a problem whose canonical solution does not do
        its work."""
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
        by_id = {problem.id: problem for problem in problems}
        sets = self._inputs(problems)
        told: dict[Part, list[Output]] = {
            (key, plus): [] for key in by_id for plus in (False, True)
        }
        enough: dict[str, float] = {}
        waiting = list(told)
        for seconds in _SECONDS:
            slow = self._tell(waiting, seconds, by_id, sets, told)
            enough |= {key: seconds for key, plus in set(waiting) - set(slow)}
            waiting = slow
            if not waiting:
                break
        else:
            raise _broken(by_id[waiting[0][0]], f"it takes more than {_SECONDS[-1]:g} seconds")
        for key, problem in by_id.items():
            (base, plus), seconds = sets[key], enough[key]
            yield problem, Reference(base, plus, told[key, False], told[key, True], seconds)

    def _tell(
        self,
        parts: list[Part],
        seconds: float,
        by_id: dict[str, FunctionProblem],
        sets: dict[str, tuple[list[Any], ...]],
        told: dict[Part, list[Output]],
    ) -> list[Part]:
        """Adds to `told` what the canonical solutions return; the parts that take longer."""
        slow: list[Part] = []
        with sandbox.open_referee("functions", seconds, self.workers) as referee:
            while parts:
                works = (
                    call_task(by_id[key], by_id[key].canonical, sets[key][plus], len(known))
                    for (key, plus), known in ((part, told[part]) for part in parts)
                )
                more = []
                for part, outcome in zip(parts, sandbox.run(referee, works), strict=True):
                    if outcome.reason is Reason.TIMEOUT:
                        slow.append(part)
                        continue
                    key, plus = part
                    outputs = _outputs(by_id[key], sets[key][plus], outcome)
                    told[part] += _told(outputs, len(told[part]))
                    if len(told[part]) < len(outputs):
                        more.append(part)
                parts = more
        return slow

    def _inputs(self, problems: Sequence[FunctionProblem]) -> dict[str, tuple[list[Any], ...]]:
        """Base and plus inputs by id; base inputs that only a test program has are recorded."""
        bare = [problem for problem in problems if not problem.base_inputs]
        recorded: dict[str, list[Any]] = {}
        if bare:
            with sandbox.open_referee("functions", _SECONDS[-1], self.workers) as referee:
                outcomes = list(sandbox.run(referee, map(_recording, bare)))
            for problem, outcome in zip(bare, outcomes, strict=True):
                if outcome.reason is not Reason.OK:
                    raise _broken(problem, f"{outcome.reason} {outcome.text}")
                recorded[problem.id] = _parsed(json.loads(outcome.text))
        return {p.id: (recorded.get(p.id, p.base_inputs), p.plus_inputs) for p in problems}

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
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self._path(problem), json.dumps(stored))


def call_task(problem: FunctionProblem, solution: str, inputs: list[Any], first: int = 0) -> Any:
    """The task that calls a solution's function on inputs, and tells the outputs from one on."""
    import marshal

    packed = marshal.dumps(inputs)
    return sandbox.task(
        f"call_all({solution!r}, {problem.entry_point!r}, {packed!r}, time_part, {first})"
    )


def _recording(problem: FunctionProblem) -> Any:
    """The task that records the inputs with which a problem's test program calls."""
    return sandbox.task(
        f"recorded({problem.check!r}, {problem.entry_point!r}, {problem.canonical!r})"
    )


def _outputs(problem: FunctionProblem, inputs: list[Any], outcome: Outcome) -> list[Output]:
    if outcome.reason is not Reason.OK:
        raise _broken(problem, f"{outcome.reason} {outcome.text}")
    outputs, error = outputs_and_error(outcome.text)
    if error or len(outputs) != len(inputs):
        raise _broken(problem, error)
    return outputs


def _told(outputs: list[Output], first: int) -> list[Output]:
    """The outputs from `first` on up to one that is told later; at least one, so that it ends."""
    kinds = [output.kind for output in outputs[first + 1 :]]
    stop = kinds.index("later") if "later" in kinds else len(kinds)
    return outputs[first : first + 1 + stop]


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
