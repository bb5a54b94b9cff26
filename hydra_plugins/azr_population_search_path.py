"""Lets AZR's own command find the `population` group; nothing else happens without the override."""

from __future__ import annotations

from hydra.core.config_search_path import ConfigSearchPath
from hydra.plugins.search_path_plugin import SearchPathPlugin

HOST = "absolute_zero_reasoner"


class AzrPopulationSearchPath(SearchPathPlugin):
    """Appends our config directory to the search path of AZR's applications, and of no others."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Called by Hydra once per application."""
        if any(HOST in element.path for element in search_path.get_path() if element.path):
            search_path.append(provider="azr-population", path="pkg://azr_population.azr.conf")
