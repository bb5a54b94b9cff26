"""The tables of a run's page: members, replacements, credit of operators, consumption."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from markupsafe import Markup

from azr_population.analysis.html import table
from azr_population.runs.formatting import duration, rating, show
from azr_population.runs.records import Record, by_number, conservative, mean, number, section


def member_roles(frame: pd.DataFrame) -> dict[str, str]:
    """Every member that occurs, in the order recorded, and its role."""
    known = frame.dropna(subset=["member"]).drop_duplicates("member")
    return dict(zip(known["member"], known["role"], strict=True))


def member_table(metrics: Sequence[Record], lineage: Sequence[Record]) -> Markup:
    """The members now. Those born at the end of the last step are marked: they have not played."""
    if not metrics:
        return _empty("No step is recorded yet.")
    origin = {child["child"]: child["operator"] for child in lineage}
    newborn = {str(child["child"]) for child in lineage if child["step"] == metrics[-1]["step"]}
    rows = []
    for name, member in sorted(section(metrics[-1], "members").items(), key=_rank):
        # Members are replaced at the end of a step: its results are those of the replaced member.
        played = {} if name in newborn else member
        cells = [
            rating(member),
            show(conservative(member), "{:.1f}"),
            member.get("generation", 0),
            origin.get(name, "start"),
            show(played.get("reward"), "{:+.2f}"),
            show(played.get("validity"), "{:.0%}"),
            show(played.get("solve_rate"), "{:.0%}"),
        ]
        rows.append([_named(name, member.get("role", ""), name in newborn), *cells])
    heads = "member|mu ± sigma|mu - 3 sigma|gen.|origin|reward|valid|solved"
    unplayed = _note(
        "Unplayed: born at the end of the last step. Its weights are what the operator made, its "
        "rating is inherited, and it has no results yet."
    )
    return table(heads.split("|"), rows, "number") + (unplayed if newborn else "")


def lineage_table(lineage: Sequence[Record]) -> Markup:
    """Every replacement, the latest first; nothing if there is none, as the family tree says so."""
    rows = []
    for child in reversed(lineage):
        options = ", ".join(f"{name}={value}" for name, value in child["options"].items())
        cells = [
            child["child"],
            child["generation"],
            child["operator"],
            ", ".join(child["parents"]),
            options,
            show(child["victim"], "{:.2f}"),
        ]
        rows.append([child["step"], *cells])
    if not rows:
        return Markup()
    heads = "step|child|generation|operator|parents|options|fitness of the replaced"
    return _folded(f"All {len(rows)} replacements", table(heads.split("|"), rows))


def operator_table(credit: Sequence[Record], ready: float) -> Markup:
    """What became of the children of each operator that had one judged; the others in a sentence.
    Nothing if no child was born.

    `credit` is what `operator_credit(run)` returns, `ready` the run's `evolution.grace_period`.
    """
    if not credit:
        return Markup()
    title = Markup("<h3>Credit of the operators</h3>")
    judged, passed, born = (
        sum(int(operator.get(key) or 0) for operator in credit)
        for key in ("judged", "passed", "born")
    )
    if not judged:
        many = "children" if born > 1 else "child"
        return title + _empty(
            f"No operator has earned credit yet: {born} {many} of {len(credit)} "
            f"{'operators' if len(credit) > 1 else 'operator'}, and none has met a replacement at "
            f"which it was old enough to be replaced ({ready:g} steps, evolution.grace_period)."
        )
    rows, waiting = [], []
    for operator in credit:
        if not operator.get("judged"):
            waiting.append(f"{operator.get('operator', '?')} ({operator.get('born', 0)})")
            continue
        cells = [
            operator.get("born", 0),
            operator.get("alive", 0),
            show(operator.get("mean_life"), "{:.1f}"),
            f"{operator.get('passed', 0)} of {operator.get('judged', 0)}",
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
        f"replaced ({ready:g} steps): did it survive, what share of the others did it stand above, "
        "and by how much was its fitness above that of the member whose place it took (when that "
        f"was replaced) and of its first parent? So far {judged} were judged and {passed} passed."
    )
    if waiting:
        how += f" No child judged yet: {', '.join(waiting)}."
    return title + table(heads.split("|"), rows, "number") + _note(how)


_COUNTS = (
    ("rows_per_step", "rows trained on, per member and step", "{:,.1f}"),
    ("tokens", "tokens generated", "{:,.0f}"),
    ("rollouts", "rollouts", "{:,.0f}"),
    ("trained_tokens", "tokens trained on", "{:,.0f}"),
    ("trained_rows", "rows trained on", "{:,.0f}"),
    ("updates", "updates", "{:,.0f}"),
)


def fairness_table(consumed: Mapping[str, Record]) -> Markup:
    """What members consumed, from `consumption(run)`: the mean of each role, then every member."""
    groups = {key: totals for key, totals in consumed.items() if key.startswith("role:")}
    people = {k: totals for k, totals in consumed.items() if k != "all" and k not in groups}
    if not people:
        return _empty("No member's consumption is recorded.")
    heads = ["", *(words for _, words, _ in _COUNTS), "seconds"]
    rows = []
    for totals in groups.values():
        count = int(number(totals.get("members")) or 1) or 1
        cells = [
            show((number(totals.get(key)) or 0.0) / (1 if key == "rows_per_step" else count), form)
            for key, _, form in _COUNTS
        ]
        seconds = duration((number(totals.get("seconds")) or 0.0) / count)
        role = str(totals.get("role", ""))
        rows.append([_named(f"{role}, mean of {count}", role), *cells, seconds])
    if "all" in consumed:
        rows.append(["all together", *_counts(consumed["all"])])
    each = [
        [_named(name, totals.get("role", "")), *_counts(totals)]
        for name, totals in sorted(people.items(), key=lambda item: by_number(item[0]))
    ]
    every = table(["member", *heads[1:]], each, "number")
    return (
        table(heads, rows, "number", "consumption")
        + (_folded(f"Each of the {len(each)} members", every) if len(each) > 1 else "")
        + _note(
            "Evals are not counted in the seconds. All members run in one batch and cannot be "
            "timed one by one: a member's seconds are its share of the batch by tokens generated "
            "and trained on."
        )
    )


_SAMPLER = (
    ("sampler_kl", "KL, nats a token", "{:.1e}"),
    ("sampler_ess", "effective sample size", "{:.1%}"),
    ("sampler_capped", "tokens capped", "{:.2%}"),
)


def sampler_table(metrics: Sequence[Record]) -> Markup:
    """How far each member's sampler was from its learner, means over steps, the worst KL beside
    them; nothing where updates had no importance weights."""
    recorded: dict[str, list[Record]] = {}
    for step in metrics:
        for name, member in section(step, "members").items():
            if number(member.get("sampler_kl")) is not None:
                recorded.setdefault(name, []).append(member)
    if not recorded:
        return Markup()
    rows = []
    for name, steps in sorted(recorded.items(), key=lambda item: by_number(item[0])):
        cells = [
            show(mean(number(step.get(key)) for step in steps), form) for key, _, form in _SAMPLER
        ]
        worst = max(number(step["sampler_kl"]) or 0.0 for step in steps)
        role = steps[-1].get("role", "")
        rows.append([_named(name, role), *cells, f"{worst:.1e}"])
    heads = ["member", *(words for _, words, _ in _SAMPLER), "largest KL of a step"]
    how = (
        "What sampled rounds otherwise than what learned. Each token's loss was weighted by "
        "learner / sampler, at most engine.importance_sampling_cap "
        "(population.importance_sampling_cap inside AZR); "
        "the effective sample size is the share of the tokens that such weights leave."
    )
    return Markup("<h3>Sampler and learner</h3>") + table(heads, rows, "number") + _note(how)


def _counts(totals: Record) -> list[str]:
    cells = [show(totals.get(key), form) for key, _, form in _COUNTS]
    return [*cells, duration(number(totals.get("seconds")) or 0.0)]


def _named(name: str, role: Any, unplayed: bool = False) -> Markup:
    mark = Markup(' <span class="unplayed">unplayed</span>') if unplayed else ""
    return Markup('<i class="dot {}"></i>{}{}').format(role, name, mark)


def _folded(summary: str, inside: Markup) -> Markup:
    return Markup("<details><summary>{}</summary>{}</details>").format(summary, inside)


def _rank(item: tuple[str, Record]) -> tuple[int, float, tuple[str, int]]:
    """Teachers before students, the highest conservative rating first."""
    name, member = item
    place = {"teacher": 0, "student": 1}.get(str(member.get("role")), 2)
    rating = conservative(member)
    return (place, -rating if rating is not None else 0.0, by_number(name))


def _empty(text: str) -> Markup:
    return Markup('<p class="empty">{}</p>').format(text)


def _note(text: str) -> Markup:
    return Markup('<p class="note">{}</p>').format(text)
