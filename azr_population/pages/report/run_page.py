"""The page of a run: one HTML file that needs neither network nor server."""

import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from markupsafe import Markup

from azr_population.domains.domain import Domain
from azr_population.files import write_atomically, writing
from azr_population.pages.report import charts, run_tables, task_cards
from azr_population.pages.report.changed import changed
from azr_population.pages.report.completions import completions, one_completion
from azr_population.pages.report.coverage_map import coverage
from azr_population.pages.report.examples import Examples, examples
from azr_population.pages.report.family import family
from azr_population.pages.report.lines import Points
from azr_population.pages.report.refusals import invalid_reasons, nothing_valid
from azr_population.pages.report.summary import summary
from azr_population.pages.report.tiles import headline_tiles
from azr_population.pages.web.document import document
from azr_population.pages.web.still import without_constants
from azr_population.pages.web.templates import table
from azr_population.runs import RunDirectory, diagnostics
from azr_population.runs.diagnostics.match_ups import who_met_whom
from azr_population.runs.diagnostics.measures import size_of
from azr_population.runs.formatting import duration
from azr_population.runs.records import domain_of, number, step_of, steps_of

_SCRIPTS = (
    *("drawing", "layout", "saving", "lines", "tiles"),
    *("reasons", "family", "coverage", "match_ups", "main"),
)


def write_report(run_dir: Path, out: Path | None = None) -> Path:
    """Writes the page of a run from its folder alone, to `out` or to `report.html` in the folder.

    A run that is incomplete or still going on is shown as far as it got, and the page says so.

    Raises UserError: there is no run in the folder, or the page cannot be written.
    """
    run = RunDirectory(run_dir)
    run.refuse_curves()
    path = out or run.path / "report.html"
    page = _page(run, run.config())
    with writing(path, "; name another place by --out"):
        write_atomically(path, page)
    return path


def _page(run: RunDirectory, config: dict[str, Any]) -> str:
    metrics, matches = steps_of(run), list(run.matches())
    lineage = charts.lineage(run.lineage())
    members = charts.members_of(metrics)
    name = str(_at(config, "population", "name") or run.path.resolve().name)
    steps = number(_at(config, "run", "steps"))
    planned = int(steps) if steps else None
    # Without metrics, the other records still tell how far the run got.
    known = [step_of(row) or 0 for row in metrics[-1:] or (*matches, *lineage)]
    last = max(known, default=0)
    domain = domain_of(run)
    drawn = charts.line_charts(metrics, lineage, domain.measures)
    drawn += charts.diagnostic_charts(_series(run, members), members)
    lines, constant = without_constants(drawn)
    size = size_of(domain)
    tiles = headline_tiles(lines, last, diagnostics.changes(run, last), size)
    chosen = examples(run.tasks, last, size.name if size else "")
    state, status = _status(metrics, planned, run.unreadable())
    wrong = nothing_valid(metrics)
    opening_title, opening = _opening(run, chosen, domain)
    return document(
        "page.html",
        _SCRIPTS,
        {
            "steps": max(planned or 0, last),
            "last": last,
            "members": members,
            "tiles": tiles,
            "charts": lines,
            "constant": constant,
            "lineage": lineage,
            "family": family(lineage, members),
            "coverage": coverage(run),
            "reasons": invalid_reasons(metrics),
            "match_ups": who_met_whom(matches),
        },
        title=f"{name} - {run.path.resolve().name}",
        state="failed" if wrong else state,
        status=f"{status} No valid proposal." if wrong else status,
        wrong=wrong,
        facts=_facts(config, metrics, name),
        opening_title=opening_title,
        opening=opening,
        summary=summary(name, planned, metrics, matches, lineage, tiles, wrong),
        members=run_tables.member_table(metrics, lineage),
        replacements=run_tables.lineage_table(lineage),
        credit=run_tables.operator_table(
            diagnostics.operator_credit(run), diagnostics.ready_of(run)
        ),
        fairness=run_tables.fairness_table(diagnostics.consumption(run)),
        sampler=run_tables.sampler_table(metrics),
        pairs=task_cards.side_by_side(chosen, domain),
        solved=task_cards.hardest(chosen.solved, "Nobody solved a task yet.", domain),
        unsolved=task_cards.hardest(
            chosen.unsolved, "There is no task that nobody solved.", domain
        ),
        completions=completions(run.completions, domain.marks),
        config=(run.path / "config.yaml").read_text(encoding="utf-8", errors="replace"),
        environment=environment_table(run.environment()),
    )


