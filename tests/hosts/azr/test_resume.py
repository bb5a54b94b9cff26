"""What AZR's trainer does before a run's first step and when the run goes on."""

import re
from types import SimpleNamespace

import needs
import pytest
from omegaconf import OmegaConf
from refusals import refuses

from azr_population.config.inside_azr import PopulationSettings
from azr_population.runs import RunDirectory

pytestmark = pytest.mark.azr
TRAINER = "absolute_zero_reasoner.trainer.ppo.azr_ray_trainer"
DATED = "{{ strftime_now('%d %b %Y') }}|{% for m in messages %}{{ m['content'] }}{% endfor %}"


def command(**population):
    """AZR's configuration, as far as the beginning of a run reads it."""
    return OmegaConf.create({
        "population": population, "trainer": {"device": "cpu"},
        "data": {"max_prompt_length": 100, "max_response_length": 20},
        "azr": {"data_selection_strategy": {"update_iteration": 1}},
        "actor_rollout_ref": {"rollout": {}, "model": {"path": "base"}, "actor": {}},
    })  # fmt: skip


def test_prompts_of_azrs_data_sets_have_the_runs_date(tokenizer, tmp_path, monkeypatch, capsys):
    needs.from_azr(TRAINER)
    import pandas
    from absolute_zero_reasoner.utils.dataset.rl_dataset import RLHFDataset

    from azr_population.hosts.azr import trainer
    from azr_population.hosts.azr.settings import engine_settings

    class Started(Exception):
        pass

    def start(self, *args, **kwargs):
        raise Started

    monkeypatch.setattr(trainer.PopulationTrainer.__mro__[1], "__init__", start)
    monkeypatch.setattr(trainer, "apply_patches", lambda referee: [])
    settings = PopulationSettings(prompt_date="1999-12-31", rollout="torch")
    plan = SimpleNamespace(settings=settings, rows=2, engine=engine_settings(command(), settings))
    tokenizer.chat_template = DATED
    with pytest.raises(Started):
        trainer.PopulationTrainer(plan, config=command(), tokenizer=tokenizer)
    assert "population.prompt_date=1999-12-31" in capsys.readouterr().out

    row = {"prompt": [{"role": "user", "content": "x"}], "data_source": "x", "extra_info": {}}
    pandas.DataFrame([row | {"extra_info": {"index": 0}}]).to_parquet(tmp_path / "rows.parquet")
    data = RLHFDataset(
        parquet_files=str(tmp_path / "rows.parquet"), tokenizer=tokenizer, prompt_key="prompt",
        max_prompt_length=100, filter_prompts=True, truncation="error",
    )  # fmt: skip
    text = tokenizer.decode(data[0]["input_ids"], skip_special_tokens=True)
    assert re.sub(r"\s", "", text) == "31Dec1999|x"


def played(folder="checkpoints", **population):
    """A configuration as a run records it."""
    lora = {"rank": 8, "alpha": 8.0}
    settings = {
        "lora": lora, "prompt_date": "1999-12-31", "generate_tokens": 100,
        "validate_members": "all",
    } | population  # fmt: skip
    return {
        "population": settings,
        "trainer": {"default_local_dir": folder, "save_freq": 5},
        "actor_rollout_ref": {"model": {"path": "base"}, "actor": {"optim": {"lr": 1e-6}}},
    }


@pytest.mark.parametrize(
    ("changed", "refused"),
    [
        ({"prompt_date": "2026-01-01"}, "population.prompt_date"),
        ({"lora": {"rank": 8, "alpha": 16.0}}, "population.lora.alpha"),
        ({"evolution": {"operators": {"dare": 1.0}}}, "population.evolution.operators.dare"),
        ({"generate_tokens": 50}, None),
        ({"validate_members": "best"}, None),
    ],
)
def test_a_run_goes_on_with_its_own_settings(tmp_path, changed, refused):
    needs.from_azr(TRAINER)
    from azr_population.hosts.azr.trainer import open_run

    run = open_run(played(), tmp_path / "run", {}, resumes=True)
    assert run.config()["population"]["prompt_date"] == "1999-12-31"
    other = played(**changed)
    assert open_run(other, run.path, {}, resumes=True).path == run.path, "nothing was played yet"
    run.append("metrics", [{"step": 1}])
    assert open_run(played(), run.path, {}, resumes=True).path == run.path
    if refused:
        with refuses(refused):
            open_run(other, run.path, {}, resumes=True)
    else:
        open_run(other, run.path, {}, resumes=True)
    with refuses("holds a run already"):
        open_run(played(), run.path, {}, resumes=False)


