"""The table and the figure of a retention run, from the units in its folder.

    python recipes/fig6_operator_retention/figure.py FOLDER [--margin 0.01]

Writes curves.jsonl (a line per unit and exam: score, and the paired differences with half of their
95% intervals), table.md and retention.svg beside them. The rule is in recovery.py.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median

from recovery import (
    Unit,
    faults,
    margin_of,
    over_seeds,
    paired,
    read_units,
    recovered,
    to_parent,
    to_untouched,
    verdict,
)

PANEL, GAP, LEFT, TOP = 200, 40, 52, 52
ORDER = (
    "untouched",
    "again",
    "svd_structured",
    "layer_selective_gaussian",
    "component_masking",
    "full_gaussian",
    "dare",
    "layer_wise",
    "svd_subspace",
    "extrapolative",
    "reset",
    "noise",
)
Arms = dict[str, dict[int, Unit]]
"""arm -> seed -> unit"""


def by_arm(units: Sequence[Unit]) -> Arms:
    arms: Arms = {}
    for unit in units:
        arms.setdefault(unit.arm, {})[unit.seed] = unit
    return {arm: arms[arm] for arm in ORDER if arm in arms}


def curves(arms: Arms) -> list[str]:
    """The raw numbers, as lines of JSON."""
    lines = []
    for arm, seeds in arms.items():
        for seed, unit in sorted(seeds.items()):
            untouched = arms.get("untouched", {}).get(seed)
            for step in sorted(unit.exams):
                row = {"arm": arm, "seed": seed, "step": step}
                row |= {"score": round(unit.score(step), 5), "parent": round(mean(unit.parent), 5)}
                for name, other in (
                    ("to_parent", unit.parent),
                    ("to_untouched", untouched and untouched.exams[step]),
                ):
                    if other:
                        found = paired(unit.exams[step], other)
                        row[name] = [round(found.mean, 5), round(found.half, 5)]
                lines.append(json.dumps(row))
    return lines


def table(arms: Arms, margin: float) -> str:
    """One row per arm; differences in percentage points of the expected solve rate."""
    last = max(next(iter(arms["untouched"].values())).exams)
    lines = [
        "| arm | at birth | worse / better at birth | back at the parent's level | median steps "
        f"| level with the untouched parent | median steps | to the untouched at step {last} "
        "| verdict |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for arm, seeds in arms.items():
        units = [unit for seed, unit in sorted(seeds.items()) if seed in arms["untouched"]]
        births = [paired(unit.exams[0], unit.parent) for unit in units]
        worse = sum(birth.mean + birth.half < 0 for birth in births)
        better = sum(birth.mean - birth.half > 0 for birth in births)
        moving = [to_untouched(unit, arms["untouched"][unit.seed]) for unit in units]
        still = [recovered(to_parent(unit), margin) for unit in units]
        level = [recovered(differences, margin) for differences in moving]
        ends = [100 * differences[last].mean for differences in moving]
        cells = [
            f"`{arm}`",
            shown(over_seeds([100 * birth.mean for birth in births])),
            f"{worse} / {better} of {len(units)}",
            counted(still),
            middle(still),
            *(("-", "-", "-", "-") if arm == "untouched" else ()),
            *(() if arm == "untouched" else (counted(level), middle(level))),
            *(
                ()
                if arm == "untouched"
                else (shown(over_seeds(ends)), verdict_of(arms, arm, margin))
            ),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def verdict_of(arms: Arms, arm: str, margin: float) -> str:
    """The rule is `recovery.verdict`."""
    untouched = arms["untouched"]
    units = [unit for seed, unit in sorted(arms[arm].items()) if seed in untouched]
    births = [paired(unit.exams[0], unit.parent).mean for unit in units]
    last = max(next(iter(untouched.values())).exams)
    ends = [to_untouched(unit, untouched[unit.seed])[last].mean for unit in units]
    return verdict(births, ends, margin)


def standing(arms: Arms, margin: float) -> str:
    """Whether the table's verdicts mean anything, in a line."""
    found = faults({arm: verdict_of(arms, arm, margin) for arm in arms})
    if found:
        return f"**The test is void**: {'; '.join(found)}.\n"
    return "The test stands: what must not recover does not, and a copy loses nothing.\n"


def shown(found: tuple[float, float]) -> str:
    return f"{found[0]:+.2f} ± {found[1]:.2f}"


def counted(steps: Sequence[int | None]) -> str:
    return f"{sum(step is not None for step in steps)} of {len(steps)}"


def middle(steps: Sequence[int | None]) -> str:
    """The median step, where more than half of the children have one."""
    ranked = sorted(float("inf") if step is None else step for step in steps)
    value = median(ranked)
    return "-" if value == float("inf") else f"{value:g}"


