"""What this machine offers to confine programs with: the lines that `doctor` prints."""

import platform
import sys
from typing import NamedTuple

from azr_population.errors import UserError

from .settings import RefereeSettings
from .worker import Worker


class Layer(NamedTuple):
    """One layer of confinement, as tried in a worker started for the purpose."""

    name: str
    available: bool
    detail: str


def confinement() -> list[Layer]:
    """Start a worker, put every layer in force, see which ones bite, and say so."""
    if not sys.platform.startswith("linux"):
        return [Layer("seccomp", False, f"{platform.system()} has none")]
    worker = Worker(RefereeSettings(workers=1, accept_unconfined=True))
    try:
        return [Layer(*layer) for layer in worker.greet()["layers"]]
    except UserError as error:
        return [Layer("seccomp", False, str(error))]
    finally:
        worker.close()
