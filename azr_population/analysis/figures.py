"""The figures of a run's page, from its tidy table and its tasks and matches."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd
from markupsafe import Markup

from azr_population.analysis import charts
from azr_population.analysis.derived import placed_tasks
from azr_population.analysis.html import cut, embed, figure
from azr_population.analysis.metrics import metrics_for
from azr_population.domains.domain import Domain
from azr_population.domains.metric import Metric
from azr_population.runs import RunDirectory
from azr_population.runs.records import Record, by_number, domain_of

_EVALS = {"eval/greedy": "mean", "eval/best": "best member", "eval/worst": "weakest member"}
_OTHER_ROLE = {"solve_rate": "teacher", "mu": "student"}
"""Not drawn: a teacher's solve rate is that of its students, and the students' mean mu is 25."""
_UNDRAWN = {"time/step", *_EVALS}
"""Shown elsewhere."""
BARS, REASONS = 50, 7
"""Most bars over steps, and most reasons that are distinguished."""


class ReportFigures:
    """The charts of each section of the page, and what does not move in a sentence each."""

    def __init__(self, table: pd.DataFrame, events: Sequence[int], steps: int) -> None:
        self._table, self._events, self._steps = table, events, steps
        self.figures: dict[str, list[Markup]] = {}
        self.constant: dict[str, list[str]] = {}

    def add_metrics(self, domain: Domain) -> None:
        """A chart for each metric that is drawn and recorded; the evals share one."""
        rows = self._table[self._table["metric"].isin(_EVALS) & self._table["role"].isna()]
        evals = rows.assign(series=rows["metric"].map(_EVALS), member=None)
        evals = pd.concat([evals[evals["series"] == name] for name in _EVALS.values()])
        best = "best member: larger populations get lucky more often" if len(rows) else ""
        self._add(
            "skill",
            "Held-out tasks",
            f"greedy; {best}",
            evals,
            percent=True,
            dashes=True,
            colours=dict.fromkeys(_EVALS.values(), charts.ROLES["student"]),
        )
        for metric in metrics_for([domain]):
            if metric.section and metric.name not in _UNDRAWN:
                self._add_metric(metric)

    def _add_metric(self, metric: Metric) -> None:
        rows = self._table[self._table["metric"] == metric.name]
        if metric.name in _OTHER_ROLE:
            other = (rows["role"] == _OTHER_ROLE[metric.name]) & rows["member"].isna()
            rows = rows[~other] if rows["role"].nunique() > 1 else rows
        if metric.name == "solve_rate" and rows["role"].nunique() > 1:
            rows = rows[rows["role"] != "teacher"]
        alone = rows.groupby("role")["member"].transform("nunique") == 1
        rows = rows[~(alone & rows["member"].notna())]
        series = rows["role"].fillna("mean")
        note = metric.about
        if metric.name == "mu":
            note = "TrueSkill; the students' mean is 25 by definition, so a teacher's is relative"
        self._add(
            metric.section,
            metric.title,
            note,
            self._in_pieces(rows.assign(series=series)),
            percent=metric.percent,
            unit=metric.unit if not metric.percent else "",
            smooth=not metric.is_eval and metric.reduce != "last",  # coverage only grows
            colours={**charts.ROLES, "mean": charts.INK},
        )
        types = self._table[self._table["metric"].str.fullmatch(rf"type/[^/]+/{metric.name}")]
        if metric.name in ("solve_rate", "valid_frac") and len(types):
            types = types.assign(series=types["metric"].str.split("/").str[1], member=None)
            title = f"{metric.title} by task type"
            colours = dict(zip(types["series"].unique(), charts.CATEGORIES[6:2:-1], strict=False))
            self._add(metric.section, title, "", types, percent=True, smooth=True, colours=colours)

    def _in_pieces(self, rows: pd.DataFrame) -> pd.DataFrame:
        """A member's line is broken where the individual in its slot was replaced."""
        generation = self._table[self._table["metric"] == "generation"]
        pieces = generation.rename(columns={"value": "piece"})[["step", "member", "piece"]]
        if not len(pieces):
            return rows
        # At its birth a child's generation is recorded, and the results are the replaced one's.
        pieces = pieces.assign(step=pieces["step"] + 1)
        joined = rows.merge(pieces.dropna(subset=["member"]), on=["step", "member"], how="left")
        return joined.assign(piece=joined["piece"].fillna(0))

    def add_refusals(self) -> None:
        """Why proposals were refused, as shares of all proposals."""
        rows = self._table[self._table["metric"].str.startswith("reason/")]
        if not len(rows):
            return
        rows = rows.assign(reason=rows["metric"].str.removeprefix("reason/"))
        steps = rows["step"].drop_duplicates().sort_values()
        stride = math.ceil(len(steps) / BARS) or 1
        bar = dict(zip(steps, range(len(steps)), strict=True))
        rows = rows.assign(bar=rows["step"].map(bar) // stride)
        common = rows[rows["reason"] != "ok"].groupby("reason")["value"].sum()
        names = list(common[common > 0].sort_values(ascending=False).index)
        if len(names) > REASONS:
            names = names[: REASONS - 1]
            other = ~rows["reason"].isin([*names, "ok"])
            rows.loc[other, "reason"] = "other"
            names.append("other")
        edges = rows.groupby("bar")["step"].agg(["min", "max"])
        proposed = rows.groupby("bar")["value"].sum()
        counts = rows.groupby(["bar", "reason"])["value"].sum()
        shares = [
            (edges["min"][at], edges["max"][at], name.replace("_", " "), share)
            for at in edges.index
            for name in names
            if (share := counts.get((at, name), 0.0) / (proposed[at] or 1.0))
        ]
        if shares:
            frame = pd.DataFrame(shares, columns=["first", "last", "series", "value"])
            order = [name.replace("_", " ") for name in names]
            frame = pd.concat([frame[frame["series"] == name] for name in order])
            self._append(
                "proposing",
                embed(charts.stacked(frame), "Refused proposals by reason", "share of all", "wide"),
            )

    def add_times(self) -> None:
        """Seconds of a step by phase, without those of less than 1%."""
        rows = self._table[
            self._table["metric"].str.startswith("time/") & (self._table["metric"] != "time/step")
        ]
        totals = rows.groupby("metric")["value"].sum().sort_values(ascending=False)
        phases = totals[totals >= 0.01 * totals.sum()].index[:6]
        rows = pd.concat([rows[rows["metric"] == name] for name in phases]) if len(phases) else rows
        rows = rows.assign(series=rows["metric"].str.removeprefix("time/"), member=None)
        note = "by phase; those of less than 1% are left out"
        self._add("training", "Seconds per step", note, rows, unit="s", dashes=True)

    def add_hyperparameters(self) -> None:
        """Where they evolve: each member's over time."""
        titles = {"lr": "Learning rates", "weight_decay": "Weight decays"}
        for name, title in {**titles, "temperature": "Sampling temperatures"}.items():
            rows = self._table[(self._table["metric"] == name) & self._table["member"].notna()]
            rows = rows[rows["value"] > 0]
            spread = rows.groupby(["role", "step"])["value"].transform("nunique")
            rows = rows[spread.groupby(rows["role"]).transform("max") > 1]
            if rows.empty:
                continue
            stride = math.ceil(rows["step"].nunique() / BARS)
            rows = rows[rows["step"] % stride == 0].assign(series=rows["role"])
            chart = charts.scatter(rows[["step", "series", "member", "value"]])
            self._append("training", embed(chart, title, "of each member; they evolve"))

    def _add(self, section: str, title: str, note: str, rows: pd.DataFrame, **how: Any) -> None:
        if not len(rows):
            return
        if rows["value"].nunique() == 1:
            kind = "percent" if how.get("percent") else "number"
            value = figure(float(rows["value"].iloc[0]), kind)
            self.constant.setdefault(section, []).append(f"{title}: {value} throughout.")
            return
        columns = [name for name in ("step", "series", "member", "value", "piece") if name in rows]
        how.setdefault("colours", None)
        chart = charts.curves(rows[columns], events=self._events, steps=self._steps, **how)
        self._append(section, embed(chart, title, note))

    def _append(self, section: str, figure: Markup) -> None:
        self.figures.setdefault(section, []).append(figure)


def match_ups(matches: Iterable[Record], replaced: int) -> Markup:
    """The solve rate of each student at each teacher's tasks, the mean over its valid tasks;
    nothing without matches."""
    rows = [
        (teacher, student, match.get("valid") or 0.0, match.get("solve_rate"))
        for match in matches
        if (teacher := match.get("teacher")) != (student := match.get("student"))
        if teacher and student
    ]
    frame = pd.DataFrame(rows, columns=["row", "column", "tasks", "rate"])
    frame["rate"] = frame["rate"].astype(float)
    if not len(frame):
        return Markup()
    frame = frame.assign(solved=frame["tasks"] * frame["rate"], count=1)
    frame["tasks"] = frame["tasks"].where(frame["rate"].notna(), 0.0)
    sides = {side: sorted(frame[side].unique(), key=by_number) for side in ("row", "column")}
    both = pd.concat([frame, frame.assign(row="all")])
    both = pd.concat([both, both.assign(column="all")])
    sums = both.groupby(["row", "column"])[["count", "tasks", "solved"]].sum()
    sums = sums.assign(value=sums["solved"] / sums["tasks"].where(sums["tasks"] > 0))
    order = pd.MultiIndex.from_product([[*sides["row"], "all"], [*sides["column"], "all"]])
    all_matches = (
        sums.reindex(order).dropna(subset=["count"]).rename_axis(["row", "column"]).reset_index()
    )
    for side in ("row", "column"):
        all_matches[side] = all_matches[side].str.replace(r"^(\w)\w*_(\d+)$", _short, regex=True)
    slots = " T2 is a slot: games of replaced members are included." if replaced else ""
    note = (
        "Share of a teacher's valid tasks (row) that a student (column) solved, and their matches."
    )
    chart = charts.heatmap(all_matches[["row", "column", "value", "count"]], counts="matches")
    return embed(chart, "Match-ups", note + slots)


def _short(match: Any) -> str:
    return f"{match[1].upper()}{match[2]}"


def problem_space(run: RunDirectory, last: int) -> dict[str, Any]:
    """`missing` (why there is no map), `text`, `last` and the `figures`, one for each panel."""
    space, tasks = domain_of(run).space, placed_tasks(run)
    if space is None:
        return {"missing": "This task.domain has no problem space.", "figures": []}
    if not len(tasks):
        return {"missing": "No task was placed in the problem space.", "figures": []}
    counts = tasks["cell"].value_counts()
    first = tasks.drop_duplicates("cell").set_index("cell")
    rows = []
    for cell, values in enumerate(space.unscale(space.archive)):
        bounds = {
            descriptor.name: (descriptor.low, descriptor.high) for descriptor in space.descriptors
        }
        centroid = dict(zip(bounds, map(float, values), strict=True))
        scaled = {k: (centroid[k] - low) / (high - low) for k, (low, high) in bounds.items()}
        panel = max(range(len(space.panels)), key=lambda at: centroid[space.panels[at]])
        met: tuple[Any, ...] = (None, None, 0, "", "")
        if cell in first.index:
            step, member, program = first.loc[cell, ["step", "teacher", "program"]]
            words = space.words(centroid)
            met = (step, member or None, int(counts[cell]), words, cut(program)[:300])
        rows.append((panel, *(scaled[name] for name in space.axes), *met))
    columns = ["panel", "x", "y", "step", "member", "tasks", "kind", "program"]
    frame = pd.DataFrame(rows, columns=columns)
    last = max(last, int(frame["step"].max()))
    low, high = (str(end) for end in space.ends)
    panels = []
    for at, name in enumerate(space.panels):
        part = frame[frame["panel"] == at].drop(columns="panel")
        chart = charts.problem_space(part, last, space.labels, (low, high))
        title = f"{name}: {int((part['tasks'] > 0).sum())} of {len(part)}".replace("_", " ")
        panels.append(embed(chart, title))
    text = f"{len(tasks):,} valid tasks fill {len(first):,} of {len(frame):,} cells."
    return {"missing": "", "text": text, "last": last, "figures": panels}
