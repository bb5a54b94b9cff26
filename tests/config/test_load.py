from pathlib import Path

import pytest
from refusals import refuses

from azr_population import registry
from azr_population.config.explained import PAGE, explained
from azr_population.config.load import config_from_file, load_config, to_yaml
from azr_population.config.schema import Config
from azr_population.config.section import groups
from azr_population.errors import UserError
from azr_population.hosts.local.local_plan import resolve

ROOT = Path(__file__).parents[2]


def test_defaults_are_4t4s_on_the_nano_base_with_all_eight_operators():
    config = load_config([])
    assert (config.population.teachers, config.population.students) == (4, 4)
    assert config.base.name == "nano" and len(config.evolution.operators) == 8


@pytest.mark.parametrize(
    ("arm", "teachers", "students"),
    [("single", 0, 0), ("1t1s", 1, 1), ("2t2s", 2, 2), ("4t4s", 4, 4), ("8t8s", 8, 8)],
)
def test_arms_differ_in_members_but_not_in_rows(arm, teachers, students):
    population = load_config([f"population={arm}"]).population
    assert (population.name, population.teachers, population.students) == (arm, teachers, students)
    assert population.batch_size == load_config([]).population.batch_size


def test_new_entries_of_dict_fields_are_ordinary_overrides():
    config = load_config(
        [
            "evolution.operators.dare+full_gaussian=2",
            "evolution.operators.svd_subspace+full_gaussian=0.5",
            "evolution.options.dare.p=0.5",
            "evolution.options.full_gaussian.eps=0.3",
        ]
    )
    evolution = config.evolution
    assert len(evolution.operators) == 10 and evolution.operators["dare+full_gaussian"] == 2
    assert evolution.operators["svd_subspace+full_gaussian"] == 0.5
    assert evolution.options == {"dare": {"p": 0.5}, "full_gaussian": {"eps": 0.3}}


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("population=5t5s", "population"),
        ("run.stepz=3", "run.stepz"),
        ("nonsense=1", "nonsense"),
        ("run.steps=many", "run.steps"),
        ("population.teacher_reward=kind", "population.teacher_reward"),
        ("run.console=mine.View", "run.console"),
        ("evolution.operators.svd=1", "operator"),
        ("evolution.grace_period=-1", "evolution.grace_period"),
        ("population.student_lr=inf", "population.student_lr"),
        ("engine.device=tpu", "engine.device"),
        ("task.types=[code_x]", "task.types"),
        ("task.types=[code_o,code_i,code_o]", "task.types"),
        ("base=gpt5", "base"),
        ("run={stepz: 3}", "run.stepz"),
        ("base=hf", "base.path"),
        ("population.students=0", "population.teachers"),
        ("run.steps", "run.steps"),
        (f"run.seed={'9' * 5_000}", "run.seed"),
        (f"{'k' * 300}=1", "k" * 300),
        ("run.dir=\udcff", "run.dir"),
        ("evolution.operators.dare+layer_wise=1", None),
        ("evolution.operators.dare=much", "evolution.operators.dare"),
        ("evolution.options.dare.p=7", "evolution.options"),
        ("evolution.options.svd_subspace.k=8", "evolution.options"),
        ("evolution.options.dare+full_gaussian.p=1", "evolution.options"),
        ("matchmaking.weighting=fair", "matchmaking.weighting"),
        ("population.student_advantage=mine.above", "population.student_advantage"),
        ("base.lora.rank=1", "evolution.options"),
    ],
)
def test_a_mistake_is_refused_in_one_line_by_its_key(override, key):
    with pytest.raises(UserError) as caught:
        resolve(load_config([override]))
    assert caught.value.key == key and "\n" not in str(caught.value)


def test_a_mix_that_no_survivor_can_use_is_refused_before_the_run():
    crossovers = ("dare", "layer_wise", "svd_subspace", "extrapolative")
    names = load_config([]).evolution.operators
    only = [f"evolution.operators.{n}={1.0 if n in crossovers else 0.0}" for n in names]
    with refuses("evolution.operators"):
        resolve(load_config(["population=2t2s", *only]))
    resolve(load_config(["population=4t4s", *only]))
    resolve(load_config(["population=1t1s", *only]))


def test_a_larger_base_brings_limits_that_suit_it():
    config = load_config(["base=hf", "base.path=somewhere", "task.example_tasks=2"])
    assert (config.task.max_program_chars, config.task.example_tasks) == (4000, 2)
    assert config.base.lora.rank == 32 and config.base.lora.target_modules == ["all-linear"]