def test_a_run_goes_on_on_its_own_base(tmp_path, monkeypatch):
    needs.from_azr(TRAINER)
    from azr_population.hosts.azr import trainer

    monkeypatch.setattr(trainer, "fingerprint", lambda path: "aaaa")
    run = trainer.open_run(played(), tmp_path / "run", {}, resumes=True)
    run.append("metrics", [{"step": 1}])
    trainer.open_run(played(), run.path, {}, resumes=True)
    monkeypatch.setattr(trainer, "fingerprint", lambda path: "bbbb")
    with refuses("aaaa"):
        trainer.open_run(played(), run.path, {}, resumes=True)


@pytest.mark.parametrize(
    ("folder", "steps", "every", "erased"),
    [
        ("checkpoints", 5, 5, True),  # it ended before or in its first checkpoint
        ("checkpoints", 6, 5, False),
        ("checkpoints", 1, -1, False),
        ("elsewhere", 1, 5, False),
        ("elsewhere", 0, 5, True),
    ],
)
def test_steps_without_their_checkpoint_are_not_erased(tmp_path, folder, steps, every, erased):
    needs.from_azr(TRAINER)
    from azr_population.hosts.azr.trainer import open_run, refuse_to_erase

    first = played()
    first["trainer"]["save_freq"] = every
    run = open_run(first, tmp_path / "run", {}, resumes=True)
    run.append("metrics", [{"step": step} for step in range(1, steps + 1)])
    if erased:
        refuse_to_erase(run, played(folder))
    else:
        with refuses(f"has {steps} steps, and AZR finds no checkpoint"):
            refuse_to_erase(run, played(folder))


@pytest.mark.parametrize(("recorded", "continues"), [([1, 2, 3, 4], True), ([1, 2], False)])
def test_lost_steps_are_refused_before_anything_is_cut(tmp_path, monkeypatch, recorded, continues):
    """The checkpoint is of step 3; a fourth step was played after it."""
    needs.from_azr(TRAINER)
    from azr_population.hosts.azr import trainer as module

    directory = RunDirectory(tmp_path / "run")
    directory.create("trainer: {total_training_steps: 9}\n", {})
    directory.append("metrics", [{"step": step} for step in recorded])
    directory.append("matches", [{"step": step} for step in (1, 2, 3, 4)])
    trainer = object.__new__(module.PopulationTrainer)
    trainer.directory, trainer.settings = directory, SimpleNamespace(name="4t4s")
    trainer._played = played()
    trainer.view, trainer.population, trainer.total_training_steps = None, None, 9

    def load(self):
        self.global_steps = 3

    monkeypatch.setattr(module.PopulationTrainer.__mro__[1], "_load_checkpoint", load)
    monkeypatch.setattr(module, "show_start", lambda *_: None)
    if continues:
        trainer._load_checkpoint()
        assert [row["step"] for row in directory.read("matches")] == [1, 2, 3]
        assert directory.config()["population"]["generate_tokens"] == 100, "what is played now"
        assert directory.config()["trainer"]["total_training_steps"] == 8
        return
    with refuses("metrics.jsonl ends at step 2, and the checkpoint is of step 3"):
        trainer._load_checkpoint()
    assert [row["step"] for row in directory.read("matches")] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("value", "named"), [("25", "step_3 is damaged"), (1e300, "step_3 holds 1e+300 in roster.0.mu")]
)
def test_a_damaged_checkpoint_is_one_line(tmp_path, monkeypatch, value, named):
    needs.verl()
    from azr_stand_in import population_of

    from azr_population.hosts.azr import facade
    from azr_population.runs.checkpoint import Checkpoint

    population = population_of(PopulationSettings())
    state = population.state()
    state["roster"][0]["mu"] = value
    group = object.__new__(facade.PopulationWorkerGroup)
    group._population, group.engine = population, SimpleNamespace(call=lambda *_: None)
    monkeypatch.setattr(facade, "_members_folder", lambda path: tmp_path)
    monkeypatch.setattr(facade, "load_latest", lambda *_, **__: Checkpoint(3, {}, state, ()))
    for said in (named, "latest_checkpointed_iteration.txt"):
        with refuses(said):
            group.load_checkpoint("actor")
