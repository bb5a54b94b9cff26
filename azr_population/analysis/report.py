"""The page of a run: one HTML file that needs neither network nor server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from markupsafe import Markup

from azr_population.analysis import figures, html, run_tables, task_cards
from azr_population.analysis.changes import measured_changes, tiles_of
from azr_population.analysis.children import GAPS, children_by_operator
from azr_population.analysis.family_tree import family_trees
from azr_population.analysis.metrics import SHARED, own_metrics
from azr_population.analysis.summary import summary
from azr_population.domains.domain import Domain
from azr_population.files import write_atomically, writing
from azr_population.printable import duration, shareable
from azr_population.reading.run_data import RunData
from azr_population.reading.tidy import BUDGET
from azr_population.runs.run_warnings import RunWarning

SECTIONS = {
    "a-task": "A task",
    "skill": "Solving",
    "proposing": "Proposing",
    "complexity": "Complexity",
    "space": "Problem space",
    "standing": "Who beats whom",
    "family-tree": "Family tree",
    "then-and-now": "Then and now",
    "hardest": "Hardest tasks",
    "completions": "Completions",
    "training": "Training",
    "consumption": "Budget",
    "settings": "Settings",
}


def write_report(run_dir: Path, out: Path | None = None) -> Path:
    """Writes the page of a run from its folder alone, to `out` or to `report.html` in the folder.

    A run that is incomplete or still going on is shown as far as it got, and the page says so.

    Raises UserError: there is no run in the folder, or the page cannot be written.
    """
    run = RunData(run_dir)
    run.directory.refuse_results_only()
    path = out or run.path / "report.html"
    content = _page(run)
    with writing(path, "; name another place by --out"):
        write_atomically(path, content)
    return path


def terminal_summary(run_dir: Path) -> dict[str, Any]:
    """For the end of the terminal's output: `wrong` (why there is no valid proposal, or nothing)
    and `changed`, the lines of the run's `summary`."""
    run = RunData(run_dir)
    end = summary(run, measured_changes(run, run.last))
    return {"wrong": end.wrong, "changed": end.lines}


def _page(run: RunData) -> str:
    table, steps, matches = run.table, run.lines, list(run.read("matches"))
    born = run.births
    name = str(run.value("population", "name") or run.path.resolve().name)
    planned = run.steps
    steps_of = [row["step"] for row in steps[-1:] or matches]
    last = max([*steps_of, *(birth.step for birth in born if not steps)], default=0)
    domain = run.domain
    changes = measured_changes(run, last)
    end = summary(run, changes)
    size = next(iter(domain.measures), None)
    children = children_by_operator(run)
    gaps = [key for key in GAPS if any(row[key] is not None for row in children)]
    tiles = tiles_of(table, changes, last, size)
    chosen = task_cards.examples(run.tasks, last, size.name if size else "")
    wrong = end.wrong
    state, status = _status(last if steps else 0, planned, run.directory.unreadable())
    opening_title, opening = _opening(run, chosen, domain)
    members = run.roles
    drawn, constant = figures.run_figures(
        table,
        [*SHARED, *own_metrics([run])],
        [birth.step for birth in born],
        max(planned or 0, last),
    )
    sections = SECTIONS if opening else {k: v for k, v in SECTIONS.items() if k != "a-task"}
    return html.page(
        "report.html.j2",
        title=" - ".join(dict.fromkeys((name, run.path.resolve().name))),
        sections=sections,
        state="failed" if wrong else state,
        status=f"{status} No valid proposal." if wrong else status,
        wrong=wrong,
        warnings=_warnings(run),
        facts=_facts(run, table, name),
        tiles=tiles,
        summary=end,
        members=members,
        opening_title=opening_title,
        opening=opening,
        figures=drawn,
        constant=constant,
        filled_cells=figures.filled_cells(run),
        last=last,
        match_ups=figures.match_ups(matches, len(born)),
        members_now=run_tables.members_now(steps, born),
        trees=family_trees(born, members, last),
        children=[{**row, "gaps": [row[key] for key in gaps]} for row in children],
        gaps=[GAPS[key] for key in gaps],
        born=born,
        pairs=[
            (task_cards.card(domain, early, "early"), task_cards.card(domain, late, "late"))
            for early, late in chosen.pairs
        ],
        solved=[task_cards.card(domain, task) for task in chosen.solved],
        unsolved=[task_cards.card(domain, task) for task in chosen.unsolved],
        completions=task_cards.completions(lambda: run.read("completions"), domain.marks),
        budget=list(BUDGET.values()),
        consumption=run_tables.consumption_rows(table),
        config=yaml.safe_dump(shareable(run.config), sort_keys=False, allow_unicode=True),
        environment=_environment(run.environment),
    )


