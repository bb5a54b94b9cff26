"""The members' own words in the terminal: which of a run's completions are shown, and each as a
card, the verdict first. Whatever a completion holds, it cannot control the terminal."""

import json
import sys
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from rich.console import Group
from rich.syntax import Syntax
from rich.text import Text

from azr_population.console.output import plain_output
from azr_population.domains.prompt_segments import Segment, marks_of, split_segments, user_turn
from azr_population.errors import UserError, did_you_mean
from azr_population.printable import printable
from azr_population.reading.run_data import RunData
from azr_population.runs.directory import split_address
from azr_population.runs.meanings import figures_of, meaning, verdict_words
from azr_population.runs.records import by_number

STYLES = {
    "valid": "bold green",
    "solved": "bold green",
    "refused": "bold red",
    "failed": "bold yellow",
}
LONGEST = 50_000
"""Characters that are shown of a text; 8,000 tokens have fewer, and to colour megabytes takes
minutes."""
_FIRST, _LAST = 4, 14
"""Lines that are shown of a longer prompt."""
_PYTHON = Syntax("", "python", theme="ansi_dark", background_color="default")


def show_completions(
    address: str,
    step: int | None,
    type: str | None,
    verdicts: Collection[str],
    limit: int,
    full: bool,
    as_json: bool,
) -> None:
    """Prints the completions of a run that are asked for, as cards or as JSON lines.

    Args:
        address: RUN, or RUN/MEMBER.
        step, type: only those of this step, of this type of task; None: of any.
        verdicts: only those with one of these verdicts or reasons; empty: with any.
        limit: the newest so many; 0: all.

    Raises UserError: there is no run, it kept no completions, or not of that step, type or member,
        or a verdict is neither one nor a reason there.
    """
    directory, name = split_address(address)
    run, path = RunData(directory.path), str(directory.path)
    run.directory.refuse_results_only()
    given = {"step": step, "member": name, "type": type}
    wanted = {key: value for key, value in given.items() if value is not None}
    recorded: dict[str, dict[Any, None]] = {key: {} for key in ("step", "member", "type")}
    reasons = set(STYLES)
    rows: deque[dict[str, Any]] = deque(maxlen=limit or None)
    total = 0
    for row in run.read("completions"):
        for key, values in recorded.items():
            values[row["step"] if key == "step" else str(row.get(key))] = None
        reasons.add(str(row.get("reason")))
        right = not verdicts or row.get("verdict") in verdicts or row.get("reason") in verdicts
        if right and all(row.get(key) == value for key, value in wanted.items()):
            rows.append(row)
            total += 1
    if not recorded["step"]:
        raise UserError(
            f"{path} has no completions.jsonl: it has not finished a step, or was run with "
            f"run.log_completions=0 or by an older version; to keep those of the next steps: "
            f"azr-population resume {path} run.log_completions=16 run.steps=N"
        )
    recorded["member"] |= dict.fromkeys(run.roles)
    for key, value in wanted.items():
        if value not in recorded[key]:
            option = f"{path}/{value}" if key == "member" else f"--{key} {value}"
            raise not_there(option, path, recorded[key], str(value))
    for verdict in verdicts:
        if verdict not in reasons:
            raise not_there(f"--verdict {verdict}", path, reasons, verdict)
    console, marks = plain_output(), run.domain.marks
    for row in rows:
        if as_json:
            print(json.dumps(row))
        else:
            console.print(card(row, marks, full))
    if len(rows) < total and not as_json:
        console.print(f"the newest {len(rows)} of {total}; --limit 0 shows all", style="dim")
    if not rows:
        print("no stored completion fits", file=sys.stderr)


def not_there(named: str, path: str, names: Iterable[Any], name: str) -> UserError:
    """The error for a member, step or type that does not exist, with those that do."""
    existing = sorted((printable(each) for each in names), key=by_number)
    shown = ", ".join(existing[:40]) + ", ..." * (len(existing) > 40)
    return UserError(f"{named} does not exist{did_you_mean(name, existing)}; {path} has {shown}")


