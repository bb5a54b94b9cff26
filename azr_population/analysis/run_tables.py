"""The tables of a run's page: members, replacements, credit of operators, consumption."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from markupsafe import Markup

from azr_population.analysis.frame import BUDGET
from azr_population.analysis.html import paragraph, table
from azr_population.printable import duration
from azr_population.runs.records import (
    Record,
    by_number,
    conservative,
    metrics_of_members,
    rating,
    role_of,
    show,
)


def member_roles(frame: pd.DataFrame) -> dict[str, str]:
    """Every member that occurs, in the order recorded, and its role."""
    by_member = frame.dropna(subset=["member"]).drop_duplicates("member")
    return dict(zip(by_member["member"], by_member["role"], strict=True))


def member_table(metrics: Sequence[Record], lineage: Sequence[Record]) -> Markup:
    """The members now. Those born at the end of the last step are marked: they have not played."""
    if not metrics:
        return paragraph("No step is recorded yet.", "empty")
    origin = {child["child"]: child["operator"] for child in lineage}
    newborn = {str(child["child"]) for child in lineage if child["step"] == metrics[-1]["step"]}
    rows = []
    for name, member in sorted(metrics_of_members(metrics[-1]).items(), key=_rank):
        # Members are replaced at the end of a step: its results are those of the replaced member.
        played = {} if name in newborn else member
        cells = [
            rating(member),
            show(conservative(member), "{:.1f}"),
            member.get("generation", 0),
            origin.get(name, "start"),
            show(played.get("reward"), "{:+.2f}"),
            show(played.get("valid_frac"), "{:.0%}"),
            show(played.get("solve_rate"), "{:.0%}"),
        ]
        rows.append([_named(name, role_of(name), name in newborn), *cells])
    heads = "member|mu ± sigma|mu - 3 sigma|gen.|origin|reward|valid|solved"
    unplayed = paragraph(
        "Unplayed: born at the end of the last step. Its weights are what the operator made, its "
        "rating is inherited, and it has no results yet."
    )
    return table(heads.split("|"), rows, "number") + (unplayed if newborn else "")


def lineage_table(born: Sequence[Record]) -> Markup:
    """Every replacement, the latest first; nothing if there is none, as the family tree says so."""
    columns = ("step", "child", "generation", "operator")
    rows = [
        [
            *(child[key] for key in columns),
            ", ".join(child["parents"]),
            child["options"],
            show(child["victim"], "{:.2f}"),
        ]
        for child in reversed(born)
    ]
    if not rows:
        return Markup()
    heads = [*columns, "parents", "options", "fitness of the replaced"]
    return _folded(f"All {len(rows)} replacements", table(heads, rows))


def operator_credit(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """A record per operator, the most used first, as the run noted it at its last replacement:
    `operator`, and what `evolution/<operator>/...` has."""
    rows = frame[frame["metric"].str.match(r"evolution/[^/]+/")]
    rows = rows[rows["step"] == rows["step"].max()]
    credit: dict[str, dict[str, Any]] = {}
    for metric, value in zip(rows["metric"], rows["value"], strict=True):
        _, operator, key = metric.split("/", 2)
        credit.setdefault(operator, {"operator": operator})[key] = value
    return sorted(credit.values(), key=lambda row: (-row.get("born", 0.0), row["operator"]))


def operator_table(credit: Sequence[Record], grace_period: float) -> Markup:
    """What became of the children of each operator that had one judged; the others in a sentence.
    Nothing if no child was born."""
    if not credit:
        return Markup()
    title = Markup("<h3>Credit of the operators</h3>")
    judged, passed, born = (
        sum(int(operator.get(key) or 0) for operator in credit)
        for key in ("judged", "passed", "born")
    )
    if not judged:
        many = "children" if born > 1 else "child"
        return title + paragraph(
            f"No operator has earned credit yet: {born} {many} of {len(credit)} "
            f"{'operators' if len(credit) > 1 else 'operator'}, and none has met a replacement at "
            f"which it was old enough to be replaced ({grace_period:g} steps, "
            "evolution.grace_period).",
            "empty",
        )
    rows, waiting = [], []
    for operator in credit:
        if not operator.get("judged"):
            waiting.append(f"{operator.get('operator', '?')} ({operator.get('born', 0):g})")
            continue
        cells = [
            show(operator.get("born"), "{:g}", "0"),
            show(operator.get("alive"), "{:g}", "0"),
            show(operator.get("mean_life"), "{:.1f}"),
            f"{operator.get('passed', 0):g} of {operator.get('judged', 0):g}",
            show(operator.get("mean_rank"), "{:.0%}"),
            show(operator.get("gain_over_victim"), "{:+.2f}"),
            show(operator.get("gain_over_parent"), "{:+.2f}"),
        ]
        rows.append([operator.get("operator", "?"), *cells])
    heads = (
        "operator|children|alive|mean life, steps|passed|stood above"
        "|gain over the replaced|gain over the parent"
    )
    how = (
        f"A child is judged once, at the first replacement at which it is old enough to be "
        f"replaced ({grace_period:g} steps): did it survive, what share of the others did it stand "
        "above, "
        "and by how much was its fitness above that of the member whose place it took (when that "
        f"was replaced) and of its first parent? So far {judged} were judged and {passed} passed."
    )
    if waiting:
        how += f" No child judged yet: {', '.join(waiting)}."
    return title + table(heads.split("|"), rows, "number") + paragraph(how)


def consumption(frame: pd.DataFrame) -> pd.DataFrame:
    """What each member consumed, a row each by number: `role`, `steps`, the sums of `BUDGET`, and
    `seconds`, a share of those of all steps (without evals) by tokens generated and trained on."""
    rows = frame[frame["member"].notna()]
    steps = rows.groupby("member")["step"].nunique()
    sums = rows[rows["metric"].isin(BUDGET)].pivot_table("value", "member", "metric", "sum")
    used = sums.reindex(index=sorted(steps.index, key=by_number), columns=list(BUDGET)).fillna(0.0)
    tokens = used["generated_tokens"] + used["trained_tokens"]
    seconds = frame.groupby("metric")["value"].sum().get(["time/step", "time/eval"])
    total_seconds = (
        0.0 if seconds is None else max(0.0, seconds["time/step"] - seconds["time/eval"])
    )
    share = tokens / tokens.sum() if tokens.sum() else 0.0 * tokens
    return used.assign(role=used.index.map(role_of), steps=steps, seconds=total_seconds * share)


def fairness_table(frame: pd.DataFrame) -> Markup:
    """What members consumed: the mean of each role, then every member."""
    used = consumption(frame)
    if not len(used):
        return paragraph("No member's consumption is recorded.", "empty")
    heads = ["", "samples trained on, per member and step", *BUDGET.values(), "seconds"]
    sums = [*BUDGET, "seconds"]
    rows = [
        [
            _named(f"{role}, mean of {len(part)}", str(role)),
            *_cells(part[sums].mean(), float(part["trained_samples"].sum() / part["steps"].sum())),
        ]
        for role, part in used.groupby("role", sort=False)
    ]
    each = [
        [_named(name, row["role"]), *_cells(row, row["trained_samples"] / row["steps"])]
        for name, row in used.iterrows()
    ]
    per_step = float(used["trained_samples"].sum() / used["steps"].sum())
    rows.append(["all together", *_cells(used[sums].sum(), per_step)])
    every = table(["member", *heads[1:]], each, "number")
    return (
        table(heads, rows, "number", "consumption")
        + (_folded(f"Each of the {len(each)} members", every) if len(each) > 1 else "")
        + paragraph(
            "Evals are not counted in the seconds. All members run in one batch and cannot be "
            "timed one by one: a member's seconds are its share of the batch by tokens generated "
            "and trained on."
        )
    )


def _cells(row: pd.Series, per_step: float) -> list[str]:
    counts = [f"{row[name]:,.0f}" for name in BUDGET]
    return [f"{per_step:,.1f}", *counts, duration(row["seconds"])]


_SAMPLER = (
    ("engine/mismatch_kl", "KL, nats a token", "{:.1e}"),
    ("engine/ess", "effective sample size", "{:.1%}"),
    ("engine/is_clip_frac", "tokens clipped", "{:.2%}"),
)


def sampler_table(frame: pd.DataFrame) -> Markup:
    """How far each member's sampler was from its learner, means over steps, the worst KL beside
    them; nothing where updates had no importance weights."""
    names = [name for name, _, _ in _SAMPLER]
    recorded = frame[frame["member"].notna() & frame["metric"].isin(names)]
    if not len(recorded):
        return Markup()
    statistics = recorded.pivot_table("value", "member", "metric", ["mean", "max"])
    rows = [
        [
            _named(name, role_of(name)),
            *(show(statistics.loc[name].get(("mean", key)), form) for key, _, form in _SAMPLER),
            show(statistics.loc[name].get(("max", names[0])), "{:.1e}"),
        ]
        for name in sorted(statistics.index, key=by_number)
    ]
    heads = ["member", *(words for _, words, _ in _SAMPLER), "largest KL of a step"]
    how = (
        "What sampled rounds otherwise than what learned. Each token's loss was weighted by "
        "learner / sampler, at most engine.importance_sampling_cap "
        "(population.importance_sampling_cap inside AZR); "
        "the effective sample size is the share of the tokens that such weights leave."
    )
    return Markup("<h3>Sampler and learner</h3>") + table(heads, rows, "number") + paragraph(how)


def _named(name: str, role: Any, unplayed: bool = False) -> Markup:
    mark = Markup(' <span class="unplayed">unplayed</span>') if unplayed else ""
    return Markup('<i class="dot {}"></i>{}{}').format(role, name, mark)


def _folded(summary: str, inside: Markup) -> Markup:
    return Markup("<details><summary>{}</summary>{}</details>").format(summary, inside)


def _rank(item: tuple[str, Record]) -> tuple[int, float, tuple[str, int]]:
    """Teachers before students, the highest mu - 3 sigma first."""
    name, member = item
    place = {"teacher": 0, "student": 1}.get(role_of(name), 2)
    rating = conservative(member)
    return (place, -rating if rating is not None else 0.0, by_number(name))
