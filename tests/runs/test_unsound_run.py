"""A run directory that somebody sent or that went bad: numbers that no training leaves, values
without end, links, pipes and folders in the place of files. One line, exit code 2, soon, and
nothing destroyed."""

import hashlib
import json
import os
import resource
import shlex
import shutil
import subprocess
import sys
import time
from types import ModuleType

import pytest
import torch
from refusals import refused, refuses
from safetensors.torch import load_file, save_file
from small_run import SMALL
from torch.utils._pytree import tree_leaves

from azr_population.cli import main
from azr_population.config.load import load_config
from azr_population.engines.torch_learner import TorchLearner
from azr_population.errors import UserError
from azr_population.hosts.local.local_plan import resolve, with_layout
from azr_population.reading.run_data import benchmark_figures
from azr_population.runs import RunDirectory
from azr_population.runs.checkpoint import members_digest, steps

pytestmark = [pytest.mark.integration]

WORKERS = "azr_population.engines.workers"


@pytest.fixture
def run(small_run, tmp_path):
    """A copy of a finished run of two steps, in a folder that has a neighbour."""
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "thesis.tex").write_text("precious")
    yield shutil.copytree(small_run, tmp_path / "run")
    assert (tmp_path / "victim" / "thesis.tex").read_text() == "precious"


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def resume_refused(run, capsys, *arguments):
    """What `resume` says when it refuses in one line and writes nothing."""
    before = contents(run)
    message = refused(capsys, "resume", run, "run.steps=3", *arguments)
    assert contents(run) == before
    return message


def sign(folder, name):
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest[name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))


def edit_state(run, change):
    """Changes the checkpoints' plain state, and their checksums with it."""
    for _, folder in steps(run / "checkpoints"):
        state = json.loads((folder / "state.json").read_text())
        change(state)
        (folder / "state.json").write_text(json.dumps(state))
        sign(folder, "state.json")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        *((lambda s, n=n: s["roster"][0].update(name=n), str(n)) for n in ("../../victim", "/", 7)),
        *((lambda s, n=n: s.update(step=n), "state.json") for n in (-1, "2")),
        (lambda s: s["buffer"][0].update(program=3), ""),
        (lambda s: s.pop("roster"), "roster"),
        (lambda s: s.update(config=[1]), "config"),
        (lambda s: s["roster"][0].update(mu="25"), "mu"),
        (lambda s: s["roster"][0].update(generation=True), "generation"),
    ],
)
def test_a_state_that_no_run_writes(run, capsys, change, named):
    edit_state(run, change)
    assert named in resume_refused(run, capsys)


FILES = (".lock", "metrics.jsonl", "tasks.jsonl", "config.yaml")
IN_THE_PLACE_OF = {
    "a pipe": (lambda path, victim: os.mkfifo(path), FILES),
    "a folder": (lambda path, victim: path.mkdir(), FILES),
    "a file": (lambda path, victim: path.touch(), ("checkpoints", "members", "snapshots")),
    "a link": (
        lambda path, victim: path.symlink_to(victim),
        (".lock", "metrics.jsonl", "members", "members/teacher_0/README.md"),
    ),
}


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, n) for kind, (_, names) in IN_THE_PLACE_OF.items() for n in names]
)
def test_what_is_something_else_is_neither_followed_nor_waited_for(run, capsys, kind, name):
    shutil.rmtree(run / name) if (run / name).is_dir() else (run / name).unlink(missing_ok=True)
    IN_THE_PLACE_OF[kind][0](run / name, run.parent / "victim" / "thesis.tex")
    assert name in refused(capsys, "resume", run, "run.steps=3")


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        ("seed: 1\n", "seed: 4\n", "seed=4"),
        ("  batch_size: 4\n", "  batch_size: 6\n", "population.batch_size=6"),
    ],
)
def test_an_edited_configuration(run, capsys, old, new, value):
    config = run / "config.yaml"
    assert old in config.read_text()
    config.write_text(config.read_text().replace(old, new, 1))
    assert value in resume_refused(run, capsys)


