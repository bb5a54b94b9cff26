"""Whole runs on the nano base, as the command line makes them: small, but nothing is replaced."""

import json
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter

import pytest
from refusals import refused
from safetensors.torch import load_file, save_file

import azr_population.hosts.local.run
import azr_population.hosts.local.state
from azr_population.bases.nano import nano_base_path
from azr_population.cli import main
from azr_population.runs import RunDirectory
from azr_population.runs.checkpoint import members_digest, steps
from azr_population.weights.peft_folder import load_adapter

pytestmark = pytest.mark.integration

SMALL = [
    "population=2t2s", "population.batch_size=6", "population.samples_per_task=2",
    "evolution.interval=2", "evolution.grace_period=0", "eval.every=0", "run.checkpoint_every=1",
    "engine.threads=1", "referee.workers=1", "seed=3",
]  # fmt: skip


def train(path, *overrides):
    return main(["train", *SMALL, f"run.dir={path}", *overrides])


def records(path):
    """The records of a run without the times, which differ between equal runs."""
    run = RunDirectory(path)
    metrics = [
        {k: v for k, v in row.items() if not k.startswith("time/")} for row in run.read("metrics")
    ]
    others = (run.read("matches"), run.read("lineage"), run.read("tasks"), run.read("completions"))
    return metrics, *map(list, others)


def test_a_run_leaves_everything_that_the_design_promises(finished):
    names = {path.name for path in finished.iterdir()}
    expected = {
        "config.yaml", "environment.json", "metrics.jsonl", "matches.jsonl", "lineage.jsonl",
    }  # fmt: skip
    assert expected | {"tasks.jsonl", "members", "checkpoints", "report.html"} <= names
    metrics, matches, lineage, tasks, completions = records(finished)
    assert [row["step"] for row in metrics] == [1, 2, 3, 4]
    assert len(matches) == 8 and len(lineage) == 4 and tasks
    per_step = Counter(row["step"] for row in completions)
    assert per_step[1] > 20 and per_step[2] == per_step[3] == per_step[4] == 16
    assert {row["verdict"] for row in completions} == {"valid", "refused", "solved", "failed"}
    members = {"teacher_0", "teacher_1", "student_0", "student_1"}
    assert {path.name for path in (finished / "members").iterdir()} == members
    weights = {
        (finished / "members" / m / "adapter_model.safetensors").read_bytes() for m in members
    }
    assert len(weights) == 4
    assert [step for step, _ in steps(finished / "checkpoints")] == [3, 4]


@pytest.mark.parametrize("every", [1, 1000])
def test_a_run_without_an_eval_cannot_have_one_later(finished, capsys, every):
    assert f"eval.every={every}" in refused(capsys, "resume", str(finished), f"eval.every={every}")


def test_another_seed_gives_another_run(finished, tmp_path):
    assert train(tmp_path / "other", "run.steps=1", "seed=4") == 0
    assert records(tmp_path / "other")[3] != records(finished)[3]


def test_a_run_in_two_parts_equals_a_run_in_one(finished, tmp_path):
    """The same seed gives the same run, whether or not completions are logged."""
    path = tmp_path / "parts"
    assert train(path, "run.steps=2", "run.log_completions=0") == 0
    assert main(["resume", str(path), "run.steps=4"]) == 0
    assert not (path / "completions.jsonl").exists()
    assert records(path)[:4] == records(finished)[:4]
    assert members_digest(path / "members") == members_digest(finished / "members")


def test_a_crash_between_checkpoint_and_members_is_mended(finished, tmp_path):
    path = tmp_path / "run"
    shutil.copytree(finished, path)
    (path / "members" / "teacher_0").rename(path / "members" / ".teacher_0.old")
    shutil.copytree(
        path / "members" / "student_0", path / "members" / "student_1", dirs_exist_ok=True
    )
    assert main(["resume", str(path)]) == 0
    assert members_digest(path / "members") == members_digest(finished / "members")


@pytest.mark.parametrize("step", [1, 3])
def test_a_crash_after_a_step_and_before_its_checkpoint_is_mended(
    step, finished, tmp_path, monkeypatch
):
    path = tmp_path / "run"

    def crash(store, original=azr_population.hosts.local.state.RunState.save):
        if store.play.step == step:
            raise RuntimeError("the machine went down")
        original(store)

    with monkeypatch.context() as patched:
        patched.setattr(azr_population.hosts.local.state.RunState, "save", crash)
        with pytest.raises(RuntimeError):
            train(path, "run.steps=4", "run.checkpoint_every=1")
    assert [row["step"] for row in RunDirectory(path).read("metrics")] == list(range(1, step + 1))
    assert main(["resume", str(path)]) == 0
    assert records(path) == records(finished)
    assert members_digest(path / "members") == members_digest(finished / "members")


