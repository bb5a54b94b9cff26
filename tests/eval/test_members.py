"""Members by their address, and loading them."""

import json
import shutil
from pathlib import Path

import needs
import pytest
import torch
from made_up_problems import adapter
from refusals import refuses

from azr_population.bases.nano import nano_base_path
from azr_population.config.load import load_config, to_yaml
from azr_population.config.schema import PROMPT_DATE
from azr_population.engines.engine import EngineSettings
from azr_population.errors import UserError
from azr_population.eval import members as members_module
from azr_population.eval.members import (
    NO_MEMBERS,
    LoadedMembers,
    find_members,
    one_member,
    plan_of,
)

BASE = nano_base_path()


def names(path, *more):
    return [member.name for member in find_members(path, *more)]


def test_members_of_a_run(played):
    assert names(played) == ["base", "student_0", "student_1", "teacher_0"]
    assert len({member.weights for member in find_members(played)}) == 4


def test_one_member(played):
    for path in (played / "student_1", played / "members/student_1"):
        base, member = find_members(path)
        assert (base.folder, member.folder) == (None, played / "members/student_1")
    assert names(played / "base") == ["base"]
    assert find_members("nano")[-1].base == BASE
    with refuses("student_7"):
        find_members(played / "student_7")
    assert one_member(played / "student_0").folder == played / "members/student_0"
    for address in (played, "nano"):
        with refuses(f"{address} is not one member"):
            one_member(address)
    adapter(played / "members/best", seed=1)
    assert one_member(played / "best").folder == played / "members/best"


def test_an_adapter_of_another_alpha_is_another_member(played):
    member = one_member(played / "student_0")
    before, file = member.weights, member.folder / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"lora_alpha": 3}))
    assert member.weights != before


