"""Callbacks measure during a step, and a clock times its phases.

Hosts choose the callbacks. Inside AZR only the completion log and the warnings are available: the
others need an engine that can generate at any time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict, dataclass, fields
from difflib import get_close_matches
from typing import Any, ClassVar

from azr_population.config.schema import EvalConfig
from azr_population.domains.metric import Metric
from azr_population.errors import UserError
from azr_population.method.held_out_eval import HeldOutEval
from azr_population.method.phases import StepContext
from azr_population.method.population import Population
from azr_population.method.proposals import Attempt, Proposal
from azr_population.method.record import StepRecords, flatten
from azr_population.registry import Registry, finite_number, own_code
from azr_population.runs import RunDirectory
from azr_population.runs.run_warnings import Watch
from azr_population.weights.lowrank import mean_cosine

_running: list[str] = []


def current_phase() -> str:
    """The name of the current phase for the console; empty between phases."""
    return _running[-1] if _running else ""


class PhaseClock:
    """Wall-clock seconds per phase of a step, and since its start."""

    def __init__(self) -> None:
        self.phases: dict[str, float] = {}
        self._start = time.perf_counter()

    def metrics(self) -> dict[str, float]:
        """`time/<phase>` of each phase, and `time/step` since the start, in seconds."""
        phases = {f"time/{name}": seconds for name, seconds in self.phases.items()}
        return {**phases, "time/step": time.perf_counter() - self._start}

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        """Times the block; seconds of a repeated phase add up."""
        start = time.perf_counter()
        _running.append(phase)
        try:
            yield
        finally:
            _running.pop()
        self.phases[phase] = self.phases.get(phase, 0.0) + time.perf_counter() - start


class Callback:
    """Base class: override the hooks that are needed."""

    phase = "record"
    """Its name in `time/<phase>`."""
    metrics: ClassVar[Sequence[Metric]] = ()
    """Metrics that it adds to `records.metrics`, for pages and comparisons; a run stores it."""
    path = ""
    """Name of a user's callback in the configuration: `module.Class`."""

    def updated(
        self, population: Population, proposals: Sequence[Proposal], replayed: Sequence[Attempt]
    ) -> None:
        """After the update, before ratings change and members are replaced."""

    def recorded(
        self, population: Population, proposals: Sequence[Proposal], records: StepRecords
    ) -> None:
        """At the end of the step; may add to `records.metrics`."""


_HOOKS = ("updated", "recorded")
_RESERVED = ("step", "eval", "validation", "benchmark", "engine", "evolution", "time", "type",
             "reason", "total")  # fmt: skip
"""Groups of metrics that a user's callback must not add to."""


def call(callbacks: Sequence[Callback], hook: str, clock: PhaseClock, *arguments: Any) -> None:
    """Calls one hook of all callbacks in turn; the clock times each under its own phase."""
    for callback in callbacks:
        with clock(callback.phase):
            if callback.path:
                call_own(callback, hook, *arguments)
            else:
                getattr(callback, hook)(*arguments)


def call_own(callback: Callback, hook: str, *arguments: Any) -> None:
    """Calls one hook of a user's callback. It gets copies of the step's records and lists, and only
    the metrics that it adds are taken over. Raises UserError: it fails, changes anything else in
    the records, or adds what is not a finite number under a name of its own."""
    *others, last = (tuple(a) if isinstance(a, list) else a for a in arguments)
    theirs: Any = deepcopy(last) if isinstance(last, StepRecords) else last
    with own_code("callbacks", callback.path):
        getattr(callback, hook)(*others, theirs)
    if isinstance(last, StepRecords):
        last.metrics |= _added_metrics(callback.path, last, theirs)


def _added_metrics(path: str, before: StepRecords, after: StepRecords) -> dict[str, float]:
    for field in fields(StepRecords):
        old, new = getattr(before, field.name), getattr(after, field.name)
        if field.name == "metrics" and isinstance(new, dict):
            new = {name: new.get(name) for name in old}
        if old != new:
            raise _refusal(path, f"changes records.{field.name}")
    added = {}
    for name, value in after.metrics.items():
        if name in before.metrics:
            continue
        number = finite_number(value)
        if number is None:
            raise _refusal(path, f"sets {name!r:.60} to {value!r:.60}, not to a finite number")
        _refuse_reserved(path, name)
        added[name] = number
    return added


