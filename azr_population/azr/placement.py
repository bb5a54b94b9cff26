"""Worker groups: which processes there are, and which members each of them holds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import ray
from verl.single_controller.ray import RayClassWithInitArgs, RayResourcePool, RayWorkerGroup

from azr_population.azr.worker import PopulationWorker, WorkerSettings


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
    """
    if placement == "colocated":
        shares = [("members", 0, settings.slots, workers_on_nodes)]
    else:
        half = [count // 2 for count in workers_on_nodes]
        shares = [("proposers", 0, teachers, half), ("solvers", teachers, students, half)]
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
