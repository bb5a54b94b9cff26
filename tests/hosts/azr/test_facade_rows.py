"""The facade's tensors and rows over workers in this process; test_facade.py has them under Ray."""

import needs
import pytest
import torch

needs.verl()

import facades  # noqa: E402

from azr_population.config.schema import LearnerConfig  # noqa: E402
from azr_population.engines.assembly import make_engine  # noqa: E402
from azr_population.engines.engine import EngineSettings, PromptBatch  # noqa: E402
from azr_population.hosts.azr.batches import prompt_rows  # noqa: E402
from azr_population.hosts.azr.facade import COMPLETION, _remove_old  # noqa: E402
from azr_population.streams import Streams  # noqa: E402
from azr_population.weights.adapter import LoraSpec  # noqa: E402

WIDTH, SLOTS = 6, [3, 0, 1, 2, 0, 3, 1, 1]


def facade(base, cap=0.0):
    """Over an engine in this process; RayEngine has the same methods."""
    settings = EngineSettings(
        str(base),
        tuple(f"member {slot}" for slot in range(facades.MEMBERS)),
        LoraSpec(4, 8.0),
        learner=LearnerConfig(importance_sampling_cap=cap, micro_batch_tokens=200),
    )
    drawn = [Streams(1).torch(f"adapter {slot}") for slot in range(settings.slots)]
    engine, _ = make_engine(settings, drawn, parallel=True)
    return facades.facade(engine, WIDTH)


def test_every_member_learns_from_its_own_rows(tiny_base):
    group = facade(tiny_base)
    before = [group.engine.read(slot) for slot in range(4)]
    metrics = group.update_actor(facades.batch(group, SLOTS)).meta_info["metrics"]
    assert list(metrics) == [*"0123"]
    for slot, adapter in enumerate(before):
        after = group.engine.read(slot).factors
        assert all(not torch.equal(pair.B, after[n].B) for n, pair in adapter.factors.items())


def test_rows_come_back_in_order_with_their_own_members_numbers(tiny_base):
    group = facade(tiny_base, cap=2.0)
    given = facades.prompts(len(SLOTS))
    output = facades.generated(group, SLOTS)
    assert torch.equal(output.batch["prompts"], given.batch["input_ids"])
    mask = output.batch["attention_mask"][:, 9:]
    sampled = group.compute_log_prob(output).batch["old_log_probs"]
    assert (sampled[mask == 0] == 0).all() and (sampled[mask == 1] < 0).all()
    row = SLOTS.index(2)
    ids = output.batch["responses"][row][mask[row].bool()].tolist()
    prompt = given.batch["input_ids"][row][given.batch["attention_mask"][row].bool()].tolist()
    (chosen,) = group.engine.log_probs([prompt], [ids], [2])
    assert sampled[row, : len(ids)].tolist() == pytest.approx(chosen.tolist(), abs=1e-4)


def test_older_populations_are_removed_but_for_the_one_that_azr_names(tmp_path):
    parts = {n: tmp_path / f"global_step_{n}/actor/population" for n in (8, 9, 10, 11)}
    for folder in parts.values():
        folder.mkdir(parents=True)

    def held():
        return [number for number, folder in parts.items() if folder.is_dir()]

    (tmp_path / "latest_checkpointed_iteration.txt").write_text("9")
    _remove_old(parts[10].parent, 1)  # of a run that went back from step 11
    assert held() == [9, 10, 11]
    (tmp_path / "latest_checkpointed_iteration.txt").write_text("10")
    _remove_old(parts[11].parent, 1)
    assert held() == [10, 11]


def test_a_greedy_validation_is_greedy(tiny_base):
    sampling = facade(tiny_base)._sampling
    assert sampling({"do_sample": False, "validate": True}).temperature == 0.0
    assert sampling({"validate": True}).temperature == sampling({}).temperature == 1.0


def test_what_nobody_routes_is_written_by_the_first_member(tiny_base):
    """AZR's seed tasks."""
    written = facade(tiny_base).generate_sequences(facades.prompts(3))
    assert [row.slot for row in written.non_tensor_batch[COMPLETION]] == [0, 0, 0]


def test_batches_generated_in_one_call_draw_what_they_draw_alone(tiny_base):
    merged, apart = facade(tiny_base), facade(tiny_base)
    given = {"gen_code_o": facades.prompts(8), "pred_code_f": facades.prompts(5)}
    slots = {"gen_code_o": SLOTS, "pred_code_f": [2, 0, 3, 1, 2]}
    batches = {
        name: PromptBatch(prompt_rows(data.batch), slots[name], range(len(data)))
        for name, data in given.items()
    }
    ended = {name: [] for name in given}
    written = merged.prefetch(batches, lambda name, row, _: ended[name].append(row))
    assert {name: sorted(rows) for name, rows in ended.items()} == {
        name: list(range(len(data))) for name, data in given.items()
    }
    for name, data in given.items():
        assert name in merged.ahead and name not in apart.ahead
        apart.prefetch({name: batches[name]}, lambda *_: None)
        with merged.routed(name), apart.routed(name):
            ours, theirs = merged.generate_sequences(data), apart.generate_sequences(data)
        for key in ("responses", "attention_mask"):
            assert torch.equal(ours.batch[key], theirs.batch[key])
        width = [len(completion.token_ids) for completion in written[name]]
        assert ours.batch["attention_mask"][:, 9:].sum(dim=1).tolist() == width
    assert (merged._calls, apart._calls) == (1, 2)
    # What has been generated is not handed out for other prompts.
    merged.prefetch(batches, lambda *finished: None)
    with merged.routed("pred_code_f"), pytest.raises(RuntimeError):
        merged.generate_sequences(facades.prompts(3))
