"""Charts as SVG, for documents, light and dark."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from azr_population.analysis.charts import CARD, DARK, THEME, Chart, specification

_SIZES = {"labelFontSize": 13, "titleFontSize": 13}
_PRINTED: dict[str, Any] = {
    **{"background": CARD, "padding": 8, "axis": {**THEME["axis"], **_SIZES}},
    "legend": {**THEME["legend"], "labelFontSize": 13},
    "header": {**THEME["header"], **_SIZES},
    "title": {**THEME["title"], "fontSize": 16, "subtitleFontSize": 13, "offset": 12},
}


def to_svg(
    chart: Chart, path: Path, title: str | Sequence[str] = "", below: Sequence[str] = ()
) -> Path:
    """Draws the chart on a card as SVG, the plot 480 pixels wide unless it says otherwise, with
    letters of 9 points or more where it is printed 15 cm wide; equal data gives equal bytes. Where
    the reader's system is dark, so are the colours.

    Args:
        title: the claim, or its lines.
        below: lines in smaller letters under the title: n, the meaning of bands, the paper.
    """
    spec = {**specification(chart), "config": {**THEME, **_PRINTED}}
    spec |= {"width": 480} if spec.get("width") == "container" else {}
    if title:
        lines = [title] if isinstance(title, str) else list(title)
        spec["title"] = {"text": lines, "subtitle": list(below), "subtitlePadding": 6}
    # The converter numbers clip paths on from one drawing to the next.
    ids: dict[str, str] = {}
    # Imported late: runs without charts need not have it.
    import vl_convert

    svg = vl_convert.vegalite_to_svg(spec)
    svg = re.sub(r"\bclip\d+\b", lambda m: ids.setdefault(m[0], f"clip{len(ids)}"), svg)
    night = "".join(
        f'[{attribute}="{light}"]{{{attribute}:{dark}}}'
        for light, dark in DARK.items()
        for attribute in ("fill", "stroke")
        if f'{attribute}="{light}"' in svg
    )
    style = f"<style>@media (prefers-color-scheme:dark){{{night}}}</style>"
    svg = re.sub("(<svg[^>]*>)", rf"\g<1>{style}", svg, count=1)
    path.write_text(svg, encoding="utf-8")
    return path