def card(row: Mapping[str, Any], marks: Sequence[str], full: bool = False) -> Group:
    """One record of `completions.jsonl`; the prompt is folded unless it is wanted `full`; `marks`
    are the domain's."""
    prompt = _bounded(row.get("prompt") or "")
    marks = marks_of(prompt, marks)
    parts = {
        "prompt": body(prompt, marks) if full else _folded(body(user_turn(prompt), marks)),
        "completion": body(_bounded(row.get("completion") or ""), marks)
        or [Text("    (nothing)", style="dim")],
        # What a program gave, or the right answer, of what was tried by hand.
        "runs": _lines(Segment("", _bounded("\n".join(map(str, row.get("outputs") or ()))), True)),
        "right would be": _lines(Segment("", _bounded(row.get("right") or ""), True)),
    }
    titled = [[Text(title, style="dim"), *lines] for title, lines in parts.items() if lines]
    facts = Text(_facts(row), style="dim")
    return Group(_headline(row), facts, *(line for lines in titled for line in lines), Text())


def _headline(row: Mapping[str, Any]) -> Text:
    """`refused, boolean: the answer is True, False or None ...`."""
    if "verdict" not in row:
        return Text("no verdict: a prompt of your own is not a task", "bold")
    verdict, reason = printable(row.get("verdict") or "?"), printable(row.get("reason") or "?")
    explanation = meaning(reason, row.get("finished"))
    more = verdict_words(verdict, reason).removeprefix(verdict)
    return Text(verdict, STYLES.get(verdict, "bold")) + Text(
        f"{more}: {explanation}" if explanation else more, "bold"
    )


def _facts(row: Mapping[str, Any]) -> str:
    """`step 3: teacher_0 (generation 1) proposes code_o to student_1; reward +0.50, ...`."""
    member, type, opponent = (
        printable(row.get(key) or "?") for key in ("member", "type", "opponent")
    )
    born = f" (generation {row['generation']})" if row.get("generation") else ""
    verbs = {"propose": ("proposes", "to"), "solve": ("solves", "by")}
    did, by = verbs.get(str(row.get("phase")), ("writes", "for"))
    action = f"{did} {type}" if row.get("type") else did
    if row.get("opponent") and opponent != member:
        action += f" {by} {opponent}"
    when = f"step {row['step']}: " if "step" in row else ""
    return f"{when}{member}{born} {action}; {figures_of(row)}"


def body(text: str, marks: Sequence[str]) -> list[Text]:
    """The lines of a prompt or a completion that has passed `printable`, indented."""
    return [line for segment in split_segments(text, marks) for line in _lines(segment)]


def _lines(segment: Segment) -> list[Text]:
    stripped = segment.text.strip("\n").expandtabs(4)
    shown = _PYTHON.highlight(stripped) if segment.code else Text(stripped)
    shown.rstrip()
    lines = list(shown.split("\n", allow_blank=True)) if stripped else []
    if segment.mark.startswith("`"):
        lines = [Text(segment.mark, style="dim"), *lines, Text("```", style="dim")]
    elif segment.mark:
        first = lines[0] if lines else Text()
        lines = [Text(f"{segment.mark} ", style="dim") + first, *lines[1:]]
    return [Text("    ") + line for line in lines]


def _bounded(text: str) -> str:
    """The text as it may be printed."""
    more = len(text) - LONGEST
    if more <= 0:
        return printable(text)
    return f"{printable(text[:LONGEST])}\n[... {more:,} more characters; --json shows them ...]"


def _folded(lines: list[Text]) -> list[Text]:
    more = len(lines) - _FIRST - _LAST
    if more < 2:
        return lines
    hint = Text(f"    [... {more} lines; --full shows them ...]", style="dim")
    return [*lines[:_FIRST], hint, *lines[-_LAST:]]
