"""Figures for papers, as SVG and PNG: curves with bands over seeds, and bars.

They are safe for the colour-blind (Okabe and Ito's palette) and readable in grey: every arm also
has its own dash, marker or hatch. With the same matplotlib, equal data gives equal bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from azr_population.errors import UserError
from azr_population.runs.diagnostics.statistics import Estimate, Series, band

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito, "Color Universal Design" (2008), without yellow, which is hard to see on paper."""
DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)), (0, (9, 2)), (0, (3, 3)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "|||", "---")

_STYLE: dict[str, Any] = {
    "svg.hashsalt": "azr-population",
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "hatch.linewidth": 0.6,
}


def curves(
    path: str | Path,
    title: str,
    y_label: str,
    arms: Mapping[str, Sequence[Series]],
    note: str = "",
    y_limits: tuple[float, float] | None = None,
    smooth: int = 1,
) -> list[Path]:
    """A thick line per arm, the mean over seeds, with its 95% band, and a thin line per seed.

    `path` has no ending. The band needs two seeds at a step; an arm without points is left out.
    `note` stands below the figure. With `smooth` above 1 each point of a seed is replaced by the
    mean over that many points around it (an odd number), and the note says so.

    Returns:
        The files written: `path.svg`, `path.png`.

    Raises UserError: matplotlib is not installed.
    """
    reach = smooth // 2
    if reach:
        note = f"{note}{'; ' if note else ''}means over {2 * reach + 1} points"
    with _figure(title, y_label, note) as (figure, axes):
        axes.set_xlabel("step")
        for i, (arm, seeds) in enumerate(arms.items()):
            known = [_smoothed(seed, reach) for seed in seeds if seed]
            if not known:
                continue
            colour = COLOURS[i % len(COLOURS)]
            for seed in known if len(known) > 1 else ():
                axes.plot(*zip(*seed, strict=True), color=colour, linewidth=0.5, alpha=0.45)
            points = band(known)
            steps = [step for step, _ in points]
            label = f"{arm} ({len(known)} {'seed' if len(known) == 1 else 'seeds'})"
            axes.plot(
                steps,
                [estimate.mean for _, estimate in points],
                color=colour,
                linestyle=DASHES[i % len(DASHES)],
                marker=MARKERS[i % len(MARKERS)],
                markersize=4,
                markevery=max(1, len(points) // 8),
                linewidth=1.8,
                label=label,
            )
            if len(known) > 1:
                axes.fill_between(
                    steps,
                    [estimate.low for _, estimate in points],
                    [estimate.high for _, estimate in points],
                    color=colour,
                    alpha=0.16,
                    linewidth=0,
                )
        if y_limits:
            axes.set_ylim(*y_limits)
        return _save(figure, axes, path)


def bars(
    path: str | Path, title: str, y_label: str, arms: Mapping[str, Estimate], note: str = ""
) -> list[Path]:
    """A bar per arm with its 95% interval; otherwise as `curves`."""
    with _figure(title, y_label, note) as (figure, axes):
        for i, (arm, estimate) in enumerate(arms.items()):
            if not math.isfinite(estimate.mean):
                continue
            half = estimate.high - estimate.mean
            axes.bar(
                i,
                estimate.mean,
                yerr=half if math.isfinite(half) else None,
                color=COLOURS[i % len(COLOURS)],
                edgecolor="black",
                hatch=HATCHES[i % len(HATCHES)],
                linewidth=0.6,
                width=0.65,
                alpha=0.85,
                capsize=4,
                label=arm,
            )
        axes.set_xticks(
            range(len(arms)),
            [f"{arm}\nn = {estimate.n}" for arm, estimate in arms.items()],
        )
        axes.grid(axis="x", visible=False)
        axes.axhline(0, color="black", linewidth=0.6)
        return _save(figure, axes, path, legend=False)


def _smoothed(seed: Series, reach: int) -> Series:
    """Centred means over `reach` points on either side, over fewer near the ends."""
    means: Series = []
    for i, (step, _) in enumerate(seed):
        reach_here = min(reach, i, len(seed) - 1 - i)
        window = [value for _, value in seed[i - reach_here : i + reach_here + 1]]
        means.append((step, math.fsum(window) / len(window)))
    return means


@contextmanager
def _figure(title: str, y_label: str, note: str) -> Iterator[tuple[Figure, Axes]]:
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UserError(
            "matplotlib is not installed; figures need it: pip install matplotlib"
        ) from error
    # Without pyplot, nothing global is touched and no backend is changed.
    style: Any = {**matplotlib.rcParamsDefault, **_STYLE}
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(5.6, 3.5), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        axes.set_title(title, loc="left", fontsize=10)
        axes.set_ylabel(y_label)
        if note:
            figure.supxlabel(note, fontsize=7, color="#444444")
        yield figure, axes


def _save(figure: Figure, axes: Axes, path: str | Path, legend: bool = True) -> list[Path]:
    if legend and axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8, handlelength=3.5)
    elif legend:
        axes.text(0.5, 0.5, "nothing recorded", transform=axes.transAxes, ha="center")
    stem = Path(path)
    stem.parent.mkdir(parents=True, exist_ok=True)
    files = [stem.with_name(f"{stem.name}{ending}") for ending in (".svg", ".png")]
    figure.savefig(files[0], metadata={"Date": None, "Creator": None})
    figure.savefig(files[1], dpi=200, metadata={"Software": None})
    return files
