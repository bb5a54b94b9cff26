"""The table and the figure of a retention run, from its curves.jsonl.

    python recipes/fig6_operator_retention/figure.py recipes/fig6_operator_retention/results

Writes table.md and retention.svg beside it. Bands and +- are 95% t-intervals over seeds.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

T_95 = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26}
"""Two-sided 95% quantiles of Student's t by degrees of freedom; 2 beyond."""

PANEL, GAP, LEFT, TOP = 210, 34, 52, 46
Curves = dict[str, dict[int, dict[int, float]]]
"""operator -> seed -> step -> score"""


def read(path: Path) -> tuple[Curves, dict[int, float]]:
    """The curves, and by seed the better parent's score when the children were made."""
    curves: Curves = {}
    levels: dict[int, float] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row: dict[str, Any] = json.loads(line)
        seeds = curves.setdefault(row["operator"], {})
        seeds.setdefault(row["seed"], {})[row["step"]] = row["score"]
        levels[row["seed"]] = row["parent"]
    return curves, levels


def half_width(values: Sequence[float]) -> float:
    """Half of the 95% interval of the mean."""
    if len(values) < 2:
        return float("nan")
    return T_95.get(len(values) - 1, 2.0) * stdev(values) / len(values) ** 0.5


def interval(values: Sequence[float]) -> str:
    """`mean ± half width`."""
    spread = f" ± {half_width(values):.2f}" if len(values) > 1 else ""
    return f"{mean(values):+.2f}{spread}"


def recovery(curve: dict[int, float], level: float) -> int | None:
    """The first measured step at which the child is at its parent's level, None if never."""
    return next((step for step in sorted(curve) if curve[step] >= level - 1e-9), None)


def table(curves: Curves, levels: dict[int, float]) -> str:
    """One row per operator, in percentage points of the expected solve rate."""
    last = max(next(iter(curves["untouched"].values())))
    lines = [
        f"| operator | change at birth | recovered within {last} steps | median steps | "
        f"against the untouched parent at step {last} |",
        "|---|---|---|---|---|",
    ]
    for operator, seeds in curves.items():
        drops = [100 * (curve[0] - levels[seed]) for seed, curve in seeds.items()]
        steps = [recovery(curve, levels[seed]) for seed, curve in seeds.items()]
        found = [step for step in steps if step is not None]
        gaps = [
            100 * (curve[last] - curves["untouched"][seed][last]) for seed, curve in seeds.items()
        ]
        shown = "-" if len(found) * 2 < len(steps) else f"{median(found):g}"
        against = "-" if operator == "untouched" else interval(gaps)
        lines.append(
            f"| `{operator}` | {interval(drops)} | "
            f"{len(found)} of {len(steps)} | {shown} | {against} |"
        )
    return "\n".join(lines) + "\n"


def svg(curves: Curves, levels: dict[int, float]) -> str:
    """A panel per operator: children against untouched copies of their parents."""
    operators = [operator for operator in curves if operator != "untouched"]
    scores = [v for seeds in curves.values() for c in seeds.values() for v in c.values()]
    low, high = min(scores), max(scores)
    last = max(next(iter(curves["untouched"].values())))
    columns, rows = 4, -(-len(operators) // 4)
    width = LEFT + columns * (PANEL + GAP)
    height = TOP + rows * (PANEL + GAP + 14)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="18" font-size="14">Expected solve rate on the held-out exam over '
        "steps after the operator (mean and 95% interval over seeds)</text>",
        f'<text x="{LEFT}" y="36" fill="#c2410c">children</text>'
        f'<text x="{LEFT + 70}" y="36" fill="#475569">untouched copies of the better parent</text>',
    ]
    for number, operator in enumerate(operators):
        x0 = LEFT + number % columns * (PANEL + GAP)
        y0 = TOP + 18 + number // columns * (PANEL + GAP + 14)

        def point(step: float, score: float, x0: int = x0, y0: int = y0) -> str:
            x = x0 + PANEL * step / last
            y = y0 + PANEL * (1 - (score - low) / (high - low))
            return f"{x:.1f},{y:.1f}"

        parts.append(f'<text x="{x0}" y="{y0 - 5}">{operator}</text>')
        parts.append(
            f'<rect x="{x0}" y="{y0}" width="{PANEL}" height="{PANEL}" fill="none" stroke="#ccc"/>'
        )
        for score in (low, high):
            anchor = point(0, score).split(",")[1]
            parts.append(
                f'<text x="{x0 - 4}" y="{float(anchor) + 4:.1f}" font-size="10" '
                f'text-anchor="end">{100 * score:.0f}%</text>'
            )
        for step in (0, last):
            x = point(step, low).split(",")[0]
            parts.append(
                f'<text x="{x}" y="{y0 + PANEL + 13}" font-size="10" '
                f'text-anchor="middle">{step}</text>'
            )
        for name, colour in (("untouched", "#475569"), (operator, "#c2410c")):
            seeds = list(curves[name].values())
            steps = sorted(seeds[0])
            means = {step: mean([curve[step] for curve in seeds]) for step in steps}
            halves = {step: half_width([curve[step] for curve in seeds]) for step in steps}
            if len(seeds) > 1:
                upper = [point(s, min(high, means[s] + halves[s])) for s in steps]
                lower = [point(s, max(low, means[s] - halves[s])) for s in reversed(steps)]
                outline = " ".join(upper + lower)
                parts.append(f'<polygon points="{outline}" fill="{colour}" opacity="0.15"/>')
            line = " ".join(point(s, means[s]) for s in steps)
            parts.append(
                f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>'
            )
    return "\n".join([*parts, "</svg>"]) + "\n"


def main() -> None:
    folder = Path(sys.argv[1])
    curves, levels = read(folder / "curves.jsonl")
    text = table(curves, levels)
    (folder / "table.md").write_text(text, encoding="utf-8")
    (folder / "retention.svg").write_text(svg(curves, levels), encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
