"""Which folder a run inside AZR may use, and with what settings it goes on there."""

import pytest
from omegaconf import OmegaConf
from refusals import refuses

from azr_population.hosts.azr import run_folder
from azr_population.hosts.azr.run_folder import open_run, refuse_to_erase


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


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("data.train_batch_size", 32),
        ("azr.problem_types", ["code_o"]),
        ("actor_rollout_ref.actor.optim.lr", 2e-6),
    ],
)
def test_a_run_goes_on_with_azrs_settings_of_its_batch_and_rate(tmp_path, key, value):
    def command(**changed):
        made = OmegaConf.create(played())
        made.merge_with({"data": {"train_batch_size": 64}, "azr": {"problem_types": ["code_i"]}})
        for name, new in changed.items():
            OmegaConf.update(made, name, new)
        return OmegaConf.to_container(made)

    run = open_run(command(), tmp_path / "run", {}, resumes=True)
    run.append("metrics", [{"step": 1}])
    open_run(command(), run.path, {}, resumes=True)
    with refuses(key):
        open_run(command(**{key: value}), run.path, {}, resumes=True)


def test_a_run_goes_on_on_its_own_base(tmp_path, monkeypatch):
    monkeypatch.setattr(run_folder, "fingerprint", lambda path: "aaaa")
    run = open_run(played(), tmp_path / "run", {}, resumes=True)
    run.append("metrics", [{"step": 1}])
    open_run(played(), run.path, {}, resumes=True)
    monkeypatch.setattr(run_folder, "fingerprint", lambda path: "bbbb")
    with refuses("aaaa"):
        open_run(played(), run.path, {}, resumes=True)


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
    first = played()
    first["trainer"]["save_freq"] = every
    run = open_run(first, tmp_path / "run", {}, resumes=True)
    run.append("metrics", [{"step": step} for step in range(1, steps + 1)])
    if erased:
        refuse_to_erase(run, played(folder))
    else:
        with refuses(f"has {steps} steps, and AZR finds no checkpoint"):
            refuse_to_erase(run, played(folder))
