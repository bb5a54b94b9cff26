"""The table and the figure of a retention experiment, from the finished arms in its folder.

    python recipes/paper/fig6_children/figure.py FOLDER [--margin 0.01]

Writes curves.jsonl (a line per arm, seed and eval: score, and the paired differences with half of
their 95% intervals), table.md and retention.svg to the folder. The rule is in recovery.py.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median

import altair as alt
import pandas as pd
from recovery import (
    EQUIVALENT,
    ArmRun,
    equivalence,
    faults,
    margin_of,
    over_seeds,
    paired,
    read_arm_runs,
    recovered,
    to_parent,
    to_untouched,
    verdict,
)

from azr_population.analysis.charts import SOFT
from azr_population.analysis.statistics import band
from azr_population.analysis.svg import to_svg

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
CONTROLS = ("again", "reset", "noise")
Arms = dict[str, dict[int, ArmRun]]
"""arm -> seed -> its evals"""


def by_arm(arm_runs: Sequence[ArmRun]) -> Arms:
    arms: Arms = {}
    for arm_run in arm_runs:
        arms.setdefault(arm_run.arm, {})[arm_run.seed] = arm_run
    return {arm: arms[arm] for arm in ORDER if arm in arms}


def curves(arms: Arms) -> list[str]:
    """All scores and differences, as lines of JSON."""
    lines = []
    for arm, seeds in arms.items():
        for seed, arm_run in sorted(seeds.items()):
            untouched = arms.get("untouched", {}).get(seed)
            for step in sorted(arm_run.evals):
                row = {"arm": arm, "seed": seed, "step": step}
                row |= {
                    "score": round(arm_run.score(step), 5),
                    "parent": round(mean(arm_run.parent), 5),
                }
                for name, other in (
                    ("to_parent", arm_run.parent),
                    ("to_untouched", untouched and untouched.evals[step]),
                ):
                    if other:
                        difference = paired(arm_run.evals[step], other)
                        row[name] = [round(difference.mean, 5), round(difference.half, 5)]
                lines.append(json.dumps(row))
    return lines


def table(arms: Arms, margin: float) -> str:
    """One row per arm; differences in percentage points."""
    last = max(next(iter(arms["untouched"].values())).evals)
    lines = [
        "| arm | at birth | worse / better at birth | back at the parent's level | median steps "
        f"| level with the untouched parent | median steps | to the untouched at step {last} "
        f"| equal within {100 * EQUIVALENT:g} points (TOST) | verdict |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for arm, seeds in arms.items():
        arm_runs = [arm_run for seed, arm_run in sorted(seeds.items()) if seed in arms["untouched"]]
        births = [paired(arm_run.evals[0], arm_run.parent) for arm_run in arm_runs]
        worse = sum(birth.mean + birth.half < 0 for birth in births)
        better = sum(birth.mean - birth.half > 0 for birth in births)
        moving = [to_untouched(arm_run, arms["untouched"][arm_run.seed]) for arm_run in arm_runs]
        still = [recovered(to_parent(arm_run), margin) for arm_run in arm_runs]
        level = [recovered(differences, margin) for differences in moving]
        ends = [100 * differences[last].mean for differences in moving]
        cells = [
            f"`{arm}`",
            shown(over_seeds([100 * birth.mean for birth in births])),
            f"{worse} / {better} of {len(arm_runs)}",
            counted(still),
            middle(still),
            *(("-", "-", "-", "-", "-") if arm == "untouched" else ()),
            *(() if arm == "untouched" else (counted(level), middle(level))),
            *(
                ()
                if arm == "untouched"
                else (
                    shown(over_seeds(ends)),
                    f"p = {equivalence([end / 100 for end in ends]):.3f}",
                    verdict_of(arms, arm, margin),
                )
            ),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def verdict_of(arms: Arms, arm: str, margin: float) -> str:
    """The arm's verdict by `recovery.verdict`."""
    untouched = arms["untouched"]
    arm_runs = [arm_run for seed, arm_run in sorted(arms[arm].items()) if seed in untouched]
    births = [paired(arm_run.evals[0], arm_run.parent).mean for arm_run in arm_runs]
    last = max(next(iter(untouched.values())).evals)
    ends = [to_untouched(arm_run, untouched[arm_run.seed])[last].mean for arm_run in arm_runs]
    return verdict(births, ends, margin)


def validity(arms: Arms, margin: float) -> str:
    """A line: whether the test is valid."""
    problems = faults({arm: verdict_of(arms, arm, margin) for arm in arms})
    if problems:
        return f"**The test is void**: {'; '.join(problems)}.\n"
    return (
        "The test is valid: `reset` and `noise` do not recover, and a second copy loses nothing.\n"
    )


def shown(estimate: tuple[float, float]) -> str:
    return f"{estimate[0]:+.2f} ± {estimate[1]:.2f}"


