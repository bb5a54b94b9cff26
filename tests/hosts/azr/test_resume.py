"""What AZR's trainer does before a run's first step and when the run goes on."""

import re
from types import SimpleNamespace

import needs
import pytest
from omegaconf import OmegaConf
from refusals import refuses
from test_run_folder import played

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


def test_a_checkpoint_without_a_sound_part_names_the_way_out_of_azr(tmp_path):
    needs.verl()
    from azr_population.hosts.azr import facade

    group = object.__new__(facade.PopulationWorkerGroup)
    (tmp_path / "actor" / facade.FOLDER / "members/step_3").mkdir(parents=True)
    with refuses("latest_checkpointed_iteration.txt"):
        group.load_checkpoint(str(tmp_path / "actor"))


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
