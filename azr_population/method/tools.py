"""What members are asked with, and what judges them."""

from __future__ import annotations

from dataclasses import dataclass

from azr_population.domains.code.formats import Format
from azr_population.engines.text import TextEngine
from azr_population.referee import Referee


@dataclass(frozen=True)
class Tools:
    """The engine that speaks and learns for members, how it is asked, and the referee."""

    engine: TextEngine
    referee: Referee
    format: Format
