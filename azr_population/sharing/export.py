"""A run's tasks in the formats of others."""

import json
import keyword
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from azr_population.errors import UserError
from azr_population.files import replacing_folder
from azr_population.printable import card_line, print_lines
from azr_population.reading.run_data import RunData

Row = dict[str, Any]
_OF_ONE_ROW = (
    "answers", "solved", "reasons", "rewards", "reward", "copies", "solve_rate", "student",
)  # fmt: skip

DATA_SET_CARD = """\
---
{{ card_data }}
---

# Tasks of a self-play run

Proposed by teachers, executed and accepted by a sandboxed referee, attempted by students.

{{ counts }}

`outputs` are what the programs return, as Python literals. `solve_rate` is the share of the
students' attempts that were right, over `attempts`; the students changed while they were
attempting. `step` and `teacher` are those of the first of `proposed` proposals.
{% if base %}The base's weights: {{ base }}.
{% endif %}
The programs are model-written: run them in a sandbox.
"""
PACKAGE = {
    "pyproject.toml": """\
[project]
name = "{module}"
version = "0.1.0"
description = "Tasks of a self-play run, judged by azr-population's referee."
requires-python = ">=3.11"
dependencies = ["verifiers>=0.4", "azr-population"]

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[tool.hatch.build.targets.wheel]
packages = ["{module}", "{module}_self_play"]
""",
    "{module}/__init__.py": '''\
"""Tasks of a self-play run; `tasks.jsonl` beside this file holds them."""

from pathlib import Path

from azr_population.sharing.verifiers_environment import SelfPlayTaskset


class Tasks(SelfPlayTaskset):
    FILE = Path(__file__).with_name("tasks.jsonl")


__all__ = ["Tasks"]
''',
    "{module}_self_play/__init__.py": '''\
"""A proposer's and a solver's seat: `vf-eval {module} --env.id {module}_self_play`."""

from azr_population.sharing.verifiers_environment import SelfPlayEnv

__all__ = ["SelfPlayEnv"]
''',
}
"""Path -> text of an installable package of tasks for `verifiers` (v1)."""


def export(path: str, format: str, out: Path) -> None:
    """Writes the folder whole or not at all; `format` is one of `FORMATS`. Raises UserError: the
    folder is there already, or the run holds nothing to export."""
    run = RunData(path)
    if out.exists():
        raise UserError(f"--out {out} is there already; name a new folder")
    out.parent.mkdir(parents=True, exist_ok=True)
    with replacing_folder(out) as folder:
        folder.mkdir()
        summary = FORMATS[format](run, distinct_tasks(run), folder, out.name)
    print_lines(f"{out}: {summary}")


def distinct_tasks(run: RunData) -> list[Row]:
    """One row for each different task, in the order of its first proposal.

    Besides the task (`type`, `program`, `inputs`, `outputs`, `message`) and its measures: `id`,
    `step` and `teacher` of the first proposal, `proposed` (how often), `attempts`, `solved`, and
    `solve_rate` over all attempts in [0, 1], None without attempts.

    Raises UserError: the run has no tasks.
    """
    rows: dict[tuple[str, ...], Row] = {}
    for record in run.tasks:
        task = ("type", "program", "inputs", "outputs", "message")
        key = tuple(repr(record.get(field)) for field in task)
        solved = [verdict for verdict in record.get("solved") or [] if verdict is not None]
        row = rows.setdefault(
            key,
            {name: value for name, value in record.items() if name not in _OF_ONE_ROW}
            | {"id": f"task_{len(rows)}", "proposed": 0, "attempts": 0, "solved": 0},
        )
        row["proposed"] += 1
        row["attempts"] += len(solved)
        row["solved"] += sum(map(bool, solved))
        row["solve_rate"] = row["solved"] / row["attempts"] if row["attempts"] else None
    if not rows:
        raise UserError(f"{run.path} holds no valid task, so there is nothing to export")
    return list(rows.values())


def _jsonl(run: RunData, rows: list[Row], folder: Path, name: str) -> str:
    from huggingface_hub import DatasetCard, DatasetCardData

    types = Counter(card_line(row["type"]) for row in rows)
    data = DatasetCardData(
        task_categories=["text-generation"],
        tags=["self-play", "code", "reasoning", "populora"],
        configs=[{"config_name": "default", "data_files": "tasks.jsonl"}],
    )
    DatasetCard.from_template(
        data,
        template_str=DATA_SET_CARD,
        counts="\n".join(f"- {type}: {count} tasks" for type, count in sorted(types.items())),
        base=card_line(run.environment.get("base") or ""),
    ).save(folder / "README.md")
    _write_lines(folder / "tasks.jsonl", rows)
    return f"{len(rows)} tasks"


def _verifiers(run: RunData, rows: list[Row], folder: Path, name: str) -> str:
    module = re.sub(r"[-. ]+", "_", name).lower()
    if not re.fullmatch(r"[a-z]\w*", module, re.ASCII) or keyword.iskeyword(module):
        raise UserError(f"--out {name}: a package needs a name of letters, digits and _")
    if module in sys.stdlib_module_names:
        raise UserError(f"--out {name}: {module} is a module of Python's own; take another name")
    for path, text in PACKAGE.items():
        file = folder / path.format(module=module)
        file.parent.mkdir(exist_ok=True)
        file.write_text(text.format(module=module), encoding="utf-8")
    _write_lines(folder / module / "tasks.jsonl", rows)
    return f"{len(rows)} tasks; pip install it, then: vf-eval {module}"


FORMATS: dict[str, Callable[[RunData, list[Row], Path, str], str]] = {
    "jsonl": _jsonl,
    "verifiers": _verifiers,
}
"""Functions that write a run's tasks into an empty folder, which will have this name, and say what
they wrote."""


def _write_lines(file: Path, rows: list[Row]) -> None:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
