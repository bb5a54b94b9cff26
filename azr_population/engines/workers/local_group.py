"""The workers of a local run: on this machine, or on the Ray cluster that RAY_ADDRESS names."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import ray

from azr_population.engines.workers.placement import start_groups
from azr_population.engines.workers.ray_engine import RayEngine
from azr_population.engines.workers.worker import WorkerSettings
from azr_population.errors import UserError, first_line

_SECONDS = 5.0


def check_reachable(address: str) -> None:
    """Raises `UserError` where `address` (`host:port`, as RAY_ADDRESS has it) does not answer.

    Ray itself goes on trying for minutes. `auto` and `local` name no place and are left to Ray.
    """
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise UserError(
            f"RAY_ADDRESS={address}: no Ray answers there ({error}); start one with "
            "ray start --head, or unset it for a Ray of this run's own"
        ) from error


@contextmanager
def ray_engine(settings: WorkerSettings, workers: int, run_dir: str) -> Iterator[RayEngine]:
    """An engine of so many workers, which end with the block; so does a Ray that was started here.

    Raises:
        UserError: there is no such cluster, or it has no room.
    """
    address = os.environ.get("RAY_ADDRESS")
    check_reachable(address or "")
    try:
        ray.init(
            address=address,
            include_dashboard=None if address else False,
            num_cpus=None if address else os.cpu_count(),
            log_to_driver=False,
            configure_logging=False,
        )
    except Exception as error:  # Ray raises no narrower one when a node does not start in time.
        reason = first_line(error)
        if not address:
            raise UserError(f"Ray does not start here: {reason}") from error
        raise UserError(
            f"RAY_ADDRESS={address} cannot be joined: {reason}; if it asks for a token, which Ray "
            "does by itself where there is a ~/.ray/auth_token, set RAY_AUTH_MODE=token"
        ) from error
    try:
        (group,) = start_groups("colocated", settings, 0, 0, [workers])
        way_on = f"azr-population resume {run_dir} continues from the last checkpoint"
        yield RayEngine(group, settings.learner.most_tokens, way_on, settings.rollout.together)
    finally:
        ray.shutdown()
