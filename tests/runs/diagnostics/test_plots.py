from __future__ import annotations

import math
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import needs
import pytest

from azr_population.errors import UserError
from azr_population.runs.diagnostics import Estimate, plots

needs.module("matplotlib", "matplotlib")

SEEDS = [[(step, 0.1 * seed + 0.01 * step) for step in range(1, 21)] for seed in range(3)]
SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: Path) -> str:
    return " ".join(
        "".join(element.itertext()) for element in ElementTree.parse(svg).iter(f"{SVG}text")
    )


def test_curves_write_both_files_with_their_words(tmp_path: Path) -> None:
    svg, png = plots.curves(
        tmp_path / "figures" / "fig3", "Solve rate", "share", {"4t4s": SEEDS, "single": SEEDS[:1]}
    )
    assert (svg.name, png.name) == ("fig3.svg", "fig3.png")
    assert png.read_bytes().startswith(b"\x89PNG")
    shown = texts(svg)
    for words in ("Solve rate", "share", "step", "4t4s (3 seeds)", "single (1 seed)"):
        assert words in shown


def test_the_same_data_gives_the_same_bytes(tmp_path: Path) -> None:
    arms = {"single": SEEDS[:1], "4t4s": SEEDS}
    estimates = {"single": Estimate(1.0, 0.5, 1.5, 3), "4t4s": Estimate(2.0, math.nan, math.nan, 1)}
    for name in ("a", "b"):
        plots.curves(tmp_path / name, "T", "y", arms, note="n", y_limits=(0, 1), smooth=5)
        plots.bars(tmp_path / f"{name}_bars", "T", "y", estimates)
    for suffix in (".svg", ".png", "_bars.svg", "_bars.png"):
        one, other = ((tmp_path / f"{name}{suffix}").read_bytes() for name in ("a", "b"))
        assert one == other
    assert "dc:date" not in (tmp_path / "a.svg").read_text()


def test_arms_differ_in_more_than_colour(tmp_path: Path) -> None:
    """Each of the first six arms has a dash, a marker and a hatch of its own: no colour needed."""
    dashes = [str(dash) for dash in plots.DASHES]
    for kinds in (dashes, plots.MARKERS, plots.HATCHES, plots.COLOURS):
        assert len(set(kinds)) == len(kinds) >= 6


def test_nothing_recorded_is_said(tmp_path: Path) -> None:
    svg, _ = plots.curves(tmp_path / "empty", "T", "y", {"single": [], "4t4s": [[]]})
    assert "nothing recorded" in texts(svg)
    svg, _ = plots.bars(
        tmp_path / "bars", "T", "y", {"a": Estimate(math.nan, math.nan, math.nan, 0)}
    )
    assert "n = 0" in texts(svg)


def test_smoothing_keeps_the_ends_and_is_named(tmp_path: Path) -> None:
    seed = [(1, 0.0), (2, 3.0), (3, 0.0), (4, 3.0), (5, 0.0)]
    assert plots._smoothed(seed, 1) == [(1, 0.0), (2, 1.0), (3, 2.0), (4, 1.0), (5, 0.0)]
    assert plots._smoothed(seed, 0) == seed
    svg, _ = plots.curves(tmp_path / "smooth", "T", "y", {"a": [seed]}, note="nano", smooth=4)
    assert "nano; means over 5 points" in texts(svg)


def test_without_matplotlib_one_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UserError, match="pip install matplotlib"):
        plots.curves(tmp_path / "x", "T", "y", {})
