"""`train --dry-run` and `--config-file`: what is going to be, without a run."""

import re
import shlex
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from refusals import refuses

from azr_population.bases.nano import nano_base_path
from azr_population.cli import main
from azr_population.config.load import load_config
from azr_population.hosts.local import doctor, local_plan
from azr_population.hosts.local.doctor import azr_home
from azr_population.hosts.local.local_plan import longest_row, page, peak, resolve, with_layout
from azr_population.hosts.local.run import train
from azr_population.runs import RunDirectory
from azr_population.runs.directory import next_folder
from azr_population.runs.records import metrics_of_members


def planned(overrides):
    return page(with_layout(resolve(load_config(overrides))))


def test_a_dry_run_starts_none(tmp_path, capsys):
    path = tmp_path / "run"
    typed = ["population=2t2s", "population.batch_size=6", f"run.dir={path}"]
    assert main(["train", "--dry-run", *typed]) == 0
    printed = capsys.readouterr().out.splitlines()
    step = next(line for line in printed if line.startswith("a step"))
    assert all(number in step for number in ("12 proposals", "96 attempts", "24 rows"))
    assert not path.exists()
    RunDirectory(path).create("seed: 1\n", {})  # only `train` is refused where a run is
    assert main(["train", "--dry-run", *typed]) == 0


def test_it_counts_the_tasks_of_the_evals_strata():
    halves = ["population=1t1s", "eval.tasks_per_type=24"]
    for strata, count in (("[]", 24), ("[deep]", 12)):
        assert any(
            f"eval: {count} tasks" in line for line in planned([*halves, f"eval.strata={strata}"])
        )
    with refuses("eval.strata=deap does not exist"):
        planned([*halves, "eval.strata=[deap]"])


def test_it_tells_as_many_rows_as_a_step_trains_on(tmp_path):
    small = [
        "population.batch_size=4",
        "population.samples_per_task=2",
        "eval.every=0",
        "referee.workers=1",
    ]
    for arm, proposals in (("1t1s", 4), ("single", 2)):
        run = RunDirectory(tmp_path / arm)
        overrides = [f"population={arm}", *small, "run.steps=1", f"run.dir={run.path}"]
        step_line = next(line for line in planned(overrides) if line.startswith("a step"))
        assert {str(proposals), str(2 * proposals)} <= set(step_line.replace(",", " ").split())
        assert main(["train", *overrides]) == 0
        (step,) = run.read("metrics")
        rollouts = {name: member["rollouts"] for name, member in metrics_of_members(step).items()}
        # An invalid proposal is not attempted.
        assert rollouts.get("teacher_0", proposals) == proposals
        assert proposals < sum(rollouts.values()) <= 3 * proposals
        assert (
            sum(member.get("trained_samples", 0) for member in metrics_of_members(step).values())
            <= 8
        )


def test_the_memory_is_that_of_the_tensors():
    from azr_population.hosts.local.run_engine import open_engine

    config = load_config(["population=2t2s", "base.dtype=bfloat16", "base.lora.rank=4"])
    plan = with_layout(resolve(config))
    with open_engine(plan) as text:
        model, parts = text.engine.learner.model, peak(plan)
        factors = [
            factor for slot in range(4) for factor in text.engine.learner.bank.parameters_of(slot)
        ]
    assert parts["base"] == sum(p.numel() * 2 for p in model.parameters())
    assert parts["members, float32"] == sum(factor.numel() * 4 for factor in factors)
    assert parts["AdamW's moments"] == 2 * parts["members, float32"]


def test_all_workers_of_a_run_on_cpus_have_to_fit_the_machine(monkeypatch):
    plan = resolve(load_config(["population=2t2s"]))
    needed = sum(peak(with_layout(plan)).values())
    monkeypatch.setattr(local_plan, "room_on", lambda device: int(1.5 * needed))
    with_layout(plan)
    engine = plan.config.engine.model_copy(update={"workers": 2})
    two = replace(plan, config=plan.config.model_copy(update={"engine": engine}))
    with refuses("engine.device"):
        with_layout(two)


