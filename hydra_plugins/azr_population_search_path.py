"""Lets AZR's own command find the `population` group; nothing else happens without the override."""

from __future__ import annotations

import sys
from types import TracebackType

from hydra.core.config_search_path import ConfigSearchPath
from hydra.errors import HydraException
from hydra.plugins.search_path_plugin import SearchPathPlugin

HOST = "absolute_zero_reasoner"


class AzrPopulationSearchPath(SearchPathPlugin):
    """Adds our group of configurations to AZR's applications, and to no others."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Called by Hydra once per application, before it composes the configuration.

        If the command names our group, what Hydra says of its overrides is printed in one line:
        AZR's scripts set HYDRA_FULL_ERROR, which buries it under a traceback.
        """
        if not any(HOST in element.path for element in search_path.get_path() if element.path):
            if ours := sys.modules.get("azr_population.config.inside_azr"):
                ours.forget_arms()
            return
        from azr_population.config.inside_azr import register_arms

        register_arms()
        ours = [word for word in sys.argv[1:] if word.lstrip("+").startswith("population")]
        if ours:
            sys.excepthook = _print_in_one_line
        # Hydra would add the key to AZR's own configuration, and stock AZR would start.
        if all(word.startswith("+population.") for word in ours) and ours:
            from azr_population.hosts.azr.activation import stop

            stop(f"{ours[0]} is set without a population; add one, such as +population=4t4s")


def _print_in_one_line(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Stands in for `sys.excepthook`."""
    if isinstance(error, HydraException):
        print(f"azr-population: {' '.join(str(error).split())}", file=sys.stderr, flush=True)
    else:
        sys.__excepthook__(kind, error, trace)