def test_a_stored_configuration_looks_nothing_up(run, capsys, monkeypatch):
    monkeypatch.setenv("SECRET", "hunter2")
    config = run / "config.yaml"
    config.write_text(config.read_text().replace("name: 1t1s", "name: ${oc.env:SECRET}"))
    message = resume_refused(run, capsys)
    assert "population.name=${oc.env:SECRET}" in message and "hunter2" not in message
    assert main(["report", str(run)]) == 0
    assert "hunter2" not in (run / "report.html").read_text()


def test_fewer_steps_than_were_played(run, capsys):
    assert "run.steps=1" in refused(capsys, "resume", run, "run.steps=1")


COMMAND = [sys.executable, "-m", "azr_population.cli"]


def full_disk(size, *words):
    """The one line of a command whose files cannot grow beyond so many bytes."""
    done = subprocess.run(
        [*COMMAND, *words],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    return done.stderr


def test_a_full_disk_is_told_and_the_last_checkpoint_is_sound(run):
    """No file may grow beyond a megabyte here, as on a disk that is full."""
    size = sum(len(content) for content in contents(run).values())
    assert size > 1_000_000
    full_disk(1_000_000, "resume", str(run), "run.steps=4")
    digest = members_digest(run / "members")
    assert main(["resume", str(run), "run.steps=2"]) == 0
    assert members_digest(run / "members") == digest
    assert main(["resume", str(run), "run.steps=3"]) == 0


def test_a_disk_that_is_full_at_the_start_is_told(tmp_path):
    folder = f"run.dir={tmp_path / 'run'}"
    assert f"{folder} cannot be written: File too large" in full_disk(
        20_000, "train", *SMALL, folder
    )


def test_metrics_that_end_before_the_checkpoint_are_named(run, capsys):
    lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text("".join(lines[:-1]))
    message = resume_refused(run, capsys)
    assert "metrics.jsonl ends at step 1" in message and "checkpoints/step_2" in message
    shutil.move(run / "checkpoints" / "step_2", run / "elsewhere")
    assert main(["resume", str(run), "run.steps=2"]) == 0
    again = [json.loads(line)["step"] for line in (run / "metrics.jsonl").open()]
    assert again == [1, 2]


def test_a_state_without_a_configuration_goes_on(run):
    edit_state(run, lambda state: state.update(config=None))
    assert main(["resume", str(run), "run.steps=2"]) == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to read-only folders")
def test_a_read_only_folder_is_told(run, capsys):
    os.chmod(run, 0o500)
    try:
        assert str(run) in resume_refused(run, capsys)
    finally:
        os.chmod(run, 0o700)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_output_that_cannot_be_written_is_told():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "train", "--config"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def test_a_reader_that_leaves_is_noticed(tmp_path):
    path = tmp_path / "run"
    command = shlex.join([*COMMAND, "train", *SMALL, "run.steps=30", f"run.dir={path}"])
    script = f"{command} | head -2; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert done.returncode == 141
    assert done.stderr.count("\n") == 1 and f"azr-population resume {path}" in done.stderr
    assert len(list(RunDirectory(path).read("metrics"))) < 30


@pytest.mark.parametrize("value", [float("nan"), 1e30])
def test_a_checkpoint_of_values_that_no_training_leaves(run, capsys, value):
    for _, folder in steps(run / "checkpoints"):
        state = torch.load(folder / "state.pt", weights_only=True)
        tree_leaves(state["adapters"])[0].view(-1)[0] = value
        torch.save(state, folder / "state.pt")
        sign(folder, "state.pt")
    assert " in adapters." in refused(capsys, "resume", run, "run.steps=3")


@pytest.mark.parametrize("value", [float("nan"), -1e30])
def test_a_members_folder_of_such_values(run, capsys, value):
    for file in run.rglob("adapter_model.safetensors"):
        tensors = load_file(file)
        next(iter(tensors.values()))[0, 0] = value
        save_file(tensors, file)
    refused(capsys, "sample", run, "student_0", "--propose", "code_o")
    for command in ("crossplay", "eval"):
        assert main([command, str(run), "--every", "1"]) == 2
        assert "/snapshots/step_1/" in capsys.readouterr().err.splitlines()[-1]


def test_a_report_that_is_a_folder(run, capsys):
    (run / "report.html").unlink()
    (run / "report.html").mkdir()
    assert "report.html" in refused(capsys, "report", run)


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


def test_a_setting_without_end(run, tmp_path, capsys):
    text = (run / "config.yaml").read_text()
    for size in (10_000_000, 500_000):
        long = text.replace("name: 1t1s", f"name: {'x' * size}")
        (run / "config.yaml").write_text(long.replace("dtype: float32", f"dtype: {'y' * 9000}"))
        refused(capsys, "resume", run, "run.steps=3")


def test_json_that_is_nested_too_deep_for_compare(tmp_path, capsys):
    (tmp_path / "deep.json").write_text("[" * 200_000)
    message = refused(capsys, "compare", tmp_path / "deep.json", "--out", tmp_path / "page.html")
    assert "deep.json" in message
    (tmp_path / "figures.json").write_text('{"lines": ' + "[" * 200_000)
    with pytest.raises(UserError):
        benchmark_figures(tmp_path / "figures.json")


@pytest.mark.parametrize(
    "override",
    [
        "population.teachers=1000000000",
        "population.batch_size=1000000000",
        "eval.tasks_per_type=1000000",
        "referee.workers=5000",
        "referee.timeout=nan",
        "engine.threads=1000000",
        "engine.device=meta",
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


def test_the_cache_the_logits_and_each_process_of_a_ray_count(tmp_path, monkeypatch):
    """What fits in one process does not in eight, and a cache that could grow too large is told."""
    monkeypatch.setattr("azr_population.hosts.local.local_plan.room_on", lambda device: 10**9)
    monkeypatch.setattr("azr_population.engines.assembly.installed", lambda package: "1")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)

    def check(*overrides):
        with_layout(resolve(load_config(["eval.every=0", *overrides])))

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


@pytest.mark.parametrize("fault", ["init", "import"])
def test_a_ray_that_does_not_start(tmp_path, capsys, monkeypatch, fault):
    """Stand-ins for both packages, of which only what starts a Ray is reached."""
    ray = ModuleType("ray")

    def init(**options):
        raise RuntimeError("the node was not up within 30 s\nand more")

    if fault == "init":
        group = "azr_population.engines.workers.ray_engine"
        pytest.importorskip("ray")
        pytest.importorskip("verl")
        monkeypatch.setattr(f"{group}.ray.init", init)
        words = "the node was not up within 30 s"
    else:
        for name in [name for name in sys.modules if name.startswith(WORKERS)]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "ray", ray)  # has nothing to import from
        monkeypatch.setitem(sys.modules, "ray.exceptions", None)
        words = "engine=ray"
    monkeypatch.setattr("azr_population.engines.assembly.installed", lambda package: "1")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    typed = [*SMALL, "engine=ray", "run.steps=1", f"run.dir={tmp_path / 'run'}"]
    assert words in refused(capsys, "train", *typed)


@pytest.mark.parametrize("slot", [0, 1], ids=["teacher", "student"])
def test_a_member_that_blows_up_in_its_run(tmp_path, capsys, monkeypatch, slot):
    """Its weights become NaN in the first update, so the second step samples from nothing."""
    update = TorchLearner.update

    def blown(self, samples, hyperparameters):
        result = update(self, samples, hyperparameters)
        with torch.no_grad():
            for factor in self.bank.parameters_of(slot):
                factor.fill_(float("nan"))
        return result

    monkeypatch.setattr(TorchLearner, "update", blown)
    message = refused(capsys, "train", *SMALL, "run.steps=3", f"run.dir={tmp_path / 'run'}")
    assert f"slot {slot}" in message