def test_resuming_remembers_more_steps_and_refuses_to_rewrite_the_past(finished, tmp_path, capsys):
    path = tmp_path / "run"
    shutil.copytree(finished, path)
    assert main(["resume", str(path), "run.steps=5"]) == 0
    assert RunDirectory(path).config()["run"]["steps"] == 5
    for key in ("population.batch_size=8", "seed=9", "engine.threads=2"):
        assert main(["resume", str(path), key]) == 2
        assert key in capsys.readouterr().err


def test_a_run_that_lost_its_checkpoints_is_left_as_it_is(finished, tmp_path, capsys):
    path = tmp_path / "run"
    shutil.copytree(finished, path)
    shutil.rmtree(path / "checkpoints")
    before = (path / "metrics.jsonl").read_bytes()
    line = refused(capsys, "resume", path, "run.steps=6")
    assert f"{path} has 4 steps and no checkpoint" in line and "another run.dir" in line
    assert (path / "metrics.jsonl").read_bytes() == before


def test_resuming_a_finished_run_says_how_to_play_more(finished, capsys):
    assert main(["resume", str(finished)]) == 0
    shown = "".join(capsys.readouterr())
    assert "has finished its 4 steps" in shown
    assert f"azr-population resume {finished} run.steps=8" in " ".join(shown.split())


def test_two_processes_cannot_write_one_run(finished, tmp_path, capsys):
    path = tmp_path / "run"
    shutil.copytree(finished, path)
    with RunDirectory(path).locked():
        assert str(path) in refused(capsys, "resume", path)


def test_a_run_that_another_started_meanwhile_is_left_alone(
    finished, tmp_path, capsys, monkeypatch
):
    path = tmp_path / "run"
    original = azr_population.hosts.local.run.fingerprint

    def meanwhile(base):
        shutil.copytree(finished, path)
        return original(base)

    monkeypatch.setattr(azr_population.hosts.local.run, "fingerprint", meanwhile)
    assert str(path) in refused(capsys, "train", *SMALL, f"run.dir={path}", "run.steps=1")
    assert records(path) == records(finished)


ONE_STEP_WAITS = """
import select
import sys
from azr_population.cli import main
from azr_population.method import phases

def solve(*arguments, original=phases.solve, **named):
    print("solving", flush=True)
    while not select.select([sys.stdin], [], [], 0.05)[0]:
        pass  # a signal that comes just before a blocking read would be handled after it
    sys.stdin.readline()
    original(*arguments, **named)

phases.solve = solve
sys.exit(main(sys.argv[1:]))
"""
"""The command line, but every step waits for a line of input before anything is solved."""


