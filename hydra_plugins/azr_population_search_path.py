"""Lets AZR's own command find the `population` group; nothing else happens without the override."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from typing import Any

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.config_search_path import ConfigSearchPath
from hydra.errors import HydraException
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig

HOST = "absolute_zero_reasoner"


class AzrPopulationSearchPath(SearchPathPlugin):
    """Adds our group of configurations to AZR's applications, and to no others."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Called by Hydra once per application, before it composes the configuration.

        If the command names our group, what Hydra refuses of its overrides ends the process with
        one line: AZR prints a traceback.
        """
        if not any(HOST in element.path for element in search_path.get_path() if element.path):
            if ours := sys.modules.get("azr_population.config.inside_azr"):
                ours.forget_arms()
            return
        from azr_population.config.inside_azr import register_arms

        register_arms()
        overrides = [word for word in sys.argv[1:] if word.lstrip("+").startswith("population")]
        if overrides:
            ConfigLoaderImpl.load_configuration = _in_one_line(  # type: ignore[method-assign]
                ConfigLoaderImpl.load_configuration
            )
            # Hydra would add the key to AZR's own configuration, and stock AZR would start.
            if all(re.match(r"\++population\.", word) for word in overrides):
                from azr_population.hosts.azr.activation import stop

                stop(
                    f"{overrides[0]} is set without a population; add one, such as +population=4t4s"
                )


def _in_one_line(load: Callable[..., DictConfig]) -> Callable[..., DictConfig]:
    """Hydra's loading of a configuration, whose errors end the process with one line."""

    @functools.wraps(load)
    def load_configuration(*arguments: Any, **named: Any) -> DictConfig:
        from azr_population.hosts.azr.activation import stop

        try:
            return load(*arguments, **named)
        except HydraException as error:
            stop(_of_our_keys(str(error)) or str(error))

    return load_configuration


def _of_our_keys(message: str) -> str | None:
    """Our hint where Hydra's `message` is about a key below `population.` that is no setting: with
    the plus that Hydra advises it would be refused as well."""
    from azr_population.config.inside_azr import PopulationSettings
    from azr_population.config.section import unknown_key

    refused = re.search(r"Could not override '(population\.[\w.]+)'", message)
    if refused is None:
        return None
    keys, parent = set(PopulationSettings.keys("population.")), refused[1].rpartition(".")[0]
    names_of_ones_own = parent in keys and not any(key.startswith(f"{parent}.") for key in keys)
    if refused[1] in keys or names_of_ones_own:  # such as evolution.operators
        return None
    return str(unknown_key(PopulationSettings, refused[1], "population."))