def _facts(
    config: dict[str, Any], metrics: Sequence[dict[str, Any]], name: str
) -> list[tuple[str, str]]:
    """What was played on what, in a line."""
    where = str(_at(config, "base", "path") or "").rstrip("/").rpartition("/")[2]
    base = str(_at(config, "base", "name") or "") or str(
        _at(config, "actor_rollout_ref", "model", "path") or "?"
    )
    took = sum(number(step.get("seconds")) or 0.0 for step in metrics)
    written = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    return [
        ("base", f"{base} ({where})" if where and where != base else base),
        ("seed", str(_at(config, "seed") if _at(config, "seed") is not None else "?")),
        ("population", name),
        ("time", duration(took)),
        ("written", written),
    ]


def _opening(run: RunDirectory, chosen: Examples, domain: Domain) -> tuple[str, Markup]:
    """A task with its attempts: a late one of middle size, or any; failing that a proposal."""
    tasks = [*(late for _, late in chosen.pairs), *chosen.solved, *chosen.unsolved]
    some = [task for task in tasks if 0 < (number(task.get("solve_rate")) or 0) < 1]
    if tasks:
        return "A task and its attempts", task_cards.card(domain, (some or tasks)[0], open=True)
    refused = [row for row in run.completions() if row.get("phase") == "propose"]
    if refused:
        return "What was proposed", one_completion(refused[-1], domain.marks, open=True)
    return "", Markup()


def environment_table(environment: Mapping[str, Any]) -> Markup:
    """The environment of the run; a command is a line for a shell."""

    def plain(value: Any) -> str:
        if isinstance(value, list):
            return shlex.join(map(str, value))
        if isinstance(value, Mapping):
            return ", ".join(f"{name} {version}" for name, version in value.items())
        return str(value)

    rows = [[key, plain(value)] for key, value in environment.items()]
    return table(["environment", ""], rows) if rows else Markup()


def closing_words(run_dir: Path) -> list[str]:
    """What changed in a run, as its page says it, for the end of the terminal's output."""
    run = RunDirectory(run_dir)
    metrics = steps_of(run)
    last = metrics[-1]["step"] if metrics else 0
    if wrong := nothing_valid(metrics):
        return [wrong]
    domain = domain_of(run)
    lines, _ = without_constants(charts.line_charts(metrics, own=domain.measures))
    tiles = headline_tiles(lines, last, diagnostics.changes(run, last), size_of(domain))
    return changed([member["role"] for member in charts.members_of(metrics)], last, tiles)


def _series(run: RunDirectory, members: Sequence[dict[str, str]]) -> dict[tuple[str, str], Points]:
    points_of: dict[tuple[str, str], Points] = {}
    for key in charts.DRAWN:
        for role in ("", *dict.fromkeys(member["role"] for member in members)):
            points = diagnostics.series(run, key, role)
            points_of[key, role] = [(float(step), value) for step, value in points]
    return points_of


def _status(
    metrics: Sequence[dict[str, Any]], steps: int | None, unreadable: Mapping[str, int]
) -> tuple[str, str]:
    done = metrics[-1]["step"] if metrics else 0
    if steps and done >= steps:
        state, said = "finished", f"Finished: {done} of {steps} steps."
    else:
        state, said = (
            "incomplete",
            f"Incomplete: {done} of {steps or '?'} steps are recorded; the run goes on or was "
            "stopped.",
        )
    if unreadable:
        counts = ", ".join(f"{count} of {record}.jsonl" for record, count in unreadable.items())
        said += f" Damaged lines left out: {counts}."
    return state, said


def _at(config: Any, *keys: str) -> Any:
    for key in keys:
        config = config.get(key) if isinstance(config, dict) else None
    return config