@pytest.fixture
def waiting(tmp_path):
    """A run in a process of its own, in the middle of its second step."""
    command = [sys.executable, "-c", ONE_STEP_WAITS, "train", *SMALL, f"run.dir={tmp_path / 'run'}"]
    with subprocess.Popen(
        [*command, "run.steps=4"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        read_until(process, "solving")
        print(file=process.stdin, flush=True)
        read_until(process, "solving")
        yield process
        process.kill()


def read_until(process, start):
    """The next line of its output that starts so."""
    return next(line for line in process.stdout if line.startswith(start))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_finishes_the_step_and_the_run_can_go_on(
    waiting, finished, tmp_path, number
):
    waiting.send_signal(number)
    output = read_until(waiting, "finishing step 2, then stopping")
    assert str(waiting.pid) in output
    print(file=waiting.stdin, flush=True)
    read_until(waiting, "step 2/")
    assert f"azr-population resume {tmp_path / 'run'}" in waiting.stdout.read()
    assert waiting.wait(timeout=1500) == 128 + number
    assert main(["resume", str(tmp_path / "run")]) == 0
    assert members_digest(tmp_path / "run/members") == members_digest(finished / "members")


@pytest.mark.parametrize("number", [signal.SIGHUP])
def test_the_second_signal_stops_at_once_and_the_checkpoint_is_sound(
    waiting, finished, tmp_path, number
):
    waiting.send_signal(number)
    read_until(waiting, "finishing step 2")
    waiting.send_signal(number)
    assert f"azr-population resume {tmp_path / 'run'}" in waiting.stdout.read()
    assert waiting.wait(timeout=1500) == 128 + number
    assert [row["step"] for row in RunDirectory(tmp_path / "run").read("metrics")] == [1]
    assert main(["resume", str(tmp_path / "run")]) == 0
    assert members_digest(tmp_path / "run/members") == members_digest(finished / "members")


def test_a_base_that_writes_nothing_valid_is_told_of_at_every_step(tmp_path, capsys):
    base = tmp_path / "base"
    shutil.copytree(nano_base_path(), base)
    (base / "sample.json").unlink()
    weights = load_file(base / "model.safetensors")
    weights["model.norm.weight"].zero_()  # every token is equally likely then
    save_file(weights, base / "model.safetensors", metadata={"format": "pt"})
    assert train(tmp_path / "run", f"base.path={base}", "run.steps=2") == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("no valid")]
    assert len(lines) == 2
    reasons, wrote = lines[0].split(";", 1)
    assert sum(map(int, re.findall(r"(\d+) \w", reasons))) == 12 and re.match(r" teacher_\d", wrote)


def test_any_hugging_face_folder_can_be_the_base(tmp_path):
    base = [
        "base=hf", f"base.path={nano_base_path()}", "base.prompt_format=nano", "base.dtype=float32",
    ]  # fmt: skip
    assert train(tmp_path / "hf", "population=1t1s", *base, "base.lora.rank=4", "run.steps=1") == 0
    config = json.loads((tmp_path / "hf/members/student_0/adapter_config.json").read_text())
    assert config["r"] == 4 and config["base_model_name_or_path"] == str(nano_base_path())


@pytest.mark.parametrize(
    ("overrides", "value"),
    [
        (["base=hf", "base.path={tmp}/nowhere"], "nowhere"),
        (["base=hf", "base.path={tmp}"], "base.path"),
        (["engine.device=cuda"], "engine.device=cuda"),
        (["seed=-1"], "seed=-1"),
    ],
)
def test_a_mistake_is_one_line_with_exit_code_2_and_leaves_no_run(
    tmp_path, capsys, overrides, value
):
    import torch

    if "engine.device=cuda" in overrides and torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    path = tmp_path / "run"
    assert train(path, *(text.format(tmp=tmp_path) for text in overrides)) == 2
    error = capsys.readouterr().err.strip()
    assert value in error and "\n" not in error
    assert not path.exists()


def test_resuming_what_is_no_run(tmp_path, capsys):
    assert str(tmp_path) in refused(capsys, "resume", tmp_path)
    (tmp_path / "file").touch()
    assert f"{tmp_path}/file" in refused(capsys, "resume", tmp_path / "file")


def test_a_population_learns_and_evolves_on_a_quantised_base(tmp_path):
    pytest.importorskip("bitsandbytes", reason="pip install azr_population[quantization]")
    evolve = ["evolution.interval=2", "evolution.grace_period=0"]
    assert train(tmp_path, "run.steps=3", "base.quantization=nf4", *evolve) == 0
    assert len((tmp_path / "lineage.jsonl").read_text().splitlines()) > 0
    folders = sorted((tmp_path / "members").glob("*_*"))
    changed = [load_adapter(folder).factors.values() for folder in folders]
    # A member whose attempts all end alike learns nothing in so few steps.
    assert any(pair.B.abs().max() > 0 for pairs in changed for pair in pairs)
    assert records(tmp_path)


def test_founders_are_members_of_another_run_one_each_and_of_a_smaller_rank(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    assert train(first, "run.steps=1", "base.lora.rank=2") == 0
    folders = [first / "members" / "student_1", first / "members" / "student_0"]
    started = [f"population.init_from.student=[{','.join(map(str, folders))}]"]
    started.append("population.student_lr=0")
    assert train(second, "run.steps=1", "base.lora.rank=3", *started) == 0
    children = [load_adapter(folder) for folder in sorted((second / "members").glob("student_*"))]
    for parent, child in zip(map(load_adapter, folders), children, strict=True):
        for name, pair in child.factors.items():
            theirs = parent.factors[name]
            expected = parent.spec.scaling * theirs.B @ theirs.A
            update = child.spec.scaling * pair.B @ pair.A
            assert (update - expected).abs().max() <= 1e-6 * expected.abs().max() + 1e-12
