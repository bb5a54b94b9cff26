"""What this machine offers to confine programs with: the lines that `doctor` prints."""

import platform
import sys
from dataclasses import replace
from typing import NamedTuple

from azr_population.errors import UserError

from .settings import RefereeSettings
from .worker import Worker


class Layer(NamedTuple):
    """One layer of confinement, as tried in a worker started for the purpose."""

    name: str
    available: bool
    detail: str


def confinement(settings: RefereeSettings | None = None) -> list[Layer]:
    """Start a worker, put every layer in force, see which ones bite, and say so."""
    wanted = replace(settings or RefereeSettings(), workers=1, accept_unconfined=True)
    if not sys.platform.startswith("linux"):
        return [Layer("seccomp", False, f"{platform.system()} has none")]
    worker = Worker(wanted)
    try:
        return [Layer(*layer) for layer in worker.greet()["layers"]]
    except UserError as error:
        return [Layer("seccomp", False, str(error))]
    finally:
        worker.close()