def svg(arms: Arms, base: float) -> str:
    """A panel per arm: its children beside the untouched copies of their parents."""
    shown_arms = [arm for arm in arms if arm != "untouched"]
    steps = sorted(next(iter(arms["untouched"].values())).exams)
    bands = {
        arm: [over_seeds([unit.score(step) for unit in seeds.values()]) for step in steps]
        for arm, seeds in arms.items()
    }
    edges = [
        value + half * sign for band in bands.values() for value, half in band for sign in (-1, 1)
    ]
    known = [edge for edge in edges if edge == edge] or [v for b in bands.values() for v, _ in b]
    low, high, last = min(*known, base), max(known), max(steps)
    level = mean(mean(unit.parent) for unit in arms["untouched"].values())
    columns = 5
    rows = -(-len(shown_arms) // columns)
    width, height = LEFT + columns * (PANEL + GAP), TOP + rows * (PANEL + GAP + 16)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="18" font-size="14">Expected solve rate on the held-out exam over '
        "training steps after the operator (mean and 95% interval over seeds)</text>",
        f'<text x="{LEFT}" y="36" fill="#c2410c">children</text>'
        f'<text x="{LEFT + 70}" y="36" fill="#475569">untouched copies of the better parent</text>'
        f'<text x="{LEFT + 300}" y="36" fill="#888">dashed: the parent when the child was made; '
        "dotted: the base</text>",
    ]
    for number, arm in enumerate(shown_arms):
        x0 = LEFT + number % columns * (PANEL + GAP)
        y0 = TOP + 14 + number // columns * (PANEL + GAP + 16)

        def at(step: float, score: float, x0: int = x0, y0: int = y0) -> tuple[float, float]:
            return x0 + PANEL * step / last, y0 + PANEL * (high - score) / (high - low or 1)

        def line(points: Sequence[tuple[float, float]]) -> str:
            return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)

        parts.append(f'<text x="{x0}" y="{y0 - 5}">{arm}</text>')
        parts.append(
            f'<rect x="{x0}" y="{y0}" width="{PANEL}" height="{PANEL}" fill="none" stroke="#ccc"/>'
        )
        for score, dashes in ((level, "5 4"), (base, "1 3")):
            ends = line([at(0, score), at(last, score)])
            parts.append(
                f'<polyline points="{ends}" stroke="#888" stroke-dasharray="{dashes}" fill="none"/>'
            )
        for score in (low, high):
            parts.append(
                f'<text x="{x0 - 4}" y="{at(0, score)[1] + 4:.1f}" font-size="10" '
                f'text-anchor="end">{100 * score:.1f}%</text>'
            )
        for step in (0, last):
            parts.append(
                f'<text x="{at(step, low)[0]:.1f}" y="{y0 + PANEL + 13}" font-size="10" '
                f'text-anchor="middle">{step}</text>'
            )
        for name, colour in (("untouched", "#475569"), (arm, "#c2410c")):
            band = list(zip(steps, bands[name], strict=True))
            if all(half == half for _, (_, half) in band):
                upper = [at(step, value + half) for step, (value, half) in band]
                lower = [at(step, value - half) for step, (value, half) in reversed(band)]
                outline = line(upper + lower)
                parts.append(f'<polygon points="{outline}" fill="{colour}" opacity="0.15"/>')
            points = line([at(step, value) for step, (value, _) in band])
            parts.append(
                f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
            )
    return "\n".join([*parts, "</svg>"]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--margin", type=float, help="of recovery; default: as recovery.py says")
    arguments = parser.parse_args()
    folder = arguments.folder
    arms = by_arm(read_units(folder))
    if "untouched" not in arms:
        parser.error(f"{folder} has no unit of the arm untouched yet")
    base = json.loads((folder / "settings.json").read_text(encoding="utf-8"))["base_exam"]
    parents = [mean(unit.parent) for unit in arms["untouched"].values()]
    exam = len(next(iter(arms["untouched"].values())).parent)
    margin = margin_of(parents, base) if arguments.margin is None else arguments.margin
    text = (
        f"{len(parents)} seeds, exam of {exam} tasks; base {100 * base:.1f}%, better parents "
        f"{100 * min(parents):.1f}-{100 * max(parents):.1f}%. Percentage points; ± is half of a "
        f"95% t-interval over seeds. Recovered: a loss of {100 * margin:.2f} points is ruled out, "
        "one-sided at 97.5%, at two exams in a row.\n\n"
    )
    text += table(arms, margin) + "\n" + standing(arms, margin)
    (folder / "curves.jsonl").write_text("\n".join(curves(arms)) + "\n", encoding="utf-8")
    (folder / "table.md").write_text(text, encoding="utf-8")
    (folder / "retention.svg").write_text(svg(arms, base), encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
