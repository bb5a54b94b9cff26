"""The tasks of a run as rows of a data set: each once, with what became of all its attempts."""

import json
from pathlib import Path
from typing import Any

from azr_population.errors import UserError
from azr_population.printable import printable, shareable
from azr_population.runs.directory import RunDirectory

IDENTITY = ("type", "program", "inputs", "outputs", "message")
"""What makes two tasks the same."""
_OF_ONE_ROW = ("answers", "solved", "reasons", "copies", "solve_rate", "student")


def distinct_tasks(run: RunDirectory) -> list[dict[str, Any]]:
    """One row for each different task, in the order of its first proposal.

    Besides the task (`type`, `program`, `inputs`, `outputs`, `message`) and its measures: `id`,
    `step` and `teacher` of the first proposal, `proposed` (how often), `attempts`, `solved`, and
    `solve_rate` over all attempts in [0, 1], None without attempts.

    Raises UserError: the run has no tasks.
    """
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for record in run.tasks():
        key = tuple(repr(record.get(field)) for field in IDENTITY)
        solved = [verdict for verdict in record.get("solved") or [] if verdict is not None]
        row = rows.setdefault(
            key,
            {name: value for name, value in record.items() if name not in _OF_ONE_ROW}
            | {"id": f"task_{len(rows)}", "proposed": 0, "attempts": 0, "solved": 0},
        )
        row["proposed"] += 1
        row["attempts"] += len(solved)
        row["solved"] += sum(map(bool, solved))
    if not rows:
        raise UserError(f"{run.path} holds no valid task, so there is nothing to export")
    for row in rows.values():
        row["solve_rate"] = row["solved"] / row["attempts"] if row["attempts"] else None
    return list(rows.values())


def write_tasks(file: Path, rows: list[dict[str, Any]]) -> None:
    """Writes the rows as JSON, one a line."""
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def data_set_card(run: RunDirectory, rows: list[dict[str, Any]], file: str) -> str:
    """The README.md of the data set, with the header that the Hub reads; `file` holds the rows."""
    counts = {kind: sum(row["type"] == kind for row in rows) for kind in {r["type"] for r in rows}}
    listed = "\n".join(
        f"- {shareable(printable(kind))}: {count} tasks" for kind, count in sorted(counts.items())
    )
    environment = run.environment()
    base = shareable(environment.get("base"))
    return f"""\
---
task_categories: [text-generation]
tags: [self-play, code, reasoning, populora]
configs:
- config_name: default
  data_files: {file}
---

# Tasks of a self-play run

Proposed by teachers, executed and accepted by a sandboxed referee, attempted by students.

{listed}

`outputs` are what the programs return, as Python literals. `solve_rate` is the share of the
students' attempts that were right, over `attempts`; the students changed while they were
attempting. `step` and `teacher` are those of the first of `proposed` proposals.
{f"The base's weights: {base}." if base else ""}
The programs are model-written: run them in a sandbox.
"""
