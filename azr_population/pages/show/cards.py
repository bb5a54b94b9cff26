"""A completion as a person reads it in the terminal: the verdict first, then what was asked and
written, with the programs coloured. Whatever it holds, it cannot control the terminal."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group
from rich.syntax import Syntax
from rich.text import Text

from azr_population.domains.pieces import Piece, asked, marks_of, pieces
from azr_population.pages.console.output import plain_output
from azr_population.pages.show.select import Wanted, select
from azr_population.printable import printable
from azr_population.runs import RunDirectory
from azr_population.runs.meanings import meaning, verdict_words
from azr_population.runs.records import domain_of, show

STYLES = {
    "valid": "bold green",
    "solved": "bold green",
    "refused": "bold red",
    "failed": "bold yellow",
}
_FIGURES = (
    ("solve_rate", "solved by {} of the attempts", "{:.0%}"),
    ("reward", "reward {}", "{:+.2f}"),
    ("advantage", "advantage {}", "{:+.2f}"),
    ("tokens", "{} tokens", "{:.0f}"),
    ("log_prob", "log-probability {} a token", "{:.2f}"),
)
"""Key, words, format."""
LONGEST = 50_000
"""Characters that are shown of a text; 8,000 tokens have fewer."""
_FIRST, _LAST = 4, 14
"""Lines that are shown of a longer prompt."""
_PYTHON = Syntax("", "python", theme="ansi_dark", background_color="default")


def card(row: Mapping[str, Any], marks: Sequence[str], full: bool = False) -> Group:
    """One record of `completions.jsonl`; the prompt is folded unless it is wanted `whole`;
    `marks` are the domain's."""
    prompt = _bounded(row.get("prompt") or "")
    parted = marks_of(prompt, marks)
    lines = body(prompt if full else asked(prompt), parted)
    return Group(
        headline(row),
        Text(_facts(row), style="dim"),
        *([Text("prompt", style="dim"), *(lines if full else _folded(lines))] if prompt else []),
        Text("completion", style="dim"),
        *(
            body(_bounded(row.get("completion") or ""), parted)
            or [Text("    (nothing)", style="dim")]
        ),
        *_outcome(row),
        Text(),
    )


def headline(row: Mapping[str, Any]) -> Text:
    """`refused, boolean: the answer is True, False or None ...`."""
    if "verdict" not in row:
        return Text("no verdict: a prompt of your own is not a task", "bold")
    verdict, reason = printable(row.get("verdict") or "?"), printable(row.get("reason") or "?")
    explanation = meaning(reason, row.get("finished"))
    more = verdict_words(verdict, reason).removeprefix(verdict)
    return Text(verdict, STYLES.get(verdict, "bold")) + Text(
        f"{more}: {explanation}" if explanation else more, "bold"
    )


def body(text: str, marks: Sequence[str]) -> list[Text]:
    """The lines of a prompt or a completion that has passed `printable`, indented."""
    lines: list[Text] = []
    for piece in pieces(text, marks):
        lines += _lines(piece)
    return lines


def _lines(piece: Piece) -> list[Text]:
    stripped = piece.text.strip("\n").expandtabs(4)
    shown = _PYTHON.highlight(stripped) if piece.code else Text(stripped)
    shown.rstrip()
    lines = list(shown.split("\n", allow_blank=True)) if stripped else []
    if piece.mark.startswith("`"):
        fence = Text(piece.mark, style="dim")
        lines = [fence, *lines, Text("```", style="dim")]
    elif piece.mark:
        first = lines[0] if lines else Text()
        lines = [Text(f"{piece.mark} ", style="dim") + first, *lines[1:]]
    return [Text("    ") + line for line in lines]


def _outcome(row: Mapping[str, Any]) -> list[Text]:
    """What a program gave, or the right answer, of what was tried by hand."""
    lines = []
    if row.get("outputs"):
        lines += [Text("runs", style="dim"), *body_of("\n".join(map(str, row["outputs"])))]
    if row.get("right") is not None:
        lines += [Text("right would be", style="dim"), *body_of(str(row["right"]))]
    return lines


def body_of(program: str) -> list[Text]:
    """The lines of a program or of values, indented."""
    return _lines(Piece("", _bounded(program), True))


def _bounded(text: str) -> str:
    """The text as it may be printed; to colour megabytes takes minutes."""
    more = len(text) - LONGEST
    return (
        printable(text)
        if more <= 0
        else (f"{printable(text[:LONGEST])}\n[... {more:,} more characters; --json shows them ...]")
    )


def _folded(lines: list[Text]) -> list[Text]:
    more = len(lines) - _FIRST - _LAST
    if more < 2:
        return lines
    hint = Text(f"    [... {more} lines; --full shows them ...]", style="dim")
    return [*lines[:_FIRST], hint, *lines[-_LAST:]]


def _facts(row: Mapping[str, Any]) -> str:
    """`step 3: teacher_0 (generation 1) proposes code_o to student_1; reward +0.50, ...`."""
    member, type, opponent = (
        printable(row.get(key) or "?") for key in ("member", "type", "opponent")
    )
    born = f" (generation {row['generation']})" if row.get("generation") else ""
    alone = not row.get("opponent") or opponent == member
    did, by = {"propose": ("proposes", "to"), "solve": ("solves", "by")}.get(
        str(row.get("phase")), ("writes", "for")
    )
    what = f"{did} {type}" if row.get("type") else did
    if not alone:
        what += f" {by} {opponent}"
    parts = [
        words.format(show(row[key], form))
        for key, words, form in _FIGURES
        if row.get(key) is not None
    ]
    when = f"step {row['step']}: " if "step" in row else ""
    return f"{when}{member}{born} {what}; {', '.join(parts)}"


def show_completions(path: str, filters: Wanted, full: bool, as_json: bool) -> None:
    """Prints the completions of a run that are wanted, as cards or as JSON lines. Raises UserError:
    as `select`."""
    run = RunDirectory(path)
    rows, total = select(run, filters)
    if as_json:
        for row in rows:
            print(json.dumps(row))
    else:
        console, marks = plain_output(), domain_of(run).marks
        for row in rows:
            console.print(card(row, marks, full))
        if len(rows) < total:
            console.print(f"the newest {len(rows)} of {total}; --limit 0 shows all", style="dim")
    if not rows:
        print("no stored completion fits", file=sys.stderr)