def _environment(environment: Mapping[str, Any]) -> dict[str, str]:
    """The environment of the run as text, without its command and the kernel's name, which may say
    whose machine it is."""

    def plain(value: Any) -> str:
        if isinstance(value, Mapping):
            return ", ".join(f"{name} {version}" for name, version in value.items())
        return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

    left_out = ("command", "platform", "metrics")
    shown = shareable({key: value for key, value in environment.items() if key not in left_out})
    return {key: plain(value) for key, value in shown.items()}


def _warnings(run: RunData) -> list[str]:
    """The run's warnings, each kind once: that of the first member, and who else has it."""
    by_kind: dict[str, list[RunWarning]] = {}
    for warning in run.warnings:
        by_kind.setdefault(warning.kind, []).append(warning)
    return [
        f"{first.text}; also {', '.join(warning.member for warning in others)}"
        if others
        else first.text
        for first, *others in by_kind.values()
    ]


def _facts(run: RunData, table: pd.DataFrame, name: str) -> list[tuple[str, str]]:
    """Base, seed, population and time of the run, by title."""
    where = str(run.value("base", "path") or "").rstrip("/").rpartition("/")[2]
    model = str(run.value("actor_rollout_ref", "model", "path") or "?")
    base = str(run.value("base", "name") or "") or model.rstrip("/").rpartition("/")[2]
    took = float(table.loc[table["metric"] == "time/step", "value"].sum())
    written = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    return [
        ("base", f"{base} ({where})" if where and where != base else base),
        ("seed", "?" if run.seed is None else str(run.seed)),
        ("population", name),
        ("time", duration(took)),
        ("written", written),
    ]


def _opening(run: RunData, chosen: task_cards.Examples, domain: Domain) -> tuple[str, Markup]:
    """A task with its attempts: a late one of middle size, or any; failing that a proposal."""
    late = [*(late for _, late in chosen.pairs), *chosen.solved, *chosen.unsolved]
    some = [task for task in late if 0 < (task.get("solve_rate") or 0) < 1]
    if late:
        return "A task and its attempts", task_cards.card(domain, (some or late)[0], open=True)
    refused = [row for row in run.read("completions") if row.get("phase") == "propose"]
    if refused:
        return "What was proposed", task_cards.one_completion(refused[-1], domain.marks, open=True)
    return "", Markup()


def _status(done: int, steps: int | None, unreadable: Mapping[str, int]) -> tuple[str, str]:
    if steps and done >= steps:
        state, text = "finished", f"Finished: {done} of {steps} steps."
    else:
        state = "incomplete"
        text = f"Incomplete: {done} of {steps or '?'} steps; the run continues or was stopped."
    if unreadable:
        counts = ", ".join(f"{count} of {record}.jsonl" for record, count in unreadable.items())
        text += f" Damaged lines left out: {counts}."
    return state, text


def run_lines(paths: list[Path]) -> Iterator[str]:
    """Lines with each run's path, population, seed and steps, and whether its page is there."""
    width = max(len(str(path)) for path in paths)
    for path in paths:
        run = RunData(path)
        parts = [
            str(run.value("population", "name") or "?"),
            f"seed {run.seed}",
            f"{run.last} of {run.steps or '?'} steps",
            *(["report.html"] if (path / "report.html").is_file() else []),
        ]
        yield f"{path!s:<{width}}  {', '.join(parts)}"
