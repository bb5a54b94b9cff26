"""Tasks and completions on a run's page: which ones are shown, and each as a card."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from markupsafe import Markup

from azr_population.analysis.html import highlighted, render, truncated
from azr_population.analysis.statistics import tenth
from azr_population.domains.domain import Domain
from azr_population.domains.prompt_segments import marks_of, split_segments, user_turn
from azr_population.runs.meanings import figures_of, meaning, verdict_words
from azr_population.runs.records import Record, finite_or_none, show

HARDEST = 3
"""Tasks shown under "solved at least once" and under "never solved"."""


class Examples(NamedTuple):
    """The tasks that the page shows."""

    pairs: list[tuple[Record, Record]]
    """Pairs of tasks of one type: an early one that was solved most often and a late one that was
    solved least often, of median size among those."""
    solved: list[Record]
    """The hardest solved ones: the lowest solve rate above 0, then the largest program."""
    unsolved: list[Record]
    """The largest programs that were not solved in any of their tasks."""


def examples(tasks: Sequence[Record], last: int, size: str) -> Examples:
    """Chooses from the tasks of a run of `last` steps; `size` is the measure that programs are
    large by. A program counts once among the hardest, by its hardest task."""
    rows = [
        (
            *(task.get("type") or "?", task.get("program") or "", task["step"]),
            *(task.get("solve_rate"), finite_or_none(task.get(size)) or 0.0),
        )
        for task in tasks
    ]
    table = pd.DataFrame(rows, columns=["type", "program", "step", "rate", "size"])
    table = table.astype(dict.fromkeys(("step", "rate", "size"), float))
    early, late = table[table["step"] <= tenth(last)], table[table["step"] > last - tenth(last)]
    late = late.drop(early.index, errors="ignore")
    pairs = [
        (_middle(early[early["type"] == type], "max"), _middle(late[late["type"] == type], "min"))
        for type in sorted({*early["type"]} & {*late["type"]})
    ]
    hard = table.sort_values(
        ["rate", "size", "step"], ascending=[True, False, False], kind="stable"
    )
    solved, never = hard[hard["rate"] > 0], hard[hard["rate"] <= 0]
    never = never[~never["program"].isin(solved["program"])]
    hardest = [part.drop_duplicates("program").index[:HARDEST] for part in (solved, never)]
    return Examples(
        [(tasks[early_at], tasks[late_at]) for early_at, late_at in pairs],
        *([tasks[at] for at in group] for group in hardest),
    )


def _middle(tasks: pd.DataFrame, extreme: str) -> int:
    """The index of the task of median size among those of the `max` or `min` solve rate."""
    if tasks["rate"].notna().any():
        tasks = tasks[tasks["rate"] == tasks["rate"].agg(extreme)]
    return int(tasks.sort_values("size", kind="stable").index[len(tasks) // 2])


def card(domain: Domain, task: Record, when: str = "", open: bool = False) -> Markup:
    """One task; with `open` its attempts are unfolded."""
    type, types = str(task.get("type", "?")), list(domain.types)
    # Measures are the domain's own, which the reader of records does not know.
    facts = ((measure, finite_or_none(task.get(measure.name))) for measure in domain.measures)
    teacher, student = task.get("teacher", "?"), task.get("student", "?")
    attempts = _attempts(task)
    counts = Counter((right, verdict) for right, _, verdict in attempts)
    chips = sorted(counts.items(), key=lambda item: (-item[0][0], -item[1]))
    return render(
        "card.html.j2",
        when=when,
        open=open,
        type=type,
        colour=f"type-{types.index(type) % 3}" if type in types else "",
        asks=domain.types.get(type, ""),
        step=task.get("step", "?"),
        who=teacher if teacher == student else f"{teacher} for {student}",
        facts=", ".join(measure.in_words(value) for measure, value in facts if value is not None),
        parts=domain.parts(task),
        rate=show(task.get("solve_rate"), "{:.0%}", "not attempted"),
        attempts=attempts,
        chips=[(right, verdict, count) for (right, verdict), count in chips],
    )


def _attempts(task: Record) -> list[tuple[bool, Any, str]]:
    """(solved?, the answer, the verdict) of each."""
    columns = (task.get(key) or [] for key in ("answers", "solved", "reasons"))
    return [
        (right is True, answer, "solved" if right is True else str(reason or "failed"))
        for answer, right, reason in list(zip_longest(*columns))[: len(task.get("answers") or [])]
    ]


STEPS, EACH, MOST = 5, 2, 16
"""Steps that are shown, completions of each (verdict, reason) in them, and completions of a step:
at most 80 in all, some 200 KB of a page if all are as long as they may be, seldom above 60."""
LONGEST = 1200
"""Characters that are shown of a prompt, and of a completion."""
_STYLE = {"valid": "yes", "solved": "yes"}


def completions(
    read: Callable[[], Iterable[Record]], marks: Sequence[str]
) -> dict[int, list[Markup]]:
    """Some completions of each step. Reads the records twice; `marks` are the domain's."""
    steps = sorted({row["step"] for row in read()})
    places = np.linspace(0, len(steps) - 1, min(STEPS, len(steps)))
    chosen: dict[int, dict[tuple[str, str], list[Record]]] = {steps[int(p)]: {} for p in places}
    for row in read():
        if row["step"] in chosen:
            alike = chosen[row["step"]].setdefault(_kind(row), [])
            if len(alike) < EACH:
                alike.append(row)
    return {step: _of_step(kinds, marks) for step, kinds in chosen.items()}


def _of_step(kinds: Mapping[tuple[str, str], list[Record]], marks: Sequence[str]) -> list[Markup]:
    """The cards of a step: each (verdict, reason) once, then more; proposals before attempts."""
    ordered = sorted(kinds, key=lambda kind: (kind[0] not in ("refused", "valid"), kind))
    rounds = [kinds[kind][i] for i in range(EACH) for kind in ordered if i < len(kinds[kind])]
    shown = sorted(rounds[:MOST], key=lambda row: ordered.index(_kind(row)))
    return [one_completion(row, marks) for row in shown]


def _kind(row: Record) -> tuple[str, str]:
    return str(row.get("verdict")), str(row.get("reason"))


def one_completion(row: Record, marks: Sequence[str], open: bool = False) -> Markup:
    """The card of one completion, folded unless `open`."""
    verdict, reason = _kind(row)
    text = meaning(reason, row.get("finished"))
    prompt, written = (row.get(key) or "" for key in ("prompt", "completion"))
    parted = marks_of(prompt, marks)
    return render(
        "completion.html.j2",
        open=open,
        style=_STYLE.get(verdict, "no"),
        words=verdict_words(verdict, reason),
        member=row.get("member") or "?",
        does="proposes" if row.get("phase") == "propose" else "solves",
        type=row.get("type") or "?",
        note=f"{text}; {figures_of(row)}" if text else figures_of(row),
        asked=_code(_cut(user_turn(prompt), end=True), parted),
        written=_code(_cut(written), parted),
    )


def _code(shown: str, marks: Sequence[str]) -> Markup:
    """HTML with what is code in it coloured."""
    parts = []
    for mark, body, code in split_segments(shown, marks):
        fenced = mark.startswith("`")
        opening = f"{mark}\n" if fenced else f"{mark} " if mark else ""
        body = body.strip("\n")
        coloured = highlighted(body) if code else truncated(body)
        parts.append(Markup("{}{}{}").format(opening, coloured, "\n```" if fenced else ""))
    return Markup("\n").join(parts)


def _cut(text: str, end: bool = False) -> str:
    """The beginning of a long text, or its `end`: that of a prompt has the question."""
    more = len(text) - LONGEST
    if more <= 0:
        return text
    if end:
        return f"({more:,} characters before) ...\n{text[-LONGEST:]}"
    return f"{text[:LONGEST]}\n... ({more:,} more characters)"
