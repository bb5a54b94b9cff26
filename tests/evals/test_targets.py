"""Who is asked, and loading them."""

import json

import pytest
from made_up_problems import adapter
from refusals import refuses

from azr_population.bases.nano import nano_base_path
from azr_population.errors import UserError
from azr_population.evals.targets import find_target, find_targets, load_rollout

BASE = nano_base_path()


def names(path, *more):
    return [target.name for target in find_targets(path, *more)]


def test_members_of_a_run(played):
    assert names(played) == ["base", "student_0", "student_1", "teacher_0"]
    assert names(played, "students") == ["base", "student_0", "student_1"]
    assert names(played, "teachers") == ["base", "teacher_0"]
    assert names(played, "best") == ["base", "student_1"]
    assert len({target.weights for target in find_targets(played)}) == 4


def test_the_single_agent_is_teacher_and_student(tmp_path):
    adapter(tmp_path / "run/members/agent_0")
    (tmp_path / "run/config.yaml").write_text("seed: 1\n")
    for members in ("all", "best", "teachers", "students"):
        assert names(tmp_path / "run", members) == ["base", "agent_0"]


def test_one_target(played, tmp_path):
    assert find_target(str(played / "student_1")).folder == played / "members/student_1"
    assert find_target(str(played / "members/student_1")).folder == played / "members/student_1"
    assert find_target(str(played / "base")).folder is None
    assert find_target("nano").base == BASE
    assert find_target(str(adapter(tmp_path / "mine"))).role == "adapter"
    with refuses("student_7"):
        find_target(str(played / "student_7"))


def test_what_cannot_be_asked(tmp_path, played):
    with refuses(str(tmp_path)):
        find_targets(tmp_path)
    (played / "members/student_1/adapter_model.safetensors").unlink()
    with refuses("student_1"):
        [target.weights for target in find_targets(played)]
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "config.yaml").write_text("seed: 1\n")
    with pytest.raises(UserError):
        find_targets(empty)


def test_a_base_that_is_not_here_or_another_one(tmp_path, played):
    folder = adapter(tmp_path / "mine")
    config = json.loads((folder / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = "someone/some-model"
    (folder / "adapter_config.json").write_text(json.dumps(config))
    with refuses("someone/some-model"):
        find_targets(folder)
    assert find_targets(folder, "all", BASE)[0].base == BASE
    (played / "environment.json").write_text(json.dumps({"base": "0123456789ab"}))
    with refuses("0123456789ab"):
        find_targets(played)


def test_adapters_of_one_shape_and_the_base_are_one_batch(played):
    targets = find_targets(played)
    assert sorted(load_rollout(targets).slots.values()) == [0, 1, 2, 3]
    adapter(played / "members/student_9", rank=2)
    with refuses("shapes"):
        load_rollout(find_targets(played))
