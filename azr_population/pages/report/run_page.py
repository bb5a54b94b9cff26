"""The page of a run: one HTML file that needs neither network nor server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from azr_population.errors import UserError
from azr_population.files import write_atomically
from azr_population.pages.report import charts, run_tables, task_cards
from azr_population.pages.report.changed import changed
from azr_population.pages.report.completions import completions
from azr_population.pages.report.coverage_map import coverage
from azr_population.pages.report.examples import examples
from azr_population.pages.report.family import family
from azr_population.pages.report.lines import Points
from azr_population.pages.report.refusals import invalid_reasons
from azr_population.pages.report.summary import summary
from azr_population.pages.report.tiles import headline_tiles
from azr_population.pages.web import sections
from azr_population.pages.web.document import document
from azr_population.runs import RunDirectory, diagnostics
from azr_population.runs.diagnostics.match_ups import who_met_whom
from azr_population.runs.records import domain_of, number, step_of, steps_of

_SCRIPTS = (
    "drawing.js",
    "layout.js",
    "saving.js",
    "lines.js",
    "tiles.js",
    "reasons.js",
    "family.js",
    "coverage.js",
    "match_ups.js",
    "main.js",
)


def write_report(run_dir: Path, out: Path | None = None) -> Path:
    """Writes the page of a run from its folder alone, to `out` or to `report.html` in the folder.

    A run that is incomplete or still going on is shown as far as it got, and the page says so.

    Raises:
        UserError: there is no run in the folder, or the page cannot be written.
    """
    run = RunDirectory(run_dir)
    run.refuse_curves()
    config = run.config()
    metrics = steps_of(run)
    matches = list(run.matches())
    lineage = charts.lineage(run.lineage())
    members = charts.members_of(metrics)
    name = str(_at(config, "population", "name") or run.path.resolve().name)
    steps = number(_at(config, "run", "steps"))
    planned = int(steps) if steps else None
    # Without metrics, the other records still tell how far the run got.
    known = [step_of(row) or 0 for row in metrics[-1:] or (*matches, *lineage)]
    last = max(known, default=0)
    domain = domain_of(run)
    lines = charts.line_charts(metrics, lineage, domain.measures) + charts.diagnostic_charts(
        _series(run, members), members
    )
    tiles = headline_tiles(lines, last, diagnostics.changes(run, last))
    chosen = examples(run.tasks, last)
    data = {
        "steps": max(planned or 0, last),
        "last": last,
        "members": members,
        "tiles": tiles,
        "charts": lines,
        "lineage": lineage,
        "family": family(lineage, members),
        "coverage": coverage(run),
        "reasons": invalid_reasons(metrics),
        "match_ups": who_met_whom(matches),
    }
    page = document(
        "page.html",
        _SCRIPTS,
        data,
        title=f"{name} - {run.path.resolve().name}",
        raw={
            "status": _status(metrics, planned, run.unreadable()),
            "summary": sections.paragraphs(
                summary(name, planned, metrics, matches, lineage, tiles)
            ),
            "members": run_tables.member_table(metrics, lineage),
            "replacements": run_tables.lineage_table(lineage),
            "credit": run_tables.operator_table(
                diagnostics.operator_credit(run), diagnostics.ready_of(run)
            ),
            "fairness": run_tables.fairness_table(diagnostics.consumption(run)),
            "sampler": run_tables.sampler_table(metrics),
            "pairs": task_cards.side_by_side(chosen, domain),
            "solved": task_cards.hardest(chosen.solved, "Nobody solved a task yet.", domain),
            "unsolved": task_cards.hardest(
                chosen.unsolved, "There is no task that nobody solved.", domain
            ),
            "completions": completions(run.completions, domain.marks),
            "settings": sections.settings(
                (run.path / "config.yaml").read_text(encoding="utf-8", errors="replace"),
                run.environment(),
            ),
        },
    )
    path = out or run.path / "report.html"
    try:
        write_atomically(path, page)
    except OSError as error:
        raise UserError(
            f"{path} cannot be written: {error.strerror}; name another place by --out"
        ) from error
    return path


def closing_words(run_dir: Path) -> list[str]:
    """What changed in a run, as its page says it, for the end of the terminal's output."""
    run = RunDirectory(run_dir)
    metrics = steps_of(run)
    last = metrics[-1]["step"] if metrics else 0
    tiles = headline_tiles(charts.line_charts(metrics), last, diagnostics.changes(run, last))
    return changed([member["role"] for member in charts.members_of(metrics)], last, tiles)


def _series(run: RunDirectory, members: Sequence[dict[str, str]]) -> dict[tuple[str, str], Points]:
    points_of: dict[tuple[str, str], Points] = {}
    for key in charts.DRAWN:
        for role in ("", *dict.fromkeys(member["role"] for member in members)):
            try:
                points = diagnostics.series(run, key, role)
            except UserError:
                continue  # pyribs is not installed; the map's place says so
            points_of[key, role] = [(float(step), value) for step, value in points]
    return points_of


def _status(
    metrics: Sequence[dict[str, Any]], steps: int | None, unreadable: Mapping[str, int]
) -> str:
    done = metrics[-1]["step"] if metrics else 0
    when = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    if steps and done >= steps:
        said, state = f"Finished: {done} of {steps} steps.", "finished"
    else:
        said, state = (
            f"Incomplete: {done} of {steps or '?'} steps are recorded; the run goes on or was "
            "stopped.",
            "incomplete",
        )
    if unreadable:
        counts = ", ".join(f"{count} of {record}.jsonl" for record, count in unreadable.items())
        said += f" Damaged lines left out: {counts}."
    return f'<p class="status {state}"><b>{said}</b> <span>Written {when}.</span></p>'


def _at(config: Any, *keys: str) -> Any:
    for key in keys:
        config = config.get(key) if isinstance(config, dict) else None
    return config