def test_a_saved_configuration_comes_back_whole(tmp_path):
    entries = ["evolution.operators.dare+full_gaussian=0.5", "evolution.options.dare.p=0.5"]
    config = load_config(["population=2t2s", "seed=9", *entries])
    path = tmp_path / "config.yaml"
    path.write_text(to_yaml(config))
    assert config_from_file(path) == config
    assert config_from_file(path, ["run.steps=40"]).run.steps == 40
    with refuses("nowhere"):
        config_from_file(tmp_path / "nowhere" / "config.yaml")
    with refuses("run.stepz"):
        config_from_file(path, ["run.stepz=40"])


def test_the_page_of_the_reference_is_the_one_that_is_made():
    """python -m azr_population.config.explained > docs/reference.md"""
    page = Path(__file__).parents[2] / "docs" / "reference.md"
    text = page.read_text(encoding="utf-8")
    assert text == PAGE.format(explained(Config())) and "at most 1048576\n" in text


CHOICES = [f"{group}={option}" for group, options in groups().items() for option in options]


@pytest.mark.parametrize("choice", CHOICES)
def test_the_explained_values_of_every_choice_are_read_back(choice, tmp_path):
    path = tmp_path / "config.yaml"
    config = load_config([choice, *(["base.path=somewhere"] if choice == "base=hf" else [])])
    path.write_text(explained(config))
    assert config_from_file(path) == config


@pytest.mark.parametrize("word", ["students", "student_", "learnability", "torch_cuda"])
def test_a_variable_that_sounds_secret_may_hold_a_word_of_ours(word, monkeypatch):
    monkeypatch.setenv("ACME_TOKEN", word)
    assert load_config([]) == Config.checked(load_config([]).model_dump())
    monkeypatch.setenv("ACME_TOKEN", "hunter2hunter2")
    for key in ("run.dir", "evolution.options.dare", "engine.vllm.x"):
        with refuses("has a secret"):
            load_config([f"{key}=hunter2hunter2"])


@pytest.mark.parametrize("name", ["exp-DeepSeekR1DistillQwen7B", "coder_Qwen25Coder7BInstruct2025"])
def test_a_long_name_of_a_folder_is_taken(name):
    assert load_config([f"run.dir=runs/{name}"]).run.dir == f"runs/{name}"


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("engine.vllm.hf_token=abc", "engine.vllm.hf_token"),
        ("engine.vllm.credentials={a: b}", "engine.vllm.credentials"),
        (f"evolution.options.hf_{'qW8eZt5x' * 3}.p=1", "evolution.options.(hidden)"),
    ],
)
def test_a_secret_is_refused_by_its_key(override, key):
    with refuses(f"{key} has a secret"):
        load_config([override])


def test_paths_are_stored_from_the_root_and_names_on_the_hub_are_not(tmp_path):
    for name in ("base", "founder"):
        Path(name).mkdir()
    config = load_config(
        [
            "base=hf",
            "base.path=./base",
            "population.init_from.student=[founder,org/adapter]",
        ]
    )
    here = Path.cwd()
    assert config.base.path == f"{here}/base"
    assert config.population.init_from["student"] == [f"{here}/founder", "org/adapter"]
    assert load_config(["base=hf", "base.path=org/model"]).base.path == "org/model"


def test_only_what_was_typed_may_be_run(tmp_path, monkeypatch):
    """Not what a folder or a file of somebody else's names."""
    monkeypatch.setattr(registry, "_trusted", set())
    (tmp_path / "config.yaml").write_text(
        to_yaml(Config()).replace("teacher_reward: learnability", "teacher_reward: own.reward")
    )
    stored = config_from_file(tmp_path / "config.yaml")
    with refuses("--trust"):
        resolve(stored)
    assert not registry.trusted("own.reward")
    config_from_file(tmp_path / "config.yaml", ["population.teacher_reward=own.reward"])
    assert registry.trusted("own.reward")


@pytest.mark.parametrize("base", ["nano", "hf"])
def test_programs_end_by_processor_time_long_before_wall_clock(base):
    """Wall-clock time says how busy the machine is."""
    referee = load_config([f"base={base}", "base.path=org/model"]).referee
    assert 0 < 100 * referee.cpu_seconds <= referee.timeout
