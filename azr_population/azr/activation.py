"""The Hydra callback that puts the population into an AZR run. Without it nothing of ours runs.

Hydra calls it in the driver, before AZR's main function, because the `population` group names it.
"""

from __future__ import annotations

import sys
from typing import Any, NoReturn

from hydra.experimental.callback import Callback
from omegaconf import DictConfig


class ActivatePopulation(Callback):
    """Checks the host and the configuration, then puts our trainer in the place of AZR's."""

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Hydra's hook.

        Hydra turns exceptions of callbacks into warnings and would go on with stock AZR, so every
        failure ends the process here, with exit code 1 and one line.
        """
        try:
            activate(config)
        except Exception as error:
            _stop(f"{type(error).__name__}: {error}" if _unexpected(error) else str(error))

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """As `on_run_start`; a sweep would share one `__main__` among its arms."""
        _stop("+population does not work with --multirun; start each arm by itself")


def activate(config: DictConfig) -> None:
    """Replaces `__main__.CodeIORayPPOTrainer`, which AZR's TaskRunner takes with it to its process.

    Raises:
        UserError: the host, the configuration or the base is not one that we can work with.
    """
    from azr_population.azr import preflight
    from azr_population.azr.settings import read_settings

    settings = read_settings(config.population)
    main = sys.modules["__main__"]
    preflight.check_host(main)
    preflight.check_config(config, settings)
    preflight.check_base(config, settings)

    from azr_population.azr.trainer import PopulationTrainer
    from azr_population.azr.upstream import apply_patches

    apply_patches(settings.referee)
    main.CodeIORayPPOTrainer = PopulationTrainer  # type: ignore[attr-defined]


def _unexpected(error: Exception) -> bool:
    from azr_population.errors import UserError

    return not isinstance(error, UserError)


def _stop(message: str) -> NoReturn:
    print(f"azr-population: {' '.join(message.split())}", file=sys.stderr, flush=True)
    raise SystemExit(1)
