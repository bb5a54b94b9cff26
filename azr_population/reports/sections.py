"""The parts of the report that are plain HTML. Everything from a run passes through `text`."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from azr_population.reports.figures import by_number, section
from azr_population.reports.lines import conservative, number, show

Record = Mapping[str, Any]

MAX_TEXT = 3000
"""Characters of a program, an answer or a setting that are shown."""


def text(value: Any) -> str:
    """`value` as HTML text that is safe in elements and quoted attributes, cut at MAX_TEXT."""
    plain = str(value)
    more = f" ... ({len(plain) - MAX_TEXT:,} more characters)" if len(plain) > MAX_TEXT else ""
    # Lone surrogates cannot be encoded, and NUL would end some parsers' idea of the text.
    plain = plain[:MAX_TEXT].replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    return html.escape(plain + more, quote=True)


def paragraphs(sentences: Sequence[str]) -> str:
    """One paragraph of the sentences."""
    return f"<p>{text(' '.join(sentences))}</p>"


def member_table(metrics: Sequence[Record], lineage: Sequence[Record]) -> str:
    """The members as they stand, with what each has consumed, so that a comparison can be fair."""
    if not metrics:
        return '<p class="empty">No step is recorded yet.</p>'
    origin = {row["child"]: row["operator"] for row in lineage}
    used = _consumed(metrics)
    rows = []
    for name, member in sorted(section(metrics[-1], "members").items(), key=_rank):
        cells = [
            f"{show(member.get('mu'), '{:.1f}')} ± {show(member.get('sigma'), '{:.1f}')}",
            show(conservative(member), "{:.1f}"),
            text(member.get("generation", 0)),
            text(origin.get(name, "start")),
            show(member.get("reward"), "{:+.2f}"),
            show(member.get("validity"), "{:.0%}"),
            show(member.get("solve_rate"), "{:.0%}"),
            *(f"{used[name][key]:,}" for key in _CONSUMED),
        ]
        role = text(member.get("role", ""))
        rows.append(
            f'<tr><th scope="row"><i class="dot {role}"></i>{text(name)}</th>'
            f"{''.join(f'<td class=number>{cell}</td>' for cell in cells)}</tr>"
        )
    heads = (
        "member|mu ± sigma|mu - 3 sigma|generation|origin|reward|valid|solved"
        "|tokens|rollouts|updates"
    )
    return _table(heads.split("|"), rows, "number")


def lineage_table(lineage: Sequence[Record]) -> str:
    """Every replacement, the latest first."""
    rows = []
    for row in reversed(lineage):
        options = ", ".join(f"{name}={value}" for name, value in row["options"].items())
        cells = [
            row["child"],
            row["generation"],
            row["operator"],
            ", ".join(row["parents"]),
            options,
            show(row["victim"], "{:.2f}"),
        ]
        rows.append(
            f'<tr><th scope="row">{row["step"]}</th>'
            f"{''.join(f'<td>{text(cell)}</td>' for cell in cells)}</tr>"
        )
    if not rows:
        return '<p class="empty">Nobody was replaced.</p>'
    heads = "step|child|generation|operator|parents|options|fitness of the replaced"
    return (
        f"<details><summary>All {len(rows)} replacements</summary>"
        f"{_table(heads.split('|'), rows)}</details>"
    )


def task_cards(examples: Sequence[tuple[str, Record]]) -> str:
    """Tasks with program, input, output and every attempt."""
    cards = [_card(why, task) for why, task in examples]
    return "".join(cards) or '<p class="empty">No valid task is recorded.</p>'


def settings(config: str, environment: Record) -> str:
    """The resolved configuration as written, and where it ran."""
    rows = [
        f'<tr><th scope="row">{text(key)}</th><td>{text(value)}</td></tr>'
        for key, value in environment.items()
    ]
    where = _table(["environment", ""], rows) if rows else ""
    return f'{where}<h3>config.yaml</h3><pre class="config">{text(config)}</pre>'


def _card(why: str, task: Record) -> str:
    pairs = zip(_listed(task.get("inputs")), _listed(task.get("outputs")), strict=False)
    calls = "\n".join(f"f({one}) -> {other}" for one, other in pairs)
    attempts = []
    reasons = _listed(task.get("reasons"))
    solved = _listed(task.get("solved"))
    for i, answer in enumerate(_listed(task.get("answers"))):
        right = i < len(solved) and solved[i] is True
        reason = "" if right or i >= len(reasons) else f" <small>{text(reasons[i])}</small>"
        shown = "<em>nothing that parses</em>" if answer is None else f"<code>{text(answer)}</code>"
        mark = '<b class="yes">solved</b>' if right else '<b class="no">failed</b>'
        attempts.append(f"<li>{mark} {shown}{reason}</li>")
    message = task.get("message")
    said = f"<p>Message: {text(message)}</p>" if message else ""
    facts = ", ".join(
        f"{number(task.get(key)):g} {words}"
        for key, words in (
            ("ast_nodes", "AST nodes"),
            ("ast_depth", "deep"),
            ("cyclomatic", "cyclomatic"),
            ("lines", "lines"),
        )
        if number(task.get(key)) is not None
    )
    return (
        f'<article class="task"><h3>{text(task.get("type", "?"))}: {text(why)}</h3>'
        f"<p>Step {text(task.get('step', '?'))}, {text(task.get('teacher', '?'))} for "
        f"{text(task.get('student', '?'))}, {show(task.get('solve_rate'), '{:.0%}')} solved"
        f"{f'; {facts}' if facts else ''}</p>"
        f"<pre>{text(task.get('program', ''))}</pre><pre>{text(calls)}</pre>{said}"
        f"<details><summary>{len(attempts)} attempts</summary><ul>{''.join(attempts)}</ul>"
        f"</details></article>"
    )


_CONSUMED = ("tokens", "rollouts", "updates")


def _consumed(metrics: Sequence[Record]) -> dict[str, dict[str, int]]:
    """Totals per member over the run."""
    used: dict[str, dict[str, int]] = {}
    for step in metrics:
        for name, member in section(step, "members").items():
            sums = used.setdefault(name, dict.fromkeys(_CONSUMED, 0))
            for key in _CONSUMED:
                sums[key] += int(number(member.get(key)) or 0)
    return used


def _rank(item: tuple[str, Record]) -> tuple[int, float, tuple[str, int]]:
    """Teachers, then students, the surest strong of each first."""
    name, member = item
    place = {"teacher": 0, "student": 1}.get(str(member.get("role")), 2)
    rating = conservative(member)
    return (place, -rating if rating is not None else 0.0, by_number(name))


def _table(heads: Sequence[str], rows: Sequence[str], style: str = "") -> str:
    """`style` is the class of every column's head but the first."""
    head = "".join(
        f'<th scope="col" class="{style if i else ""}">{text(name)}</th>'
        for i, name in enumerate(heads)
    )
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []
