"""A held-out eval for stored members, after their run."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from azr_population.analysis.statistics import (
    Estimate,
    compare,
    interval,
    interval_text,
    or_none,
)
from azr_population.domains.known import find_domain
from azr_population.errors import UserError
from azr_population.files import write_atomically, writing
from azr_population.measuring.stored import StoredMember, engine_for, stored_config, stored_members
from azr_population.method.held_out_eval import EvalScores, held_out_eval
from azr_population.method.members import Member, Role
from azr_population.method.step_context import StepContext, format_of, open_referee
from azr_population.pages.console.pulse import sign_of_life
from azr_population.printable import csv_text
from azr_population.runs import RunDirectory


@dataclass(frozen=True)
class Result:
    """What a member scored: its mean, and its mean gain over the base at the same tasks."""

    member: StoredMember | None
    """None for the base."""
    scores: tuple[float, ...]
    """By greedy decoding, 0 or 1, in the eval's order."""
    gain: Estimate | None
    warm: tuple[float, ...]
    """At temperature 1, in [0, 1]."""

    @property
    def mean(self) -> Estimate:
        """Over tasks."""
        return interval(self.scores)

    def to_json(self) -> dict[str, Any]:
        """The member's line of the results, scores included."""
        mean, gain, stored = self.mean, self.gain, self.member
        rating = stored.rating if stored else None
        return {
            "step": stored.step if stored else None,
            "member": stored.name if stored else "base",
            "mean": or_none(mean.mean),
            "low": or_none(mean.low),
            "high": or_none(mean.high),
            "gain": or_none(gain.mean) if gain else None,
            "gain_low": or_none(gain.low) if gain else None,
            "gain_high": or_none(gain.high) if gain else None,
            "mu": rating.mu if rating else None,
            "sigma": rating.sigma if rating else None,
            "scores": [round(score, 6) for score in self.scores],
            "temperature_1": [round(score, 6) for score in self.warm],
        }


@dataclass(frozen=True)
class About:
    """Which eval it was."""

    run: str
    seed: int
    attempts: int
    types: tuple[str, ...]
    """Of each task."""
    exact: tuple[bool, ...]
    """Of each task: whether its score at temperature 1 is a probability and no share of samples."""


def examine(
    path: str | Path, overrides: Sequence[str] = (), every: int = 0
) -> tuple[About, list[Result]]:
    """The base and the stored members of the run at `path` sit an eval, oldest first; `overrides`
    of its `eval` group, `every` as in `stored_members`. Raises UserError: there is no such run, or
    it has no members or another base."""
    folder = RunDirectory(path)
    config = stored_config(folder, overrides)
    members = [one for one in stored_members(folder, every) if one.solves]
    held_out, format = held_out_eval(config.eval, config.task), format_of(config.task, config.base)
    with (
        sign_of_life("eval") as begin,
        open_referee(config.referee) as referee,
        engine_for(config, folder) as engine,
    ):
        tools = StepContext(engine, referee, find_domain(config.task.domain), format)

        def evaluate(member: Member, step: int) -> EvalScores:
            begin(f"{member.name} at step {step}, {len(held_out.tasks)} tasks")
            result = held_out.evaluate(tools, [member], config.seed, step)
            return result.scores[member.name]

        base = evaluate(Member("agent_0", Role.AGENT, 0), 0)
        results = [Result(None, tuple(base.greedy), None, tuple(base.t1))]
        for stored in members:
            marks = evaluate(stored.load(engine), stored.step)
            gain = compare(marks.greedy, base.greedy, paired=True, permute=False)
            results.append(Result(stored, tuple(marks.greedy), gain, tuple(marks.t1)))
    about = About(
        str(folder.path),
        config.eval.seed,
        config.eval.samples,
        tuple(str(task.type) for task in held_out.tasks),
        tuple(format.gold_answer(task) is not None for task in held_out.tasks),
    )
    return about, results


def write_results(about: About, results: Sequence[Result], out: Path | None = None) -> Path:
    """Writes a JSON file with every score, by default into the run, and a CSV file beside it.
    Raises UserError: the name does not end in .json, or cannot be written to."""
    out = out or Path(about.run) / f"eval_{about.seed}.json"
    if out.suffix != ".json":
        raise UserError(f"--out {out} must end in .json")
    content = {**asdict(about), "members": [result.to_json() for result in results]}
    with writing(f"--out {out}"):
        write_atomically(out, json.dumps(content) + "\n")
        write_atomically(out.with_suffix(".csv"), to_csv(results))
    return out


def to_csv(results: Sequence[Result]) -> str:
    """A line per member: its mean, its gain over the base, both with intervals, and its rating."""
    columns = ["step", "member"]
    columns += ["mean", "low", "high", "gain", "gain_low", "gain_high", "mu", "sigma"]
    rows = [[result.to_json()[column] for column in columns] for result in results]
    return csv_text(columns, rows)


def print_table(about: About, results: Sequence[Result]) -> None:
    """What the command prints, scores in percent."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("step", "member", "score", "gain over the base", "mu"):
        table.add_column(heading, justify="right")
    for result in results:
        stored, gain = result.member, result.gain
        table.add_row(
            str(stored.step) if stored else "",
            stored.name if stored else "base",
            interval_text(result.mean, percent=True),
            interval_text(gain, percent=True, signed=True) if gain else "",
            f"{stored.rating.mu:.1f}" if stored and stored.rating else "",
        )
    console = Console(highlight=False, soft_wrap=True)
    console.print(table)
    console.print(
        f"{len(about.types)} tasks of eval seed {about.seed}, greedy decoding; 95% intervals over "
        f"tasks (temperature 1, in the file: {sum(about.exact)} scored exactly, {about.attempts} "
        "samples at each of the others)"
    )
