"""The override: found in AZR's applications only, inert without it, loud where it cannot work."""

import sys
from dataclasses import replace

import needs
import pytest
from hydra import compose, initialize_config_dir
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.errors import HydraException
from omegaconf import OmegaConf
from refusals import refuses

from azr_population.config.schema import Config
from azr_population.engines.engine import EngineSettings
from azr_population.errors import UserError
from azr_population.hosts.azr import activation, checks
from azr_population.hosts.azr.activation import ActivatePopulation
from azr_population.hosts.azr.azr_plan import AzrPlan, resolve
from azr_population.hosts.azr.settings import (
    PopulationSettings,
    as_typed,
    plain_values,
    read_settings,
)
from azr_population.weights.adapter import LoraSpec

pytestmark = pytest.mark.usefixtures("vllm_is_there")

ARMS = {"single": 0, "1t1s": 1, "2t2s": 2, "4t4s": 4, "8t8s": 8}

HOST_CONFIG = """
data: {train_batch_size: 64, max_prompt_length: 6144, max_response_length: 8096}
algorithm: {adv_estimator: reinforce_plus_plus, gamma: 1.0, use_kl_in_reward: false}
actor_rollout_ref:
  model: {path: no/such/folder}
  actor:
    {use_kl_loss: false, ppo_epochs: 1, entropy_coeff: 0.0, loss_agg_mode: token-mean,
     optim: {lr: 1e-6}}
  rollout: {n: 1, mode: sync, temperature: 1.0}
reward_model: {enable: false}
trainer: {critic_warmup: 0, n_gpus_per_node: 8, nnodes: 1}
azr:
  problem_types: [code_i, code_o, code_f]
  train_propose: true
  pretrain_pred_steps: -1
  seed_dataset: null
  code_f_seed_dataset: null
  data_selection_strategy: {update_iteration: 1}
"""


def check(config):
    """Raises the first fault of a command."""
    for fault in checks.faults(config, resolve(config)):
        raise fault