def test_members_are_of_their_checkpoint_and_the_best_of_its_eval(played):
    evals = {3: 0.4, 5: 0.9, 8: 0.5, 9: 1.0}  # step 9 was lost: the last checkpoint is of step 8
    lines = [{"step": n, "student_1/eval/greedy": evals.get(n, 0.1)} for n in range(1, 10)]
    (played / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert {member.step for member in find_members(played)} == {0, 9}
    (played / "checkpoints/step_8").mkdir(parents=True)
    assert {member.step for member in find_members(played)} == {0, 8}
    for step in (4, 9):  # the second was lost too, and is newer than the members
        adapter(played / f"snapshots/step_{step}/student_1", seed=step)
    every = find_members(played, every=None)
    assert [member.step for member in every] == [0, 4, 8, 8, 8, 9]
    shutil.rmtree(played / "snapshots")
    (played / "config.yaml").write_text("population: {teachers: 1}\n")
    adapter(played / "members/best", seed=1)
    best = one_member(played / "best")
    assert (best.step, best.solves, best.proposes) == (5, True, False)
    (played / "config.yaml").write_text("population: {teachers: 0}\n")
    assert one_member(played / "best").proposes, "of a single agent"


def test_the_first_run_s_rules_are_for_all_and_what_differs_is_said(played, tmp_path, capsys):
    other = tmp_path / "other"
    shutil.copytree(played, other)
    for run, chars in ((played, 111), (other, 222)):
        text = to_yaml(load_config([f"task.max_program_chars={chars}"]))
        (run / "config.yaml").write_text(text)
    for first, second, chars in ((played, other, 111), (other, played, 222)):
        plan = plan_of([*find_members(first), *find_members(second)])
        assert plan.config.task.max_program_chars == chars
        said = capsys.readouterr().err
        assert f"task.max_program_chars={333 - chars}" in said and "by " + first.name in said


def test_members_of_a_gpu_s_run_are_asked_where_there_is_none(played, monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    config = load_config(["engine=torch_cuda"])
    (played / "config.yaml").write_text(to_yaml(config))
    members = find_members(played)
    plan = plan_of(members)
    assert plan.engine.device == "cpu" and "no GPU" in capsys.readouterr().err
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert plan_of(members).engine.device == "cuda"


def test_members_that_vllm_sampled_are_asked_by_torch_where_there_is_none(
    played, monkeypatch, capsys
):
    (played / "config.yaml").write_text(to_yaml(load_config(["engine.rollout=vllm"])))
    monkeypatch.setattr(members_module, "installed", lambda name: False)
    assert plan_of(find_members(played)).engine.rollout == "torch"
    assert "not installed here: torch samples" in capsys.readouterr().err


def test_a_folder_without_a_run_is_asked_as_the_run_beside_it(played, tmp_path):
    prompts = ["base=hf", "base.prompt_format=chat", f"base.path={BASE}", "task.types=[code_i]"]
    (played / "config.yaml").write_text(to_yaml(load_config(prompts)))
    alone = find_members(adapter(tmp_path / "alone"))[1:]
    for members in (find_members(played) + alone, alone + find_members(played)):
        config = plan_of(members).config
        assert (config.base.prompt_format, list(config.task.types)) == ("chat", ["code_i"])


def test_names_of_layers_that_an_adapter_has_not_are_passed_over(played):
    file = played / "members/student_0/adapter_config.json"
    config = json.loads(file.read_text())
    file.write_text(json.dumps(config | {"target_modules": [*config["target_modules"], "c_attn"]}))
    LoadedMembers(find_members(played / "student_0"), EngineSettings("", (), NO_MEMBERS))


def test_a_seed_is_called_by_its_arm_too(played, tmp_path):
    seed = played.rename(tmp_path / "seed_1")
    assert {member.run_label for member in find_members(seed)} == {f"{tmp_path.name}_seed_1"}


def test_members_of_a_role(played, tmp_path):
    module = needs.module("azr_population.eval.benchmark.run", "-e '.[eval]'")
    adapter(tmp_path / "alone/members/agent_0")
    (tmp_path / "alone/config.yaml").write_text("seed: 1\n")

    def chosen(run, members):
        return [member.name for member in module._chosen(find_members(run), members)]

    assert chosen(played, "students") == ["base", "student_0", "student_1"]
    assert chosen(played, "teachers") == ["base", "teacher_0"]
    for members in ("all", "teachers", "students"):
        assert chosen(tmp_path / "alone", members) == ["base", "agent_0"]
    with refuses("members"):
        chosen(played / "teacher_0", "students")


def test_what_cannot_be_asked(tmp_path, played):
    with refuses(str(tmp_path)):
        find_members(tmp_path)
    (played / "members/student_1/adapter_model.safetensors").unlink()
    with refuses("student_1"):
        [member.weights for member in find_members(played)]
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "config.yaml").write_text("seed: 1\n")
    with pytest.raises(UserError):
        find_members(empty)


def test_a_base_that_is_not_here_or_another_one(tmp_path, played):
    folder = adapter(tmp_path / "mine")
    config = json.loads((folder / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = "someone/some-model"
    (folder / "adapter_config.json").write_text(json.dumps(config))
    with refuses("someone/some-model"):
        find_members(folder)
    assert find_members(folder, BASE)[0].base == BASE
    with refuses("--base /nope"):
        find_members(folder, Path("/nope"))
    (played / "environment.json").write_text(json.dumps({"base": "0123456789ab"}))
    with refuses("0123456789ab"):
        find_members(played)


def test_all_adapters_and_the_base_are_one_batch_whatever_their_ranks(played):
    adapter(played / "members/student_9", rank=2)
    members = find_members(played)
    loaded = LoadedMembers(members, EngineSettings("", (), NO_MEMBERS), scores=False)
    assert [loaded.load(member).slot for member in [*members, *members]] == [0, 1, 2, 3, 4] * 2
    bank = loaded.engine.learner.bank
    pair = bank.read(3).factors["model.layers.0.self_attn.q_proj"]
    stored = members[3].adapter()
    (factors,) = stored.factors.values()
    torch.testing.assert_close(
        pair.B @ pair.A * bank.spec.scaling, factors.B @ factors.A * stored.spec.scaling
    )


def test_with_fewer_slots_the_oldest_member_leaves(played):
    base, first, second, _ = find_members(played)
    loaded = LoadedMembers([base, first, second], EngineSettings("", (), NO_MEMBERS), slots=2)

    def update(slot):
        pair = loaded.engine.read(slot).factors["model.layers.0.self_attn.q_proj"]
        return float((pair.B @ pair.A).abs().sum())

    assert [loaded.load(member).slot for member in (base, first)] == [0, 1] and update(0) == 0.0
    assert loaded.load(second).slot == 0 and update(0) > 0.0
    assert loaded.load(second).slot == 0 and loaded.load(base).slot == 1 and update(1) == 0.0


def test_a_member_whose_slot_was_taken_to_score_is_loaded_again(played):
    _, first, second, _ = find_members(played)
    loaded = LoadedMembers([first, second], EngineSettings("", (), NO_MEMBERS), slots=1)
    slot = loaded.load(first).slot
    before = loaded.engine.read(slot)
    loaded.token_scores(loaded.fitted(second.adapter()), [5, 6, 7])
    assert loaded.load(first).slot == slot
    for name, pair in loaded.engine.read(slot).factors.items():
        assert torch.equal(pair.B, before.factors[name].B)


def test_members_of_two_bases_are_refused(played, tmp_path):
    other = shutil.copytree(BASE, tmp_path / "base")
    same = find_members(other)
    assert LoadedMembers([*find_members(played), *same], EngineSettings("", (), NO_MEMBERS))
    weights = other / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\0")
    if weights.read_bytes()[-1:] == (BASE / "model.safetensors").read_bytes()[-1:]:
        weights.write_bytes(weights.read_bytes()[:-1] + b"\1")
    with refuses(str(other)):
        LoadedMembers([*find_members(played), *same], EngineSettings("", (), NO_MEMBERS))


def test_members_of_a_run_inside_azr_are_asked_on_its_date(played):
    model = f"actor_rollout_ref: {{model: {{path: {nano_base_path()}}}}}\n"
    for day, plan_day in (("'1999-12-31'", "1999-12-31"), ("null", PROMPT_DATE)):
        (played / "config.yaml").write_text(f"{model}population: {{prompt_date: {day}}}\n")
        assert plan_of(find_members(played)[1:]).engine.prompt_date == plan_day
    (played / "config.yaml").write_text(f"{model}population: {{prompt_date: '${{oc.env:HOME}}'}}\n")
    with refuses("base.prompt_date"):
        plan_of(find_members(played)[1:])