def counted(steps: Sequence[int | None]) -> str:
    return f"{sum(step is not None for step in steps)} of {len(steps)}"


def middle(steps: Sequence[int | None]) -> str:
    """The median step; `-` if half of the children or more have none."""
    ranked = sorted(float("inf") if step is None else step for step in steps)
    value = median(ranked)
    return "-" if value == float("inf") else f"{value:g}"


def draw(lines: Sequence[str], base: float, path: Path) -> None:
    """A panel per arm: its children and the untouched copies of their parents, mean and 95%
    interval over seeds. Dashed: the parent when the child was made; dotted: the base."""
    rows = pd.DataFrame(map(json.loads, lines))
    level = rows.loc[rows["arm"] == "untouched", "parent"].mean()
    parts = []
    for arm, arm_rows in rows.groupby("arm", sort=False):
        curves = {seed: of.set_index("step")["score"] for seed, of in arm_rows.groupby("seed")}
        parts.append(band(curves).assign(arm=arm))
    frame = pd.concat(parts)
    untouched = frame[frame["arm"] == "untouched"].assign(line="untouched copies of the parent")
    children = frame[frame["arm"] != "untouched"].assign(line="children")
    panels = list(dict.fromkeys(children["arm"]))
    rows_by_panel = pd.concat([children, *(untouched.assign(arm=arm) for arm in panels)])
    y = alt.Y(
        "value:Q",
        title="solved, axis cut",
        axis=alt.Axis(format=".1%"),
        scale=alt.Scale(zero=False),
    )
    chart = alt.Chart(rows_by_panel).encode(x="step:Q", y=y, color=alt.Color("line:N", title=None))
    references = [
        alt.Chart(rows_by_panel)
        .transform_calculate(at=f"{at}")
        .mark_rule(color=SOFT, strokeDash=dash)
        .encode(y="at:Q")
        for at, dash in ((level, [5, 4]), (base, [1, 3]))
    ]
    layers = alt.layer(
        *references,
        chart.mark_area(opacity=0.16).encode(y=alt.Y("low:Q"), y2="high:Q"),
        chart.mark_line(strokeWidth=2),
        width=130,
        height=110,
    )
    facets = layers.facet(alt.Facet("arm:N", sort=panels, title=None), columns=3)
    below = [
        f"Held-out tasks, greedy, by steps after the operator; lines: means over "
        f"{rows['seed'].nunique()} seeds,",
        "bands: 95% intervals. Dashed: the parent when its child was made; dotted: the base.",
        "The paper (7B): children are back at their parents' level within about 20 steps.",
    ]
    to_svg(facets, path, claim(rows), below)


def claim(rows: pd.DataFrame) -> list[str]:
    """The title: how far from the untouched parents the operators' children end."""
    last = rows[rows["step"] == rows["step"].max()].dropna(subset=["to_untouched"])
    ends = 100 * last["to_untouched"].str[0].groupby(last["arm"]).mean()
    children = ends.drop(["untouched", *CONTROLS], errors="ignore")
    return [
        f"After {rows['step'].max()} steps children of {len(children)} operators are "
        f"{children.min():+.1f} to {children.max():+.1f} points",
        f"from their untouched parents, an untrained member {ends['reset']:+.1f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--margin", type=float, help="margin of recovery; default: see recovery.py")
    arguments = parser.parse_args()
    folder = arguments.folder
    arms = by_arm(read_arm_runs(folder))
    base = json.loads((folder / "settings.json").read_text(encoding="utf-8"))["base_eval"]
    if not arms and (folder / "curves.jsonl").is_file():  # committed results have no arm_runs/
        lines = (folder / "curves.jsonl").read_text(encoding="utf-8").splitlines()
        draw(lines, base, folder / "retention.svg")
        print((folder / "table.md").read_text(encoding="utf-8"))
        return
    if "untouched" not in arms:
        parser.error(f"{folder} has no finished run of the arm untouched yet")
    parents = [mean(arm_run.parent) for arm_run in arms["untouched"].values()]
    tasks = len(next(iter(arms["untouched"].values())).parent)
    margin = margin_of(parents, base) if arguments.margin is None else arguments.margin
    text = (
        f"{len(parents)} seeds, eval of {tasks} tasks; base {100 * base:.1f}%, better parents "
        f"{100 * min(parents):.1f}-{100 * max(parents):.1f}%. Percentage points; ± is half of a "
        f"95% t-interval over seeds. Recovered: a loss of {100 * margin:.2f} points is ruled out, "
        "one-sided at 97.5%, at two consecutive evals.\n\n"
    )
    text += table(arms, margin) + "\n" + validity(arms, margin)
    (folder / "curves.jsonl").write_text("\n".join(curves(arms)) + "\n", encoding="utf-8")
    (folder / "table.md").write_text(text, encoding="utf-8")
    draw(curves(arms), base, folder / "retention.svg")
    print(text)


if __name__ == "__main__":
    main()
