"""Lets AZR's own command find the `population` group; nothing else happens without the override."""

from __future__ import annotations

import sys

from hydra.core.config_search_path import ConfigSearchPath
from hydra.plugins.search_path_plugin import SearchPathPlugin

HOST = "absolute_zero_reasoner"


class AzrPopulationSearchPath(SearchPathPlugin):
    """Adds our group of configurations to AZR's applications, and to no others."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Called by Hydra once per application, before it composes the configuration.

        An override of ours that is unknown ends the process here, with exit code 1 and one line.
        """
        if not any(HOST in element.path for element in search_path.get_path() if element.path):
            if ours := sys.modules.get("azr_population.config.inside_azr"):
                ours.forget_arms()
            return
        from azr_population.config.inside_azr import register_arms

        register_arms()
        if any(argument.lstrip("+").startswith("population") for argument in sys.argv[1:]):
            from azr_population.hosts.azr.activation import stop
            from azr_population.hosts.azr.command_line import override_error

            if mistake := override_error(sys.argv[1:]):
                stop(mistake)
