"""Starts worker processes on veRL's `single_controller`, and names those that died."""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError, RayTaskError
from verl.single_controller.ray import RayClassWithInitArgs, RayResourcePool, RayWorkerGroup

from azr_population.engines.engine import EngineSettings
from azr_population.engines.workers.worker import EngineWorker
from azr_population.errors import UserError

ANSWER_SECONDS = 10.0
"""Seconds in which a cluster must answer, and ranks after one has failed; some may wait for a dead
rank forever."""


def start_workers(
    settings: EngineSettings,
    on_nodes: Sequence[int],
    worker_class: type[EngineWorker] = EngineWorker,
    driver_cpus: int = 0,
) -> Any:
    """veRL's group of `on_nodes` workers per node; Ray counts `driver_cpus` for the trainer. Raises
    UserError: Ray has not the CPUs or GPUs for so many workers."""
    tensor_parallel_size, on_gpus = settings.tensor_parallel_size, settings.device == "cuda"
    if tensor_parallel_size > 1 and (not on_gpus or sum(on_nodes) % tensor_parallel_size):
        raise UserError(
            f"vLLM's {tensor_parallel_size=} takes GPUs in groups of {tensor_parallel_size}, and "
            f"there are {sum(on_nodes)} workers on {settings.device}; leave it out, or give what "
            "divides them"
        )
    check_room(on_gpus, on_nodes, driver_cpus)
    pool = RayResourcePool(
        process_on_nodes=list(on_nodes),
        use_gpu=on_gpus,
        max_colocate_count=1,
        # Ray knows placement groups by name, so two runs on one Ray need two names.
        name_prefix=f"population_{uuid.uuid4().hex[:8]}_",
    )
    made = RayClassWithInitArgs(cls=ray.remote(worker_class), settings=settings)
    return RayWorkerGroup(pool, made, device_name=settings.device)


def check_room(on_gpus: bool, on_nodes: Sequence[int], driver_cpus: int) -> None:
    """Refuses workers that Ray would wait for forever, with a `UserError`; `on_nodes` are equal."""
    kinds = ("CPU", "GPU") if on_gpus else ("CPU",)
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    room = sorted((int(min(node.get(kind, 0) for kind in kinds)) for node in nodes), reverse=True)
    fitting = sum(free // on_nodes[0] for free in room)
    cpus = sum(node.get("CPU", 0) for node in nodes)
    if fitting < len(on_nodes) or sum(on_nodes) + driver_cpus > cpus:
        trainer = " and the trainer's CPU" if driver_cpus else ""
        raise UserError(
            f"{' + '.join(map(str, on_nodes))} workers, each with a {' and a '.join(kinds)},"
            f"{trainer} do not fit Ray's nodes, which have room for {', '.join(map(str, room))}; "
            "start fewer workers (engine.workers; inside AZR trainer.n_gpus_per_node and "
            "trainer.nnodes), or give Ray more"
        )


@contextmanager
def watched(workers: Any, recovery_hint: str) -> Iterator[None]:
    """In the block veRL's worker group is called.

    A rank whose peer died fails with an error of its own (of gloo or NCCL), which may come first.
    So after any error every rank is asked for a sign of life. `recovery_hint` is what the user can
    do after a death.

    Raises UserError: a worker died, or raised one itself. Other errors of living workers are raised
    as they are.
    """
    try:
        yield
    except RayError as error:
        if isinstance(error, RayTaskError) and isinstance(error.cause, UserError):
            # Ray's is a UserError too, whose message is the worker's whole traceback.
            raise error.cause from error
        if not (deaths := _deaths(workers)):
            raise
        listed = "; ".join(f"rank {rank} of {len(workers.workers)}: {how}" for rank, how in deaths)
        raise UserError(f"a worker of the population died: {listed}; {recovery_hint}") from error


def cause_of_death(error: RayActorError) -> str:
    """Ray's account of an actor's death (process, node, reason) without its general advice."""
    text = " ".join(str(error).split()).partition(" There are some potential root causes")[0]
    return text.removeprefix("The actor died unexpectedly before finishing this task. ").rstrip(".")


def _deaths(workers: Any) -> list[tuple[int, str]]:
    """(rank, how it died) of the dead ranks; one that does not answer in time may be waiting."""
    signs = [worker.__ray_ready__.remote() for worker in workers.workers]
    ray.wait(signs, num_returns=len(signs), timeout=ANSWER_SECONDS)
    deaths = []
    for rank, sign in enumerate(signs):
        try:
            ray.get(sign, timeout=0)
        except RayActorError as error:
            deaths.append((rank, cause_of_death(error)))
        except RayError:
            continue
    return deaths
