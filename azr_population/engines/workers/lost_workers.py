"""A worker that died, whichever rank tells of it first."""

import re
from collections.abc import Callable
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError, RayTaskError

from azr_population.errors import UserError

PATIENCE = 10.0
"""Seconds that ranks have to answer once one has failed; some may wait for the dead for ever."""


def watched(name: str, workers: Any, call: Callable[[], Any], way_on: str) -> Any:
    """The result of a call on a worker group.

    A rank whose peer died fails with an error of its own (of gloo or NCCL), which may come first.
    So after any error every rank is asked for a sign of life.

    Args:
        name: of the group, for the message.
        workers: veRL's worker group.
        call: makes the call and waits for it.
        way_on: what the user can do after a death.

    Raises UserError: a worker died, or raised one itself. Other errors of living workers are raised
    as they are.
    """
    try:
        return call()
    except RayError as error:
        if isinstance(error, RayTaskError) and isinstance(error.cause, UserError):
            # Ray's is a UserError too, whose message is the worker's whole traceback.
            raise error.cause from error
        deaths = _deaths(workers)
        if not deaths:
            raise
        told = "; ".join(f"rank {rank} of {len(workers.workers)} {how}" for rank, how in deaths)
        raise UserError(f"a worker of the population's group {name} died: {told}; {way_on}") from (
            error
        )


def cause_of_death(error: RayActorError) -> str:
    """Ray's account of an actor's death without its general advice: process, node and reason."""
    text = " ".join(str(error).split())
    places = {"pid": re.search(r"\bpid: (\d+)", text), "on": re.search(r"\bip: ([\w.:]+)", text)}
    where = " ".join(f"{word} {found[1]}" for word, found in places.items() if found)
    reason = re.search(
        r"Worker exit detail: (.*?)(?: There are some potential root causes|$)", text
    )
    short = reason[1] if reason else text[:300]
    return f"({where or 'where is not known'}): {short.rstrip('. ')}"


def _deaths(workers: Any) -> list[tuple[int, str]]:
    """(rank, how it died) of the dead ranks; one that does not answer in time may be waiting."""
    signs = [worker.__ray_ready__.remote() for worker in workers.workers]
    ray.wait(signs, num_returns=len(signs), timeout=PATIENCE)
    found = []
    for rank, sign in enumerate(signs):
        try:
            ray.get(sign, timeout=0)
        except RayActorError as error:
            found.append((rank, cause_of_death(error)))
        except RayError:
            continue
    return found
