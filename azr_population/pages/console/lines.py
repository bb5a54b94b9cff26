"""Events as lines of text, made from the records that the run directory gets."""

from collections.abc import Mapping
from typing import Any

from azr_population.domains.known import DOMAINS, find_domain
from azr_population.runs.records import Record, show

_OF_DOMAINS = {
    measure.name: (measure.short, measure.name, measure.form)
    for name in reversed(DOMAINS)
    for measure in find_domain(name).measures
    if measure.short
}
ROLE_COLUMNS = [
    ("valid", "valid_frac", "{:.0%}"),
    ("unique", "unique_frac", "{:.0%}"),
    ("solved", "solve_rate", "{:.0%}"),
    ("reward", "reward", "{:+.2f}"),
    *_OF_DOMAINS.values(),
]
"""(heading, key in a role's metrics, format) in the order shown."""


def match_line(match: Record) -> str:
    """`teacher_1 vs student_3: 37 valid of 48, 41% solved; mu -0.4, +0.4`.

    The teacher's rating comes first. It prints the change, not the new value: after the step all
    ratings move together, so that the students' mean stays. The line must fit into 80 columns.
    """
    text = (
        f"{match['teacher']} vs {match['student']}: {match.get('valid', '?')} valid of "
        f"{match.get('proposed', '?')}, {show(match.get('solve_rate'), '{:.0%}', 'none')} solved"
    )
    moves = [
        f"{after - before:+.1f}"
        for side in ("teacher", "student")
        for before, after in [match.get(f"{side}_mu") or (None, None)]
        if before is not None
    ]
    return f"{text}; mu {', '.join(moves)}" if moves else text


def replacement_line(child: Record) -> str:
    """`student_2 replaced by svd_subspace(student_0, student_3), k=4; fitness 9.1, ...`."""
    options = "".join(f", {name}={_short(value)}" for name, value in child["options"].items())
    fitness = child.get("fitness") or {}
    parents = ", ".join(show(value, "{:.1f}") for value in fitness.get("parents", ()))
    compared = f"; fitness {show(fitness.get('victim'), '{:.1f}')}, its parents' {parents}"
    return (
        f"{child['child']} replaced by {child['operator']}({', '.join(child['parents'])}){options}"
        f"{compared if parents else ''}; generation {child['generation']}"
    )


def role_line(role: str, metrics: Record) -> str:
    """`teacher valid 79%, unique 97%, reward +0.31, nodes 26.1, lines 4.1`, as far as known."""
    parts = [
        f"{heading} {show(metrics[key], form)}"
        for heading, key, form in ROLE_COLUMNS
        if metrics.get(key) is not None
    ]
    return f"{role} {', '.join(parts)}" if parts else role


def eval_line(step: Record) -> str:
    """`eval 31%, best 36%`: the mean and the best member on the fixed held-out tasks."""
    mean, best = (show(step.get(f"eval/{name}"), "{:.0%}") for name in ("greedy", "best"))
    return f"eval {mean}, best {best}"


def origin(births: Mapping[str, Record], name: str, step: int) -> str:
    """Where a member comes from: `start`, the operator that made it, or `new: ` and the operator
    if it was born at the end of this step and has not played yet. `births` are the last births."""
    if name not in births:
        return "start"
    mark = "new: " if births[name].get("step") == step else ""
    return f"{mark}{births[name]['operator']}"


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def end_lines(result: Record, done: int, steps: int) -> list[str]:
    """A view's last lines: how the run ended and where its files are; see `View.on_end`."""
    lines = [f"{result.get('status', 'finished')} after step {done} of {steps}"]
    if result.get("wrong"):
        lines = [f"{lines[0]}, without a valid proposal", str(result["wrong"])]
    lines += result.get("changed", ())
    for label, key in (
        ("run directory", "dir"),
        ("members (PEFT folders)", "members"),
        ("report", "report"),
        ("continue with", "resume"),
    ):
        if result.get(key):
            lines.append(f"{label}: {result[key]}")
    return lines
