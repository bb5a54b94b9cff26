"""A few completions of a few steps, folded, for whoever wants to read what was written."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from markupsafe import Markup

from azr_population.domains.pieces import asked, marks_of, pieces
from azr_population.pages.web.programs import marked
from azr_population.pages.web.templates import cut, empty, note, piece
from azr_population.runs.formatting import plain, show
from azr_population.runs.reasons import meaning, verdict_words
from azr_population.runs.records import Record

STEPS, EACH, MOST = 5, 2, 16
"""Steps that are shown, completions of each (verdict, reason) in them, and completions of a step:
at most 80 in all, some 200 KB of a page if all are as long as they may be, seldom above 60."""
LONGEST = 1200
"""Characters that are shown of a prompt, and of a completion."""
_STYLE = {"valid": "yes", "solved": "yes"}


def completions(read: Callable[[], Iterable[Record]], marks: Sequence[str]) -> Markup:
    """HTML: each step folded, and in it each completion. Reads the records twice. `marks` are the
    domain's."""
    steps = _spread(sorted({row["step"] for row in read()}))
    chosen: dict[int, dict[tuple[str, str], list[Record]]] = {step: {} for step in steps}
    for row in read():
        if row["step"] in chosen:
            kind = str(row.get("verdict")), str(row.get("reason"))
            alike = chosen[row["step"]].setdefault(kind, [])
            if len(alike) < EACH:
                alike.append(row)
    if not steps:
        return empty("None are kept (run.completions).")
    return Markup("").join(_step(step, kinds, marks) for step, kinds in chosen.items())


def _spread(steps: list[int]) -> list[int]:
    """The first, the last, and what lies evenly between them."""
    if len(steps) <= STEPS:
        return steps
    return [steps[math.floor(i * (len(steps) - 1) / (STEPS - 1))] for i in range(STEPS)]


def _step(step: int, kinds: Mapping[tuple[str, str], list[Record]], marks: Sequence[str]) -> Markup:
    ordered = sorted(kinds, key=lambda kind: (kind[0] not in ("refused", "valid"), kind))
    rounds = [kinds[kind][i] for i in range(EACH) for kind in ordered if i < len(kinds[kind])]
    shown = sorted(rounds[:MOST], key=lambda row: ordered.index(_kind(row)))
    return Markup(
        '<details class="step"><summary>Step {}: {} completions</summary>{}</details>'
    ).format(step, len(shown), Markup("").join(one_completion(row, marks) for row in shown))


def _kind(row: Record) -> tuple[str, str]:
    return str(row.get("verdict")), str(row.get("reason"))


def one_completion(row: Record, marks: Sequence[str], open: bool = False) -> Markup:
    """One, folded unless `open`."""
    verdict, reason = map(plain, _kind(row))
    said = meaning(reason, row.get("finished"))
    prompt, written = (plain(row.get(key) or "") for key in ("prompt", "completion"))
    parted = marks_of(prompt, marks)
    facts = [f"reward {show(row.get('reward'), '{:+.2f}')}"]
    facts.append(f"advantage {show(row.get('advantage'), '{:+.2f}', 'none')}")
    facts.append(f"{show(row.get('tokens'), '{:.0f}')} tokens")
    facts.append(f"log-probability {show(row.get('log_prob'), '{:.2f}')} a token")
    return piece(
        "completion.html",
        open=open,
        style=_STYLE.get(verdict, "no"),
        words=verdict_words(verdict, reason),
        member=plain(row.get("member") or "?"),
        does="proposes" if row.get("phase") == "propose" else "solves",
        type=plain(row.get("type") or "?"),
        note=note(f"{said}; {', '.join(facts)}" if said else ", ".join(facts)),
        asked=_code(_tail(asked(prompt)), parted),
        written=_code(_head(written), parted),
    )


def _code(shown: str, marks: Sequence[str]) -> Markup:
    """HTML with what is code in it coloured."""
    parts = []
    for mark, body, code in pieces(shown, marks):
        fenced = mark.startswith("`")
        opening = f"{mark}\n" if fenced else f"{mark} " if mark else ""
        body = cut(body.strip("\n"))
        coloured = Markup(marked(body)) if code else body
        parts.append(Markup("{}{}{}").format(opening, coloured, "\n```" if fenced else ""))
    return Markup("\n").join(parts)


def _head(said: str) -> str:
    more = len(said) - LONGEST
    return said if more <= 0 else f"{said[:LONGEST]}\n... ({more:,} more characters)"


def _tail(said: str) -> str:
    """The end of a prompt is what is asked."""
    more = len(said) - LONGEST
    return said if more <= 0 else f"({more:,} characters before) ...\n{said[-LONGEST:]}"