def test_the_chat_template_is_part_of_a_row():
    from azr_population.engines.base_model import load_tokenizer

    tokenizer = load_tokenizer(nano_base_path())
    assert longest_row(resolve(load_config([])), tokenizer) <= 512
    chat = resolve(load_config(["base=hf", f"base.path={nano_base_path()}"]))
    plain = longest_row(chat, tokenizer)
    tokenizer.chat_template = (
        "{{ 'You are a helpful assistant. ' * 20 }}"
        "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    )
    assert longest_row(chat, tokenizer) > plain + 60


@pytest.mark.parametrize(
    ("overrides", "culprit"),
    [
        (["base=hf", "base.path={tmp}"], "{tmp}"),
        (["base=smollm2", "base.path=./none"], "tools/bases/warm_up.py"),
        (["base.lora.target_modules=[w_q]"], "w_q"),
        (["engine.max_proposal_tokens=500"], "512"),
    ],
)
def test_what_would_stop_the_run_stops_the_dry_run(tmp_path, overrides, culprit):
    with refuses(culprit.format(tmp=tmp_path)):
        planned([text.format(tmp=tmp_path) for text in overrides])


def test_a_folder_that_is_in_use_is_named_and_the_plan_printed(tmp_path):
    (tmp_path / "thesis.txt").touch()
    printed = planned([f"run.dir={tmp_path}"])
    assert len(printed) > 6 and str(tmp_path) in printed[-2]


def test_a_run_without_a_folder_gets_a_new_one():
    small = ["population=2t2s", "population.batch_size=6"]
    first = next_folder("2t2s")
    assert f"into {first}, " in "".join(planned(small)) and not first.exists()
    first.mkdir(parents=True)
    assert next_folder("2t2s").name == f"{first.name.removesuffix('1')}2"


def test_no_two_jobs_of_an_array_get_the_same_folder():
    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(lambda _: next_folder("2t2s", reserve=True), range(40)))
    assert len(set(folders)) == 40 and all(folder.is_dir() for folder in folders)


def test_a_run_that_does_not_start_leaves_no_folder(tmp_path):
    with refuses("base.path"):
        train(load_config(["base=hf", f"base.path={tmp_path}"]))
    assert not list(Path("runs").iterdir())


def test_what_config_prints_can_be_read_back(tmp_path, capsys):
    asked = ["population=2t2s", "evolution.operators.dare+full_gaussian=0.5", "seed=9"]
    assert main(["train", "--config", *asked]) == 0
    printed = capsys.readouterr().out
    file = tmp_path / "mine.yaml"
    file.write_text(printed)
    assert main(["train", "--config", "--config-file", str(file)]) == 0
    assert capsys.readouterr().out == printed
    assert main(["train", "--config", "--config-file", str(file), "run.steps=7"]) == 0
    assert capsys.readouterr().out == printed.replace("  steps: 20\n", "  steps: 7\n")


def test_a_configuration_that_is_missing_is_named(tmp_path, capsys):
    assert main(["train", "--config-file", str(tmp_path / "nowhere.yaml")]) == 2
    assert "nowhere.yaml" in capsys.readouterr().err


def test_doctor_says_what_is_here_and_what_is_missing(capsys, monkeypatch):
    monkeypatch.delenv("AZR_HOME", raising=False)
    # Tests inside AZR may have put its checkout on the path of this process.
    azr = "absolute_zero_reasoner"
    monkeypatch.setattr(sys, "path", [p for p in sys.path if not (Path(p) / azr).is_dir()])
    monkeypatch.delitem(sys.modules, azr, raising=False)
    code = main(["doctor"])
    output = capsys.readouterr().out
    assert "torch" in output and "sandbox: seccomp" in output
    assert bool(re.search(r"^ *works +local runs", output, re.MULTILINE)) == (code == 0)
    # Without a checkout the plugin cannot run, whatever is installed.
    assert re.search(r"^ *no +.*AZR_HOME", output, re.MULTILINE)


def test_doctor_names_what_azr_lacks_and_the_line_that_installs_it(tmp_path, capsys, monkeypatch):
    (tmp_path / "absolute_zero_reasoner").mkdir()
    monkeypatch.setenv("AZR_HOME", str(tmp_path))
    there = {"verl", "ray"}
    monkeypatch.setattr(doctor, "installed", lambda name: "1" if name in there else None)
    monkeypatch.setattr(doctor, "wandb_fault", lambda: None)
    assert main(["doctor", "--azr"]) == 1
    (line, logger, _) = capsys.readouterr().out.splitlines()
    wanted = shlex.split(line.removeprefix("missing: pip install "))
    assert "complexipy" in wanted and "setuptools<81" in wanted and "verl>=0.4.1" not in wanted
    assert "wandb==0.20.1" in logger
    monkeypatch.setattr(doctor, "installed", lambda name: "1")
    assert main(["doctor", "--azr"]) == 0
    monkeypatch.setattr(doctor, "wandb_fault", lambda: "wandb is another")
    assert main(["doctor", "--azr"]) == 1 and "wandb is another" in capsys.readouterr().out

    def without_metadata(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(doctor, "requires", without_metadata)
    assert main(["doctor", "--azr"]) == 2
    assert "azr-population is not installed here: pip install" in capsys.readouterr().err
    monkeypatch.undo()
    monkeypatch.setenv("AZR_HOME", str(tmp_path / "nowhere"))
    assert main(["doctor", "--azr"]) == 1


def test_azr_home_must_hold_azr(tmp_path, monkeypatch):
    monkeypatch.setenv("AZR_HOME", str(tmp_path))
    assert azr_home() is None
    (tmp_path / "absolute_zero_reasoner").mkdir()
    assert azr_home() == tmp_path
