"""What recipes commit of a run: its settings, versions and the metrics of roles and of the run.

A run directory of 100 steps takes megabytes; its metrics without those of members take 15 KB. What
is computed from tasks, matches and lineage is among them.
"""

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from azr_population.files import write_atomically
from azr_population.runs.diagnostics.statistics import Series
from azr_population.runs.directory import RunDirectory
from azr_population.runs.records import ROLES, number, role_of

DERIVED = {
    **dict.fromkeys(("coverage", "coverage_per_task", "cells_per_step")),
    **dict.fromkeys(("descent_depth", "related_pairs", "ancestor_age", "founders")),
    "student_slope": "student/cross_play_slope",
    "teacher_slope": "teacher/cross_play_slope",
}
"""Measures that a line of a whole run lacks, and the key of those that belong to no role."""
_OF_THE_RUN = {
    "exam_disagreement": "eval/disagreement",
    "exam_spread": "eval/member_std",
    "exam_reliability": "eval/reliability",
    "fitness_skill": "eval/rating_corr",
    "student_slope": "student/cross_play_slope",
    "teacher_slope": "teacher/cross_play_slope",
}


def of_results(run: RunDirectory, name: str) -> dict[str, Series] | None:
    """Readings of a measure that a line of committed results has and a whole run's has not; else
    None."""
    if name in _OF_THE_RUN:
        series = _series(run, _OF_THE_RUN[name])
        return {"": series, "student": series} if series else {}
    if name in DERIVED or name in ("win_rate", "mu", "sigma"):
        found = {role: series for role in ROLES if (series := _series(run, f"{role}/{name}"))}
        order = ("student", "agent") if name == "win_rate" else ("teacher", "agent", "student")
        if first := next((role for role in order if role in found), None):
            found[""] = found[first]
        return found
    if name in ("entropy", "loss", "grad_norm"):  # the mean over all members, equally many a role
        roles = {role: series for role in ROLES if (series := _series(run, f"{role}/{name}"))}
        rows = zip(*roles.values(), strict=True)
        means = [(row[0][0], sum(value for _, value in row) / len(row)) for row in rows]
        return {**roles, "": means} if roles else {}
    return None


def _series(run: RunDirectory, key: str) -> Series:
    return [(line["step"], v) for line in run.metrics() if (v := number(line.get(key))) is not None]


def totals(run: RunDirectory) -> dict[str, Any]:
    """`consumption` of all members together."""
    lines = [line for line in run.metrics() if "total/updates" in line]
    members = run.config()["population"]
    count = (members.get("teachers", 0) + members.get("students", 0)) or 1
    sums = {
        before: sum(line[f"total/{name}"] for line in lines)
        for name, before in (
            ("generated_tokens", "tokens"),
            ("rollouts", "rollouts"),
            ("trained_tokens", "trained_tokens"),
            ("trained_samples", "trained_rows"),
            ("updates", "updates"),
        )
    }
    seconds = sum(line.get("time/step", 0.0) - line.get("time/eval", 0.0) for line in lines)
    steps = len(lines)
    return {
        **sums,
        **{"role": "", "members": count, "steps": steps, "seconds": seconds},
        "rows_per_step": sums["trained_rows"] / (count * steps) if steps else 0.0,
    }


def keep(
    run: RunDirectory, curves: Iterable[tuple[str, Mapping[str, Series]]], folder: Path
) -> None:
    """Writes settings and versions, without the machine's paths, and the metrics of the run and of
    its roles; `curves` are the readings of `DERIVED`. Numbers have six digits."""
    lines = {
        line["step"]: {
            key: value
            for key, value in line.items()
            if not role_of(key.partition("/")[0]) or key.partition("/")[0] in ROLES
        }
        for line in run.metrics()
    }
    for name, by_whom in curves:
        for of, points in by_whom.items():
            key = DERIVED[name] or (f"{of}/{name}" if of in ROLES else "")
            for step, value in points if key else ():
                lines.setdefault(step, {"step": step})[key] = value
    config = run.config()
    config["run"]["dir"] = ""
    if config["base"]["path"]:
        config["base"]["path"] = Path(config["base"]["path"]).name
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "config.yaml", yaml.safe_dump(config, sort_keys=False))
    wanted = ("python", "packages", "base", "commit")
    versions = {key: value for key, value in run.environment().items() if key in wanted}
    write_atomically(folder / "environment.json", json.dumps(versions, indent=1) + "\n")
    text = "".join(_line(lines[step]) for step in sorted(lines))
    # Without the time, equal results are equal bytes.
    (folder / "metrics.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def _line(line: Mapping[str, Any]) -> str:
    rounded = {k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in line.items()}
    return json.dumps(rounded, separators=(",", ":")) + "\n"
