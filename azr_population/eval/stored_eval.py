"""A held-out eval for stored members, after their run."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from azr_population.analysis.statistics import (
    NOTHING,
    Estimate,
    compare,
    interval,
    interval_text,
    or_none,
)
from azr_population.console.output import StandardOutput, say
from azr_population.errors import UserError
from azr_population.eval.members import StoredMember, find_members, open_members
from azr_population.files import write_atomically, writing
from azr_population.method.held_out_eval import Scores, held_out_eval
from azr_population.runs import RunDirectory

_GAIN = ("gain", "gain_low", "gain_high")


def evaluate_stored(
    address: str | Path,
    overrides: Sequence[str] = (),
    every: int = 0,
    base: Path | None = None,
) -> dict[str, Any]:
    """Evaluates the base and the stored members at an address, oldest first; `overrides` of the
    `eval` group, `every` and `base` as in `find_members`.

    Returns what is written: `run` (the address), `seed`, `attempts`, of each task `types` and
    `exact` (whether its score at temperature 1 is a probability, not a share of samples), and
    `members`, a row each. Raises UserError: nothing is stored there that solves, or the base is
    another one.
    """
    stored = [member for member in find_members(address, base, every) if member.solves]
    if len(stored) == 1 and Path(address).name.startswith("teacher"):
        raise UserError(f"{address} is a teacher and solves nothing; name a student")
    with open_members(stored, overrides) as members:
        plan, context = members.plan, members.context
        config, held_out = plan.config, held_out_eval(plan.domain, plan.config)

        def evaluate(stored: StoredMember) -> Scores:
            say(f"eval: {stored.name} at step {stored.step}, {len(held_out.tasks)} tasks")
            member = members.load(stored)
            return held_out.evaluate(context, [member], config.seed, stored.step).scores[0]

        bare = evaluate(stored[0])
        rows = [_row(None, bare, None)] + [_row(one, evaluate(one), bare) for one in stored[1:]]
        exact = [context.format.gold_answer(task) is not None for task in held_out.tasks]
    return {
        "run": str(address),
        "seed": config.eval.seed,
        "attempts": config.eval.samples,
        "types": [str(task.type) for task in held_out.tasks],
        "exact": exact,
        "members": rows,
    }


def _row(stored: StoredMember | None, scores: Scores, base: Scores | None) -> dict[str, Any]:
    """A member's row: the share of tasks that it solved, with Wilson's 95% interval, its mean
    gain over the base at the same tasks, with Student's or Hall's; every greedy score (0 or 1) and
    every one at temperature 1."""
    solved = _judged(scores)
    share = interval(solved, "share")
    gain = compare(solved, _judged(base), paired=True) if base else NOTHING
    recorded = stored.metrics if stored else {}
    return {
        "step": stored.step if stored else None,
        "member": stored.name if stored else "base",
        **{key: or_none(getattr(share, key)) for key in ("mean", "low", "high")},
        **dict(zip(_GAIN, map(or_none, (gain.mean, gain.low, gain.high)), strict=True)),
        "mu": recorded.get("mu"),
        "sigma": recorded.get("sigma"),
        "scores": [x if x is None else round(x, 6) for x in scores["greedy"]],
        "temperature_1": [x if x is None else round(x, 6) for x in scores["t1"]],
    }


def _judged(scores: Scores) -> dict[str, float]:
    """Greedy scores by task, without tasks that could not be judged."""
    return {str(n): score for n, score in enumerate(scores["greedy"]) if score is not None}


def write_results(content: Mapping[str, Any], out: Path | None = None) -> Path:
    """Writes a JSON file with every score, and a CSV file beside it: by default `eval_SEED` in the
    run, of a member alone `eval_SEED_MEMBER`, elsewhere in `evaluations/`. Raises UserError: `out`
    cannot be written to."""
    path, name = Path(content["run"]), f"eval_{content['seed']}"
    if RunDirectory(path).exists:
        pass
    elif RunDirectory(path.parent).exists:
        path, name = path.parent, f"{name}_{path.name}"
    else:
        path = Path("evaluations") / path.name
    out = out or path / f"{name}.json"
    table = pd.DataFrame(content["members"]).drop(columns=["scores", "temperature_1"])
    with writing(f"--out {out}"):
        if out == path / f"{name}.json":
            path.mkdir(parents=True, exist_ok=True)
        write_atomically(out, json.dumps(content) + "\n")
        text = table.astype({"step": "Int64"}).to_csv(index=False, lineterminator="\n")
        write_atomically(out.with_suffix(".csv"), text)
    return out


def print_table(content: Mapping[str, Any]) -> None:
    """Prints the table of the command, scores in percent."""
    from rich.table import Table

    def text(row: Mapping[str, Any], keys: Sequence[str], signed: bool) -> str:
        mean, low, high = (math.nan if row[key] is None else row[key] for key in keys)
        return interval_text(Estimate(mean, low, high, (1,)), percent=True, signed=signed)

    table = Table(box=None, pad_edge=False)
    for heading in ("step", "member", "score", "gain over the base", "mu"):
        table.add_column(heading, justify="right")
    for row in content["members"]:
        table.add_row(
            "" if row["step"] is None else str(row["step"]),
            row["member"],
            text(row, ("mean", "low", "high"), signed=False),
            text(row, _GAIN, signed=True),
            "" if row["mu"] is None else f"{row['mu']:.1f}",
        )
    console = StandardOutput(highlight=False, soft_wrap=True)
    console.print(table)
    console.print(
        f"{len(content['types'])} tasks of eval seed {content['seed']}, greedy decoding; 95% "
        f"intervals over tasks (temperature 1, in the file: {sum(content['exact'])} scored "
        f"exactly, {content['attempts']} samples at each of the others)"
    )
