"""The report of a run: one HTML file that needs nothing else, neither network nor server."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from string import Template
from typing import Any

from azr_population.reports import figures, sections
from azr_population.reports.examples import examples
from azr_population.reports.lines import number
from azr_population.reports.summary import summary
from azr_population.runs.directory import RunDirectory, write_atomically

_WEB = Path(__file__).with_name("web")
_SCRIPTS = ("drawing.js", "lines.js", "lineage.js", "match_ups.js", "main.js")


def write_report(run_dir: Path) -> Path:
    """Writes `report.html` into a run's folder from nothing but what lies there.

    An incomplete run, or one that still goes on, is shown as far as it got, and the page says so.

    Raises:
        UserError: there is no run in the folder.
    """
    run = RunDirectory(run_dir)
    config = run.config()
    metrics = _by_step(run.metrics())
    matches = list(run.matches())
    lineage = figures.lineage(run.lineage())
    name = str(_at(config, "population", "name") or run.path.resolve().name)
    steps = number(_at(config, "run", "steps"))
    last = metrics[-1]["step"] if metrics else 0
    data = {
        "steps": max(int(steps or 0), last),
        "last": last,
        "members": figures.members_of(metrics),
        "charts": figures.charts(metrics),
        "lineage": lineage,
        "match_ups": figures.match_ups(matches),
    }
    script = "\n".join((_WEB / file).read_text(encoding="utf-8") for file in _SCRIPTS)
    style = (_WEB / "page.css").read_text(encoding="utf-8")
    page = Template((_WEB / "page.html").read_text(encoding="utf-8")).substitute(
        title=sections.text(f"{name} - {run.path.resolve().name}"),
        policy=_policy(script, style),
        style=style,
        script=script,
        status=sections.text(_status(metrics, int(steps) if steps else None)),
        summary=sections.paragraphs(
            summary(name, int(steps) if steps else None, metrics, matches, lineage)
        ),
        members=sections.member_table(metrics, lineage),
        replacements=sections.lineage_table(lineage),
        tasks=sections.task_cards(examples(run.tasks())),
        settings=sections.settings(
            (run.path / "config.yaml").read_text(encoding="utf-8", errors="replace"),
            run.environment(),
        ),
        data=embedded(data),
    )
    path = run.path / "report.html"
    write_atomically(path, page)
    return path


def embedded(data: Any) -> str:
    """JSON that can stand inside a script element: no character in it can end the element."""
    text = json.dumps(data, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _policy(script: str, style: str) -> str:
    """Only these very texts may run or style: what slipped through escaping stays inert."""
    hashes = [
        base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
        for text in (script, style)
    ]
    return (
        f"default-src 'none'; script-src 'sha256-{hashes[0]}'; style-src 'sha256-{hashes[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _status(metrics: Sequence[dict[str, Any]], steps: int | None) -> str:
    done = metrics[-1]["step"] if metrics else 0
    when = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    if steps and done >= steps:
        return f"Finished: {done} of {steps} steps. Written {when}."
    return (
        f"Incomplete: {done} of {steps or '?'} steps are recorded; the run goes on or was stopped. "
        f"Written {when}."
    )


def _by_step(rows: Any) -> list[dict[str, Any]]:
    """Metrics in the order of steps; of two records of a step the later counts."""
    steps = {int(row["step"]): row for row in rows if number(row.get("step")) is not None}
    return [{**steps[step], "step": step} for step in sorted(steps)]


def _at(config: Any, *keys: str) -> Any:
    for key in keys:
        config = config.get(key) if isinstance(config, dict) else None
    return config
