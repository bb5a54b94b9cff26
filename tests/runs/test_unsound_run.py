"""Numbers that no training leaves, values without end, and folders in the place of files: one line
each, soon, and nothing destroyed."""

import hashlib
import json
import os
import shutil
import sys
import time
from types import ModuleType

import pytest
import torch
from refusals import refuses
from safetensors.torch import load_file, save_file

from azr_population.analysis.inputs import read_figures
from azr_population.cli import main
from azr_population.config.load import load_config
from azr_population.engines.torch_learner import TorchLearner
from azr_population.errors import UserError
from azr_population.hosts.local.engine import check_memory, longest_row, meta_base
from azr_population.runs.checkpoint import steps

WORKERS = "azr_population.engines.workers"
SMALL = [
    "population=1t1s",
    "population.batch_size=4",
    "population.samples_per_task=2",
    "task.types=[code_o]",
    "eval.every=0",
    "run.checkpoint_every=1",
    "run.permanent_checkpoint_every=1",
    "run.snapshot_every=1",
    "engine.threads=1",
    "referee.workers=1",
]

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "whole"
    assert main(["train", *SMALL, "run.steps=1", f"run.dir={path}"]) == 0
    return path


@pytest.fixture
def run(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "run")


def refused(capsys, *words):
    """The one line with which a command ends."""
    capsys.readouterr()
    assert main([str(word) for word in words]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and len(said) < 2100
    return said


def tensors_in(node):
    """The tensors of nested tables and lists, but for single numbers."""
    if isinstance(node, torch.Tensor):
        return [node] if node.dim() else []
    parts = (
        node.values() if isinstance(node, dict) else node if isinstance(node, (list, tuple)) else ()
    )
    return [tensor for part in parts for tensor in tensors_in(part)]


def spoil_checkpoint(run, part, value):
    """Puts a value into one of the tensors of each checkpoint that has any."""
    for _, folder in steps(run / "checkpoints"):
        state = torch.load(folder / "state.pt", weights_only=True)
        for tensor in tensors_in(state[part])[:1]:
            tensor.view(-1)[0] = value
        torch.save(state, folder / "state.pt")
        sign(folder, "state.pt")


def sign(folder, name):
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest[name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e30])
def test_a_checkpoint_of_values_that_no_training_leaves(run, tmp_path, capsys, value):
    spoil_checkpoint(run, "adapters", value)
    assert " in adapters." in refused(capsys, "resume", run, "run.steps=2")
    typed = [*SMALL, "run.steps=2", f"run.dir={tmp_path / 'fork'}", f"run.init_from={run}@1"]
    assert " in adapters." in refused(capsys, "train", *typed)


def test_an_optimizer_that_is_not_finite(run, capsys):
    spoil_checkpoint(run, "optimizers", float("nan"))
    assert "(NaN or Inf) in optimizers." in refused(capsys, "resume", run, "run.steps=2")


@pytest.mark.parametrize(("value", "says"), [(float("nan"), "NaN or Inf"), (-1e30, "holds 1e+30")])
def test_a_members_folder_of_such_values(run, capsys, value, says):
    for file in run.rglob("adapter_model.safetensors"):
        tensors = load_file(file)
        next(iter(tensors.values()))[0, 0] = value
        save_file(tensors, file)
    assert says in refused(capsys, "sample", run, "student_0", "--propose", "code_o")
    assert says in refused(capsys, "crossplay", run, "--every", 1)
    assert says in refused(capsys, "eval", run, "--every", 1)


@pytest.mark.parametrize("rewards", [[1], 3, None, {"teacher_0": 3}, {"teacher_0": ["x"]}])
def test_rewards_that_are_no_table(run, capsys, rewards):
    for _, folder in steps(run / "checkpoints"):
        state = json.loads((folder / "state.json").read_text()) | {"rewards": rewards}
        (folder / "state.json").write_text(json.dumps(state))
        sign(folder, "state.json")
    assert "is damaged (" in refused(capsys, "resume", run, "run.steps=2")


@pytest.mark.parametrize(
    "name", ["metrics.jsonl", "completions.jsonl", "tasks.jsonl", ".lock", "config.yaml"]
)
def test_a_folder_where_a_file_belongs(run, capsys, name):
    (run / name).unlink(missing_ok=True)
    (run / name).mkdir()
    said = refused(capsys, "resume", run, "run.steps=2")
    assert name in said and ("is a folder" in said or "no regular file" in said)


@pytest.mark.parametrize("name", ["checkpoints", "members", "snapshots"])
def test_a_file_where_a_folder_belongs(run, capsys, name):
    shutil.rmtree(run / name, ignore_errors=True)
    (run / name).write_text("")
    assert f"{name} is no folder" in refused(capsys, "resume", run, "run.steps=2")


def test_a_report_that_is_a_folder(run, capsys):
    (run / "report.html").unlink()
    (run / "report.html").mkdir()
    assert "report.html is a folder" in refused(capsys, "report", run)


def test_a_completion_without_end_is_left_out(run, capsys):
    with (run / "completions.jsonl").open("a") as file:
        row = {"step": 1, "member": "student_0", "completion": "x = 1\n" * 17_000_000}
        file.write(json.dumps(row) + "\n")
    assert (run / "completions.jsonl").stat().st_size > 100_000_000
    capsys.readouterr()
    for more in ([], ["--full"], ["--json"]):
        began = time.process_time()
        assert main(["show", str(run), *more]) == 0
        assert time.process_time() - began < 3
        assert 0 < len(capsys.readouterr().out) < 1_000_000


@pytest.mark.slow
def test_completions_as_long_as_rows_can_be(run, capsys):
    with (run / "completions.jsonl").open("a") as file:
        row = {"step": 1, "member": "student_0", "completion": "x = [1]\n" * 400_000}
        file.writelines(json.dumps(row) + "\n" for _ in range(25))
    capsys.readouterr()
    began = time.process_time()
    assert main(["show", str(run)]) == 0
    assert time.process_time() - began < 5 and capsys.readouterr().out


def test_a_setting_without_end(run, tmp_path, capsys):
    text = (run / "config.yaml").read_text()
    for size in (10_000_000, 500_000):
        long = text.replace("name: 1t1s", f"name: {'x' * size}")
        (run / "config.yaml").write_text(long.replace("dtype: float32", f"dtype: {'y' * 9000}"))
        refused(capsys, "resume", run, "run.steps=2")


def test_json_that_is_nested_too_deep_for_compare(tmp_path, capsys):
    (tmp_path / "deep.json").write_text("[" * 200_000)
    said = refused(capsys, "compare", tmp_path / "deep.json", "--out", tmp_path / "page.html")
    assert "deep.json" in said
    (tmp_path / "figures.json").write_text('{"lines": ' + "[" * 200_000)
    assert read_figures(tmp_path / "figures.json") == {}


def test_figures_that_are_a_folder_or_nested_too_deep(run, tmp_path, capsys):
    figures = run / "evaluation/figures.json"
    figures.mkdir(parents=True)
    page = tmp_path / "page.html"
    assert main(["compare", f"a={run}", f"b={run}", "--out", str(page)]) == 0
    assert 'id="benchmarks"' not in page.read_text()
    figures.rmdir()
    cell = '{"value": 0, "low": 0, "high": 0, "more": ' + "[" * 50_000 + "]" * 50_000 + "}"
    figures.write_text('{"lines": [{"model": "a", "k": 1, "cells": {"MATH": ' + cell + "}}]}")
    assert main(["compare", f"a={run}", f"b={run}", "--out", str(page)]) == 0
    assert 'id="benchmarks"' not in page.read_text()


def test_a_pipe_is_not_waited_for_by_compare(tmp_path, capsys):
    os.mkfifo(tmp_path / "log.txt")
    assert "neither a run's folder nor a log file" in refused(
        capsys, "compare", tmp_path / "log.txt"
    )


@pytest.mark.parametrize(
    "override",
    [
        "population.teachers=1000000000",
        "population.students=1000000",
        "population.batch_size=1000000000",
        "population.samples_per_task=100000000",
        "base.lora.rank=1000000000",
        "eval.samples=10000000",
        "eval.final_samples=10000000",
        "eval.tasks_per_type=1000000",
        "evolution.validation_tasks=1000000",
        "referee.workers=5000",
        "referee.timeout=1e9",
        "referee.timeout=nan",
        "referee.cpu_seconds=1e9",
        "referee.memory_mb=1",
        "referee.memory_mb=100000000",
        "referee.share=100000000",
        "engine.threads=1000000",
        "engine.workers=1000000",
        "engine.device=meta",
        "engine.device=mps",
    ],
)
def test_a_number_that_no_machine_could_serve(run, capsys, override):
    key, _, value = override.partition("=")
    with pytest.raises(UserError) as refusal:
        load_config([override])
    assert refusal.value.key == key
    text = (run / "config.yaml").read_text()
    field = key.rpartition(".")[2]
    section = text.index(f"\n{key.partition('.')[0]}:")
    place = text.index(f"  {field}: ", section)
    spoilt = text[:place] + f"  {field}: {value}" + text[text.index("\n", place) :]
    (run / "config.yaml").write_text(spoilt)
    assert key in refused(capsys, "resume", run)