def _refuse_reserved(path: str, name: Any) -> None:
    if not isinstance(name, str) or not name.isprintable() or name.split("/")[0] in _RESERVED:
        raise _refusal(path, f"sets {name!r:.60}, which is not a name of its own")


def _refusal(path: str, fault: str) -> UserError:
    return UserError(
        f"callbacks={path} {fault}; it may add finite numbers to records.metrics under new names "
        f"outside of {', '.join(_RESERVED)} (docs/extending.md)",
        key="callbacks",
    )


CALLBACKS: Registry[Callable[[], Callback]] = Registry("callbacks", group="callbacks")
"""Callbacks of users and of installed packages, made without arguments."""


def own_callbacks(names: Sequence[str]) -> list[Callback]:
    """The callbacks that `callbacks` names, made. Raises UserError: one is unknown or fails."""
    made = []
    for name in names:
        make = CALLBACKS.find(name)
        with own_code("callbacks", name):
            callback = make()
            if not isinstance(callback, Callback):
                raise TypeError("give a subclass of azr_population.Callback")
            callback.path = name
        _check_hooks(callback)
        for metric in callback.metrics:
            _refuse_reserved(name, metric.name)
        made.append(callback)
    return made


def _check_hooks(callback: Callback) -> None:
    """Raises UserError: the callback has a method that looks like a misspelt hook, or no hook."""
    methods = [name for name in dir(callback) if callable(getattr(callback, name))]
    for name in methods:
        if name not in _HOOKS and (near := get_close_matches(name, _HOOKS, 1, cutoff=0.8)):
            raise _refusal(callback.path, f"has a method {name}, which nobody calls ({near[0]}?)")
    if all(getattr(type(callback), hook) is getattr(Callback, hook) for hook in _HOOKS):
        raise _refusal(callback.path, f"has neither of the methods {' and '.join(_HOOKS)}")


def declared(callbacks: Sequence[Callback]) -> dict[str, Any]:
    """The callbacks' metrics for `environment.json`, so that no code is run to read a run; empty
    without any."""
    metrics = [asdict(metric) for callback in callbacks for metric in callback.metrics]
    return {"metrics": metrics} if metrics else {}


@dataclass
class EvalCallback(Callback):
    """Runs the held-out eval at its interval, after the first step and after the `last`, and
    measures how similar the members of a role are."""

    context: StepContext
    held_out: HeldOutEval
    config: EvalConfig
    last: int
    seed: int
    """The run's."""
    phase = "eval"

    def recorded(
        self, population: Population, proposals: Sequence[Proposal], records: StepRecords
    ) -> None:
        step, every = population.step, self.config.every
        if not every or (step % every and step not in (1, self.last)):
            return
        result = self.held_out.evaluate(self.context, population.roster.students, self.seed, step)
        records.metrics |= result.metrics()
        records.evals += result.records(step)
        for role, members in population.roster.sub_populations.items():
            cosine = mean_cosine([self.context.engine.read(member.slot) for member in members])
            records.metrics |= flatten(str(role), {"weight_cosine": cosine})


@dataclass
class Warn(Callback):
    """Prints each warning once, in the step in which it begins (`runs/run_warnings.py`)."""

    run: RunDirectory
    uses_replay: bool
    """Whether students train on tasks of earlier steps, as AZR's solver always does."""
    _watch: Watch | None = None

    def recorded(
        self, population: Population, proposals: Sequence[Proposal], records: StepRecords
    ) -> None:
        if self._watch is None:
            self._watch = Watch(self.uses_replay)
            # A resumed run has some records; what they warn of was printed.
            self._watch.read(self.run.read("metrics"), self.run.read("evals"))
        warnings = self._watch.read([records.metrics], records.evals)
        records.notes += [warning.text for warning in warnings]
