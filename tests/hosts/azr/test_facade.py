"""The facade and the workers under real Ray and real veRL, on CPUs."""

import needs
import pytest
import torch

needs.verl()
pytestmark = [pytest.mark.slow]

from facades import (  # noqa: E402
    MEMBERS,
    batch,
    facade,
    generated,
    largest_difference,
)
from refusals import refuses  # noqa: E402

from azr_population.config.schema import LearnerConfig  # noqa: E402
from azr_population.engines.base_model import load_base  # noqa: E402
from azr_population.engines.engine import EngineSettings  # noqa: E402
from azr_population.engines.torch_rollout import make_bank  # noqa: E402
from azr_population.engines.workers import placement  # noqa: E402
from azr_population.engines.workers.ray_engine import RayEngine  # noqa: E402
from azr_population.hosts.azr.azr_worker import PopulationWorker  # noqa: E402
from azr_population.streams import Streams  # noqa: E402
from azr_population.weights.adapter import LoraSpec  # noqa: E402

WIDTH = 12
NAMES = ("teacher_0", "teacher_1", "student_0", "student_1")


@pytest.fixture(scope="module")
def make(ray_session, tiny_base):
    """Groups by workers; each is made once."""
    cache = {}

    def make_group(workers=1):
        if workers not in cache:
            settings = EngineSettings(
                base=str(tiny_base),
                names=NAMES,
                lora=LoraSpec(4, 8.0, ("all-linear",)),
                learner=LearnerConfig(
                    importance_sampling_cap=0,
                    micro_batch_tokens=200,
                    gradient_checkpointing=workers > 1,
                ),
                seed=1,
                threads=1,
            )
            engine = RayEngine(settings, [workers], PopulationWorker, 1)
            cache[workers] = facade(engine, WIDTH)
        return cache[workers]

    return make_group


def members(group):
    adapters = [group.engine.read(slot) for slot in range(MEMBERS)]
    return [{k: torch.cat([f.A.flatten(), f.B.flatten()]) for k, f in a.factors.items()}
            for a in adapters]  # fmt: skip


def moved(ours, theirs):
    """The largest change of each member."""
    return [
        max(float((first[name] - other[name]).abs().max()) for name in first)
        for first, other in zip(ours, theirs, strict=True)
    ]


def test_members_are_drawn_from_the_runs_streams(make, tiny_base):
    model, _ = load_base(str(tiny_base), "float32", "cpu")
    generators = [Streams(1).torch(f"adapter {slot}") for slot in range(MEMBERS)]
    bank = make_bank(model, LoraSpec(4, 8.0, ("all-linear",)), generators)
    engine = make().engine
    for slot in range(MEMBERS):
        expected, factors = bank.read(slot).factors, engine.read(slot).factors
        assert all(torch.equal(expected[name].A, factors[name].A) for name in expected)


def test_two_ranks_end_with_the_members_of_one_rank(make):
    single, two = make(1), make(2)
    for slot in range(MEMBERS):
        two.engine.write(slot, single.engine.read(slot))
        single.engine.write(slot, single.engine.read(slot))
    # 11 rows do not split over 2 ranks, member 3 has a single row, member 1 none.
    full_batch = batch(single, [0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 3])
    before = members(single)
    for _ in range(3):
        ours = single.update_actor(full_batch).meta_info["metrics"]
        theirs = two.update_actor(full_batch).meta_info["metrics"]
    assert ours.keys() == theirs.keys() and ours["0"] == pytest.approx(theirs["0"], abs=1e-5)
    assert largest_difference(single, two) < 1e-6
    assert [change > 1e-4 for change in moved(before, members(single))] == [True, False, True, True]
    for slot in range(MEMBERS):
        first, second = (a.factors for a in two.engine.call("call_engine", "read", slot))
        assert all(torch.equal(pair.B, second[name].B) for name, pair in first.items())
    # Tokens, of rows that are uneven too.
    single.begin_step(9), two.begin_step(9)
    ours, theirs = (generated(group, [0, 1, 2, 3, 0]) for group in (single, two))
    assert torch.equal(ours.batch["responses"], theirs.batch["responses"])


def test_a_checkpoint_brings_back_members_and_optimizers(make, tmp_path):
    group = make(2)
    full_batch = batch(group, [0, 1, 2, 3, 0, 1])
    group.update_actor(full_batch)
    path = tmp_path / "global_step_1" / "actor"
    group.save_checkpoint(str(path), None, 1, max_ckpt_to_keep=1)
    group.update_actor(full_batch)
    after = members(group)
    group.load_checkpoint(str(path))
    assert max(moved(members(group), after)) > 1e-5
    group.update_actor(full_batch)
    assert max(moved(members(group), after)) == 0.0
    group.save_checkpoint(str(tmp_path / "global_step_2" / "actor"), None, 2, max_ckpt_to_keep=1)
    assert not (path / "population").exists()


def test_a_rank_that_died_is_named_while_the_others_wait_for_it(make):
    import ray

    group = make(2)
    full_batch = batch(group, [0, 1, 2, 3])
    ray.kill(group.engine.workers.workers[1])
    with refuses("rank 1 of 2"):
        group.update_actor(full_batch)


def test_each_worker_has_a_gpu_of_its_own(ray_session, tiny_base):
    import ray

    # Ray takes our word for it that there are two.
    settings = EngineSettings(str(tiny_base), NAMES, LoraSpec(4, 8.0), "cuda", "bfloat16", seed=1)
    ranks = placement.start_workers(settings, [2], PopulationWorker, 1).workers
    assert ray.get([rank.get_cuda_visible_devices.remote() for rank in ranks]) == ["0", "1"]
    with refuses("3 workers"):
        placement.start_workers(settings, [3], PopulationWorker, 1)


def test_workers_that_no_node_can_hold_together_are_refused(monkeypatch):
    node = {"Alive": True, "Resources": {"CPU": 64.0, "GPU": 4.0}}
    dead = {"Alive": False, "Resources": {"CPU": 64.0, "GPU": 8.0}}
    monkeypatch.setattr(placement.ray, "nodes", lambda: [node, node, dead])
    placement.check_room(True, [4, 4], 1)
    placement.check_room(True, [2, 2, 2, 2], 1)
    for on_nodes in ([8], [3, 3, 3]):
        with refuses("room for 4, 4"):
            placement.check_room(True, on_nodes, 1)
    placement.check_room(False, [63, 63], 2)
    with refuses("64 + 64 workers"):
        placement.check_room(False, [64, 64], 1)


@pytest.mark.parametrize(("device", "workers"), [("cuda", 3), ("cpu", 2)])
def test_workers_that_do_not_make_whole_groups_are_refused(tiny_base, device, workers):
    parallel = {"tensor_parallel_size": 2}
    settings = EngineSettings(str(tiny_base), NAMES, LoraSpec(4, 8.0), device, vllm=parallel)
    with refuses("tensor_parallel_size=2"):
        placement.start_workers(settings, [workers])