def test_members_that_the_memory_cannot_hold_are_refused(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("azr_population.hosts.local.engine.room_on", lambda device: 10**9)
    typed = ["population.teachers=128", "population.students=128", "base.lora.rank=64"]
    said = refused(capsys, "train", *typed, "eval.every=0", f"run.dir={tmp_path / 'run'}")
    assert "1.0 GB of memory, and the run takes up to" in said and not (tmp_path / "run").exists()


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/tty", "."])
def test_seed_tasks_come_from_a_regular_file(capsys, tmp_path, path):
    typed = [*SMALL, f"task.seed_file={path}", f"run.dir={tmp_path / 'run'}"]
    assert "is no regular file" in refused(capsys, "train", *typed)


def test_the_cache_the_logits_and_each_process_of_a_ray_count(tmp_path, monkeypatch):
    """What fits in one process does not in eight, and a cache that could grow too large is told."""
    monkeypatch.setattr("azr_population.hosts.local.engine.room_on", lambda device: 10**9)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)

    def check(*overrides):
        config = load_config(["eval.every=0", *overrides])
        model, tokenizer = meta_base(config.base)
        check_memory(config, model, longest_row(config, tokenizer, references=0))

    small = ["population.batch_size=4", "population.samples_per_task=2"]
    check(*small)
    with refuses("engine.device"):
        check("population.batch_size=4096", "engine.generate_batch_size=4096")
    with refuses("engine.device"):
        check(*small, "engine.micro_batch_tokens=1000000")
    ray = [*small, "engine.name=ray", "engine.workers=64"]
    with refuses("engine.device"):
        check(*ray)
    monkeypatch.setenv("RAY_ADDRESS", "head:6379")
    check(*ray)  # Its nodes have memory of their own.


def test_a_strangers_run_on_a_ray_that_is_not_there(run, capsys, monkeypatch):
    text = (run / "config.yaml").read_text()
    assert text.count("  name: torch\n") == 1
    (run / "config.yaml").write_text(text.replace("  name: torch\n", "  name: ray\n"))
    monkeypatch.setattr("azr_population.engines.assembly.installed", lambda package: None)
    said = refused(capsys, "resume", run, "run.steps=2")
    assert "engine=ray needs ray and verl; install" in said


@pytest.mark.parametrize("fault", ["init", "import"])
def test_a_ray_that_does_not_start(tmp_path, capsys, monkeypatch, fault):
    """Stand-ins for both packages, of which only what starts a Ray is reached."""
    ray = ModuleType("ray")

    def init(**options):
        raise RuntimeError("the node was not up within 30 s\nand more")

    if fault == "init":
        group = "azr_population.engines.workers.local_group"
        pytest.importorskip("ray")
        pytest.importorskip("verl")
        monkeypatch.setattr(f"{group}.ray.init", init)
        says = "Ray does not start here: the node was not up within 30 s"
    else:
        for name in [name for name in sys.modules if name.startswith(WORKERS)]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "ray", ray)  # has nothing to import from
        monkeypatch.setitem(sys.modules, "ray.exceptions", None)
        says = "engine=ray: Ray or veRL does not import: "
    monkeypatch.setattr("azr_population.engines.assembly.installed", lambda package: "1")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    typed = [*SMALL, "engine=ray", "run.steps=1", f"run.dir={tmp_path / 'run'}"]
    assert says in refused(capsys, "train", *typed)


@pytest.mark.parametrize("role", ["teacher", "student"])
def test_a_member_that_blows_up_in_its_run(tmp_path, capsys, monkeypatch, role):
    """Its weights become NaN in the first update, so the second step samples from nothing."""
    update = TorchLearner.update

    def blown(self, samples, hyperparameters):
        made = update(self, samples, hyperparameters)
        with torch.no_grad():
            for factor in self.bank.parameters_of({"teacher": 0, "student": 1}[role]):
                factor.fill_(float("nan"))
        return made

    monkeypatch.setattr(TorchLearner, "update", blown)
    said = refused(capsys, "train", *SMALL, "run.steps=3", f"run.dir={tmp_path / 'run'}")
    assert "its logits are NaN or Inf, so its weights have blown up" in said
