"""Worker groups: which processes there are, and which members each of them holds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import ray
from verl.single_controller.ray import RayClassWithInitArgs, RayResourcePool, RayWorkerGroup

from azr_population.azr.worker import PopulationWorker, WorkerSettings
from azr_population.errors import UserError


@dataclass(frozen=True)
class Group:
    """A worker group and the range of roster slots that it holds."""

    name: str
    workers: Any
    first: int
    count: int

    def __contains__(self, slot: object) -> bool:
        return isinstance(slot, int) and self.first <= slot < self.first + self.count


def start_groups(
    placement: str,
    settings: WorkerSettings,
    teachers: int,
    students: int,
    workers_on_nodes: list[int],
    worker_class: type[PopulationWorker] = PopulationWorker,
) -> list[Group]:
    """Starts the worker groups and loads the base in all of them.

    `colocated`: one group with all members on all workers. `split`: proposers hold the teachers on
    the first half of each node's workers, solvers the students on the second half.
    `settings.slots` is the number of all members.

    Raises:
        UserError: Ray has not the CPUs or GPUs for so many workers.
    """
    if placement == "colocated":
        shares = [("members", 0, settings.slots, workers_on_nodes)]
    else:
        half = [count // 2 for count in workers_on_nodes]
        shares = [("proposers", 0, teachers, half), ("solvers", teachers, students, half)]
    _refuse_unless_there_is_room(settings.device, sum(sum(on_nodes) for *_, on_nodes in shares))
    groups = []
    for name, first, count, on_nodes in shares:
        pool = RayResourcePool(
            process_on_nodes=on_nodes,
            use_gpu=settings.device == "cuda",
            max_colocate_count=1,
            name_prefix=f"population_{name}",
        )
        own = replace(settings, slots=count, first_member=first)
        workers = RayWorkerGroup(
            resource_pool=pool,
            ray_cls_with_init=RayClassWithInitArgs(cls=ray.remote(worker_class), settings=own),
            device_name=settings.device,
        )
        groups.append(Group(name, workers, first, count))
    for group in groups:
        group.workers.init_model()
    return groups


def _refuse_unless_there_is_room(device: str, workers: int) -> None:
    """Ray would wait for ever for what the cluster does not have."""
    there = ray.cluster_resources()
    # AZR's TaskRunner, which we are in, has one CPU.
    needed = {"CPU": workers + 1} | ({"GPU": workers} if device == "cuda" else {})
    for kind, count in needed.items():
        if there.get(kind, 0) < count:
            way_out = "set ray_init.num_cpus" if kind == "CPU" else "lower trainer.n_gpus_per_node"
            raise UserError(
                f"{workers} workers and the trainer need {count} {kind}s, and Ray has "
                f"{there.get(kind, 0):g}; {way_out}"
            )
