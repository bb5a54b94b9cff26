"""Worker groups: processes, the members that each holds, and the detection of dead ones."""

import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError, RayTaskError
from verl.single_controller.ray import RayClassWithInitArgs, RayResourcePool, RayWorkerGroup

from azr_population.engines.workers.worker import EngineWorker, WorkerSettings
from azr_population.errors import UserError

_WAY_OUT = (
    "start fewer workers (engine.workers; inside AZR trainer.n_gpus_per_node and trainer.nnodes), "
    "or give Ray more (ray_init.num_cpus, more nodes)"
)
PATIENCE = 10.0
"""Seconds in which ranks must answer after one has failed; some may wait for a dead rank
forever."""


@dataclass(frozen=True)
class PlacedGroup:
    """A worker group and the range of roster slots that it holds."""

    name: str
    workers: Any
    first: int
    count: int
    places: tuple[str, ...] = ()
    """Where each rank runs: its node, and its GPU where it has one."""

    def __contains__(self, slot: object) -> bool:
        return isinstance(slot, int) and self.first <= slot < self.first + self.count

    def stream(self, parts: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, Any]]:
        """(rank, finished rows) as the ranks yield them; `parts` has each rank's arguments of
        `EngineWorker.stream`."""
        streams = {
            worker.stream.options(num_returns="streaming").remote(**part): rank
            for rank, (worker, part) in enumerate(zip(self.workers.workers, parts, strict=True))
        }
        while streams:
            (ready,), _ = ray.wait(list(streams), num_returns=1)
            try:
                yield streams[ready], ray.get(next(ready))
            except StopIteration:
                del streams[ready]


def start_groups(
    placement: str,
    settings: WorkerSettings,
    teachers: int,
    students: int,
    workers_on_nodes: list[int],
    worker_class: type[EngineWorker] = EngineWorker,
    driver_cpus: int = 0,
) -> list[PlacedGroup]:
    """Starts the worker groups and loads the base in all of them.

    `colocated`: one group with all members on all workers. `split`: proposers hold the teachers on
    the first half of each node's workers, solvers the students on the second half.
    `settings.slots` is the number of all members; Ray counts `driver_cpus` for the trainer.

    Raises UserError: Ray has not the CPUs or GPUs for so many workers.
    """
    if placement == "colocated":
        shares = [("members", 0, settings.slots, workers_on_nodes)]
    else:
        half = [count // 2 for count in workers_on_nodes]
        shares = [("proposers", 0, teachers, half), ("solvers", teachers, students, half)]
    for _, _, _, on_nodes in shares:
        _refuse_uneven(settings, sum(on_nodes))
    _refuse_unless_there_is_room(
        settings.device, [count for *_, on_nodes in shares for count in on_nodes], driver_cpus
    )
    groups = []
    for name, first, count, on_nodes in shares:
        pool = RayResourcePool(
            process_on_nodes=on_nodes,
            use_gpu=settings.device == "cuda",
            max_colocate_count=1,
            # Ray knows placement groups by name, so two runs on one Ray need two names.
            name_prefix=f"population_{name}_{uuid.uuid4().hex[:8]}_",
        )
        names = settings.names[first : first + count]
        group_settings = replace(settings, first_member=first, names=names)
        workers = RayWorkerGroup(
            resource_pool=pool,
            ray_cls_with_init=RayClassWithInitArgs(
                cls=ray.remote(worker_class), settings=group_settings
            ),
            device_name=settings.device,
        )
        groups.append(PlacedGroup(name, workers, first, count))
    return [_loaded(group) for group in groups]


def _refuse_uneven(settings: WorkerSettings, workers: int) -> None:
    """Tensor parallelism takes ranks in groups of equal size, and GPUs."""
    together = settings.rollout.together
    if together > 1 and (settings.device != "cuda" or workers % together):
        raise UserError(
            f"vLLM's tensor_parallel_size={together} takes GPUs in groups of {together}, and a "
            f"group of workers has {workers} on {settings.device}; leave it out, or give what "
            "divides them"
        )


def _loaded(group: PlacedGroup) -> PlacedGroup:
    """The group when every rank has its base."""
    places = watched(
        group.name,
        group.workers,
        group.workers.init_model,
        "it was loading the base: see that node's memory, and what Ray says above",
    )
    return replace(group, places=tuple(places))


def _refuse_unless_there_is_room(device: str, on_nodes: list[int], driver_cpus: int) -> None:
    """Ray would wait for ever for what the cluster does not have.

    `on_nodes` are numbers of workers that have to be on one node each.
    """
    gpus = device == "cuda"
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    needed = {"CPU": sum(on_nodes) + driver_cpus} | ({"GPU": sum(on_nodes)} if gpus else {})
    for kind, count in needed.items():
        there = sum(node.get(kind, 0) for node in nodes)
        if there < count:
            who = f"{sum(on_nodes)} workers{' and the trainer' * bool(driver_cpus)}"
            raise UserError(f"{who} need {count} {kind}s, and Ray has {there:g}; {_WAY_OUT}")
    room = [int(min(node.get("CPU", 0), node.get("GPU", 0) if gpus else 1e9)) for node in nodes]
    for count in sorted(on_nodes, reverse=True):
        # The fullest node that still takes them.
        fits = min((free for free in room if free >= count), default=None)
        if fits is None:
            raise UserError(
                f"{count} workers have to be on one node, and Ray's nodes have room for "
                f"{', '.join(map(str, sorted(room, reverse=True)))} (each needs a CPU"
                f"{' and a GPU' if gpus else ''}); {_WAY_OUT}"
            )
        room[room.index(fits)] -= count


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
        listed = "; ".join(f"rank {rank} of {len(workers.workers)} {how}" for rank, how in deaths)
        raise UserError(
            f"a worker of the population's group {name} died: {listed}; {way_on}"
        ) from error


def cause_of_death(error: RayActorError) -> str:
    """Ray's account of an actor's death without its general advice: process, node and reason."""
    text = " ".join(str(error).split())
    places = {"pid": re.search(r"\bpid: (\d+)", text), "on": re.search(r"\bip: ([\w.:]+)", text)}
    where = " ".join(f"{word} {match[1]}" for word, match in places.items() if match)
    reason = re.search(
        r"Worker exit detail: (.*?)(?: There are some potential root causes|$)", text
    )
    short = reason[1] if reason else text[:300]
    return f"({where or 'where is not known'}): {short.rstrip('. ')}"


def _deaths(workers: Any) -> list[tuple[int, str]]:
    """(rank, how it died) of the dead ranks; one that does not answer in time may be waiting."""
    signs = [worker.__ray_ready__.remote() for worker in workers.workers]
    ray.wait(signs, num_returns=len(signs), timeout=PATIENCE)
    deaths = []
    for rank, sign in enumerate(signs):
        try:
            ray.get(sign, timeout=0)
        except RayActorError as error:
            deaths.append((rank, cause_of_death(error)))
        except RayError:
            continue
    return deaths
