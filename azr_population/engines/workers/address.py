"""Whether anybody answers at the address of a Ray cluster."""

import socket

from azr_population.errors import UserError

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
            f"RAY_ADDRESS={address}: nobody answers there ({error}); start one by "
            "ray start --head, or unset it for a Ray of this run's own"
        ) from error
