"""The facade's tensors and rows over workers in this process; test_facade.py has them under Ray."""

import needs
import pytest
import torch

needs.verl()

import facades  # noqa: E402
import numpy as np  # noqa: E402

from azr_population.config.schema import LearnerConfig  # noqa: E402
from azr_population.engines.assembly import make_engine  # noqa: E402
from azr_population.engines.workers.placement import PlacedGroup  # noqa: E402
from azr_population.engines.workers.worker import WorkerSettings  # noqa: E402
from azr_population.hosts.azr.batches import PromptBatch, prompt_rows  # noqa: E402
from azr_population.hosts.azr.facade import SAMPLED  # noqa: E402
from azr_population.runs.streams import Streams  # noqa: E402
from azr_population.weights.adapter import LoraSpec  # noqa: E402

WIDTH, SLOTS = 6, [3, 0, 1, 2, 0, 3, 1, 1]


class Workers:
    """One rank of a group, in this process."""

    world_size = 1

    def __init__(self, settings):
        first = settings.first_member
        drawn = [Streams(1).torch(f"adapter {first + slot}") for slot in range(settings.slots)]
        self.engine, _ = make_engine(settings, drawn, parallel=True)

    def log_prob_rows(self, parts):
        return [self.engine.log_probs(**part) for part in parts]

    def update_rows(self, parts):
        return [self.engine.update(**part) for part in parts]

    def shares_prompts(self):
        return [self.engine.learner.shares_prompts]

    def read_member(self, slot):
        return [self.engine.read(slot)]


class LocalGroup(PlacedGroup):
    """A group of one rank in this process."""

    def stream(self, parts):
        (part,) = parts
        for finished in self.workers.engine.stream(**part):
            yield 0, finished


def facade(base, sizes, cap=0.0):
    groups, first = [], 0
    for size in sizes:
        settings = WorkerSettings(
            str(base),
            tuple(f"member {first + slot}" for slot in range(size)),
            LoraSpec(4, 8.0),
            learner=LearnerConfig(importance_sampling_cap=cap, micro_batch_tokens=200),
            seed=1,
            first_member=first,
        )
        groups.append(LocalGroup(f"group {first}", Workers(settings), first, size))
        first += size
    return facades.facade(groups, settings, WIDTH)


def test_members_in_two_groups_do_what_they_do_in_one(tiny_base):
    one, two = facade(tiny_base, [4]), facade(tiny_base, [2, 2])
    before = [one.read_member(slot) for slot in range(4)]
    ours, theirs = facades.batch(one, SLOTS), facades.batch(two, SLOTS)
    for name in ("responses", "attention_mask", "input_ids", "position_ids"):
        assert torch.equal(ours.batch[name], theirs.batch[name]), name
    assert torch.allclose(ours.batch["old_log_probs"], theirs.batch["old_log_probs"], atol=1e-5)
    metrics = [one.update_actor(ours).meta_info, two.update_actor(theirs).meta_info]
    assert list(metrics[0]["metrics"]) == list(metrics[1]["metrics"]) == [*"0123"]
    assert facades.largest_difference(one, two) < 1e-6
    for slot, adapter in enumerate(before):
        after = one.read_member(slot).factors
        assert all(not torch.equal(pair.B, after[n].B) for n, pair in adapter.factors.items())


def test_rows_come_back_in_order_with_their_own_members_numbers(tiny_base):
    group = facade(tiny_base, [2, 2], cap=2.0)
    given = facades.prompts(len(SLOTS))
    output = facades.generated(group, SLOTS)
    assert torch.equal(output.batch["prompts"], given.batch["input_ids"])
    mask = output.batch["attention_mask"][:, 9:]
    sampled = output.batch[SAMPLED]
    assert (sampled[mask == 0] == 0).all() and (sampled[mask == 1] < 0).all()
    output.non_tensor_batch["member"] = np.array(SLOTS, dtype=object)
    # They are what members learn from.
    assert torch.equal(group.compute_log_prob(output).batch["old_log_probs"], sampled)
    engine = group.groups[1].workers.engine
    row = SLOTS.index(2)
    ids = output.batch["responses"][row][mask[row].bool()].tolist()
    prompt = given.batch["input_ids"][row][given.batch["attention_mask"][row].bool()].tolist()
    (chosen,), _ = engine.log_probs([prompt], [ids], [0])
    assert sampled[row, : len(ids)].tolist() == pytest.approx(chosen.tolist(), abs=1e-4)


def test_batches_generated_in_one_call_draw_what_they_draw_alone(tiny_base):
    merged, apart = facade(tiny_base, [2, 2]), facade(tiny_base, [2, 2])
    given = {"gen_code_o": facades.prompts(8), "pred_code_f": facades.prompts(5)}
    slots = {"gen_code_o": SLOTS, "pred_code_f": [2, 0, 3, 1, 2]}
    batches = {
        name: PromptBatch(
            prompt_rows(data.batch["input_ids"], data.batch["attention_mask"]),
            slots[name],
            range(len(data)),
        )
        for name, data in given.items()
    }
    ended = {name: [] for name in given}
    written = merged.prefetch(batches, lambda name, rows, _: ended[name].extend(rows))
    assert {name: sorted(rows) for name, rows in ended.items()} == {
        name: list(range(len(data))) for name, data in given.items()
    }
    for name, data in given.items():
        assert merged.has(name) and not apart.has(name)
        apart.prefetch({name: batches[name]}, lambda *_: None)
        with merged.routed(slots[name], name), apart.routed(slots[name], name):
            ours, theirs = merged.generate_sequences(data), apart.generate_sequences(data)
        for key in ("responses", "attention_mask"):
            assert torch.equal(ours.batch[key], theirs.batch[key])
        width = [len(completion.token_ids) for completion in written[name]]
        assert ours.batch["attention_mask"][:, 9:].sum(dim=1).tolist() == width
    assert (merged._calls, apart._calls) == (1, 2)
    # What has been generated is not handed out for other prompts.
    merged.prefetch(batches, lambda *finished: None)
    with merged.routed([0, 1, 2], "pred_code_f"), pytest.raises(RuntimeError):
        merged.generate_sequences(facades.prompts(3))