def composed(folder, overrides):
    """The configuration of an application whose own config lies in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "app.yaml").write_text(HOST_CONFIG)
    with initialize_config_dir(str(folder), version_base=None):
        return compose("app", overrides, return_hydra_config=True)


@pytest.fixture
def host(tmp_path):
    return tmp_path / "absolute_zero_reasoner" / "configs"


def test_without_the_override_the_configuration_is_as_before(host, tmp_path):
    ours = composed(host, [])
    assert "population" not in ours and ours.hydra.callbacks == {}


def test_other_applications_do_not_see_the_group(host, tmp_path):
    for _ in range(2):
        assert composed(host, ["+population=4t4s"]).population.teachers == 4
        # Where there is no such group, it is a key with a value.
        assert composed(tmp_path / "other" / "conf", ["+population=4t4s"]).population == "4t4s"


def test_an_arm_of_ones_own_starts_from_the_same_defaults(host, tmp_path):
    folder = tmp_path / "own" / "population"
    folder.mkdir(parents=True)
    (folder / "5t5s.yaml").write_text(
        "# @package _global_\ndefaults:\n  - /population_defaults/inside_azr\n  - _self_\n"
        "population: {name: 5t5s, teachers: 5, students: 5}\n"
    )
    path = f"hydra.searchpath=[file://{folder.parent}]"
    config = composed(host, [path, "+population=5t5s", "population.seed=3"])
    settings = read_settings(config.population)
    assert (settings.teachers, settings.seed, settings.evolution.interval) == (5, 3, 5)
    assert "azr_population" in config.hydra.callbacks


@pytest.mark.parametrize("arm", ARMS)
def test_every_arm_is_sound_and_names_the_callback(host, arm):
    config = composed(host, [f"+population={arm}"])
    settings = read_settings(config.population)
    assert (settings.name, settings.teachers, settings.students) == (arm, ARMS[arm], ARMS[arm])
    assert settings.teacher_reward == ("stock" if arm == "single" else "learnability")
    target = config.hydra.callbacks.azr_population["_target_"]
    assert target == "azr_population.hosts.azr.activation.ActivatePopulation"
    check(config)


def test_every_setting_has_the_default_of_its_field(host):
    config = composed(host, ["+population=4t4s"])
    settings = read_settings(config.population)
    expected = PopulationSettings()
    expected.evolution.operators = settings.evolution.operators
    assert settings == expected and len(settings.evolution.operators) == 8


@pytest.mark.parametrize(
    "override",
    [
        "population.teacher_reward=kind",
        "population.callbacks=[kind]",
        "population.teachers=0",
        "population.matchmaking.weighting=fair",
        "population.batch_size=100",
        "algorithm.adv_estimator=gae",
        "actor_rollout_ref.actor.use_kl_loss=true",
        "algorithm.use_kl_in_reward=true",
        "+actor_rollout_ref.model.lora_rank=16",
        "trainer.critic_warmup=3",
        "azr.problem_types=[code_i,code_x]",
        "azr.train_propose=false",
        "azr.seed_dataset=no/such/file.jsonl",
        "trainer.n_gpus_per_node=0",
        "trainer.nnodes=0",
    ],
)
def test_what_cannot_work_is_refused_by_its_key(host, override):
    config = composed(host, ["+population=4t4s", override])
    with refuses(override.lstrip("+").partition("=")[0]):
        check(config)


@pytest.mark.parametrize("override", ["grad_clip=0", "optim.weight_decay=-1"])
def test_what_the_learner_cannot_take_is_refused_by_azrs_key(host, override):
    typed = f"actor_rollout_ref.actor.{override}"
    with pytest.raises(UserError) as refused:
        resolve(composed(host, ["+population=4t4s", f"+{typed}"]))
    assert as_typed(str(refused.value)).startswith(f"{typed} is refused: ")


def test_every_match_needs_a_proposal_of_each_type(host):
    few = ["population.batch_size=6", "population.students=32"]
    config = composed(host, ["+population=4t4s", *few])
    with refuses("population.teachers"):
        check(config)
    # Each of four teachers meets two of eight students, by two rows of each type.
    check(composed(host, ["+population=4t4s", "population.batch_size=6", "population.students=8"]))
    with refuses("population.batch_size=120000"):
        check(composed(host, ["+population=4t4s", "data.train_batch_size=20000"]))


def test_a_base_without_the_layers_or_the_context_is_refused(tmp_path):
    from transformers import GPT2Config

    GPT2Config(n_embd=32, n_layer=1, n_head=2).save_pretrained(tmp_path)
    config = OmegaConf.create(
        {
            "actor_rollout_ref": {"model": {"path": str(tmp_path)}},
            "data": {"max_prompt_length": 1000, "max_response_length": 24},
        }
    )
    engine = EngineSettings(str(tmp_path), ("agent_0",), LoraSpec(8, 16.0))
    plan = AzrPlan(Config(), None, None, engine, settings=PopulationSettings(), rows=1)
    checks.check_base(config, plan)
    config.data.max_response_length = 25
    with refuses("data.max_response_length=25"):
        checks.check_base(config, plan)
    config.data.max_response_length = 24
    on_queries = replace(plan.engine, lora=LoraSpec(8, 16.0, ("q_proj",)))
    with refuses("q_proj"):
        checks.check_base(config, replace(plan, engine=on_queries))


def test_elsewhere_than_in_azr_the_process_ends(host, capsys):
    with pytest.raises(SystemExit) as caught:
        ActivatePopulation().on_run_start(composed(host, ["+population=4t4s"]))
    message = capsys.readouterr().err
    assert caught.value.code == 2
    assert message.count("\n") == 1 and "absolute_zero_reasoner.main_azr_ppo" in message


def test_a_fault_of_ours_ends_the_process_with_its_traceback(host, capsys, monkeypatch):
    monkeypatch.setattr(activation, "activate", lambda config: 1 / 0)
    with pytest.raises(SystemExit, match="1"):
        ActivatePopulation().on_run_start(composed(host, ["+population=4t4s"]))
    message = capsys.readouterr().err
    assert message.startswith("Traceback") and "azr-population: ZeroDivisionError" in message


def test_a_line_of_the_shared_code_has_the_key_of_azrs_command(capsys):
    """A callback that fails in the middle of a run is named as in a local run."""
    for message in ("callbacks=my.Own: KeyError", "population.callbacks=my.Own: KeyError"):
        with pytest.raises(SystemExit, match="2"):
            activation.stop(message)
        assert capsys.readouterr().err == "azr-population: population.callbacks=my.Own: KeyError\n"


def test_seed_files_must_hold_a_students_rows(host, tmp_path):
    seeds = tmp_path / "seeds.jsonl"
    seeds.write_text("{}\n" * 60)
    overrides = ["+population=4t4s", f"azr.seed_dataset={seeds}"]
    config = composed(host, overrides)
    with refuses("60"):
        check(config)
    fewer = [*overrides, "population.batch_size=300"]
    check(composed(host, fewer))
    assert resolve(composed(host, fewer)).rows == 50
    rounds = "azr.data_selection_strategy.update_iteration=2"
    with refuses("holds 60 tasks, and 100 different ones"):
        check(composed(host, [*fewer, rounds]))
    # AZR reads these for code_f alone, too.
    with refuses("azr.seed_dataset"):
        check(composed(host, [*overrides, "azr.problem_types=[code_f]"]))
    induction = ["+population=4t4s", f"azr.code_f_seed_dataset={seeds}"]
    with refuses("azr.code_f_seed_dataset"):
        check(composed(host, induction))
    check(composed(host, [*induction, "azr.problem_types=[code_o]"]))
    seeds.write_bytes(b"\x1f\x8b\x08")  # as of gzip
    with refuses(f"azr.seed_dataset={seeds} cannot be read"):
        check(composed(host, overrides))


def test_training_files_must_hold_a_batch(host, tmp_path):
    pyarrow = needs.module("pyarrow", "pyarrow")
    parquet = needs.module("pyarrow.parquet", "pyarrow")
    files = tmp_path / "train.parquet"
    parquet.write_table(pyarrow.table({"prompt": ["x"] * 48}), files)
    overrides = ["+population=4t4s", f"+data.train_files={files}"]
    with refuses(f"data.train_files={files} holds 48 rows, fewer than a batch of 64"):
        check(composed(host, overrides))
    check(composed(host, [*overrides, "data.train_batch_size=48"]))
    check(composed(host, [overrides[0], f"+data.train_files=[{files},{files}]"]))
    files.write_text("{}")
    with refuses(f"data.train_files={files} cannot be read"):
        check(composed(host, overrides))


@pytest.fixture
def typed(monkeypatch):
    """Sets the words of the command; Hydra is put back as it was."""
    monkeypatch.setattr(ConfigLoaderImpl, "load_configuration", ConfigLoaderImpl.load_configuration)
    return lambda *words: monkeypatch.setattr(sys, "argv", ["main", *words])


@pytest.mark.parametrize(
    ("overrides", "name"),
    [
        (["+population=5t5s"], "4t4s"),
        (["population=4t4s"], "+population=4t4s"),
        (["+population=4t4s", "population.sed=1"], "did you mean population.seed?"),
        (
            ["+population=4t4s", "population.evolutoin.interval=1"],
            "did you mean population.evolution.interval?",
        ),
        (["+population=4t4s", "population.evolution.operators.mine=1"], "+population.evolution"),
        (["population.seed=3"], "population.seed"),
        (["+population=4t4s", "population.seed=[1"], "[1"),
        (["+population.seed=3"], "+population=4t4s"),  # stock AZR would start
        (["++population.seed=3"], "+population=4t4s"),
    ],
)
def test_what_hydra_refuses_is_one_line(overrides, name, host, typed, capsys):
    typed(*overrides)
    with pytest.raises(SystemExit):
        composed(host, overrides)
    message = capsys.readouterr().err
    assert message.startswith("azr-population: ") and message.count("\n") == 1 and name in message


def test_other_applications_and_other_commands_are_left_alone(host, tmp_path, typed):
    typed("+population.seed=3")
    composed(tmp_path / "another" / "configs", ["+population.seed=3"])
    typed("trainer.project_name=population")
    with pytest.raises(HydraException):
        composed(host, ["no.such=1"])


def test_the_environment_is_neither_stored_nor_told(host, monkeypatch):
    monkeypatch.setenv("PLANTED", "pl4nted")
    asked = [
        "+a=${oc.env:PLANTED}",
        "+b=${a}",
        "+c=\\${oc.env:PLANTED}",
        "+d=${b}x${trainer.nnodes}",
    ]
    config = composed(
        host, ["+population=1t1s", *(f"{k}='{v}'" for k, v in (x.split("=", 1) for x in asked))]
    )
    OmegaConf.set_struct(config, False)
    del config.hydra
    stored = plain_values(config)
    assert "pl4nted" not in str(stored) and stored["b"] == "${oc.env:PLANTED}"
    assert stored["d"] == "${oc.env:PLANTED}x1" and stored["trainer"]["nnodes"] == 1
    config = composed(host, ["+population=1t1s", "population.student_lr='${oc.env:PLANTED}'"])
    with refuses("population.student_lr"):
        read_settings(config.population)
    assert plain_values(config.population)["student_lr"] == "${oc.env:PLANTED}"


def test_an_actor_that_the_trainer_waits_for_is_not_taken_for_azrs_taskrunner():
    ray = needs.module("ray", "-e '.[verl]'")
    died = ray.exceptions.ActorDiedError()
    assert activation.user_message(died).startswith("AZR's TaskRunner (trainer and executor) died")
    asked = ray.exceptions.RayTaskError("run", "its traceback", died)
    assert activation.user_message(asked) is None
    told = ray.exceptions.RayTaskError("run", "its traceback", UserError("a mistake"))
    assert activation.user_message(told) == "a mistake"
