"""AZR's own command with a real base and nothing scripted, once sampled by vLLM and once by torch.

By hand, in the environment of `scripts/azr_pins.sh`: a step takes minutes on a CPU.

    AZR_HOME=... AZR_BASE=FOLDER python -m pytest -m azr tests/hosts/azr/test_real_base_in_azr.py
"""

import contextlib
import json
import os
import subprocess

import host
import needs
import pytest

from azr_population.runs.records import metrics_of_members

BASE = os.environ.get("AZR_BASE", "")

pytestmark = [
    pytest.mark.azr,
    pytest.mark.slow,
    pytest.mark.timeout(10_000),
    pytest.mark.skipif(not BASE, reason="AZR_BASE names no folder of a base, such as SmolLM2-135M"),
]

PLAYED = [
    "+population=2t2s", f"actor_rollout_ref.model.path={BASE}", "azr.problem_types=[code_o]",
    "data.train_batch_size=1", "data.max_prompt_length=1100", "data.max_response_length=64",
    "azr.data_selection_strategy.content_max_length=2000", "azr.reward.n_samples=1",
    "population.lora.rank=8", "population.lora.alpha=16", "population.dtype=float32",
    "population.lora.target_modules=[q_proj,v_proj]", "population.micro_batch_tokens=1200",
    "population.evolution.interval=2", "population.evolution.grace_period=0",
    "population.threads=1",
    "trainer.total_training_steps=3", "trainer.save_freq=1",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    needs.verl()
    folder = tmp_path_factory.mktemp("azr")
    host.prepare(folder)
    return folder


def run_directory(folder, out):
    """Of a run with the checkpoints in `out`; AZR's folders are named after data and base."""
    return next(iter((folder / out).glob("*/*/*/population")), folder / "not yet")


def records(path, name):
    return [json.loads(line) for line in (path / f"{name}.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("rollout", ["vllm", "torch"])
def test_three_steps_with_a_replacement_killed_and_resumed(folder, rollout):
    psutil = needs.module("psutil", "psutil")
    if rollout == "vllm":
        pytest.importorskip("vllm", reason="vLLM is not installed: scripts/azr_pins.sh")
    out = folder / rollout
    extra = [*PLAYED, f"population.rollout={rollout}", f"trainer.default_local_dir={out}"]
    process = host.start(folder, extra)
    # Killed in the third step, after the checkpoint of the second.
    latest = "latest_checkpointed_iteration.txt"
    while not any(path.read_text() == "2" for path in out.glob(f"*/*/*/{latest}")):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.5)
        assert process.poll() is None, (folder / "log").read_text()[-3000:]
    for child in psutil.Process(process.pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()
    process.kill()
    host.ended(folder, process)
    host.played(folder, extra, timeout=4000)
    path = run_directory(folder, out)
    steps, births = records(path, "metrics"), records(path, "lineage")
    assert [step["step"] for step in steps] == [1, 2, 3]
    assert {birth["step"] for birth in births} == {2} and len(births) == 2
    for step in steps:
        for name, member in metrics_of_members(step).items():
            assert member["trained_tokens"] > 0, name
            if rollout == "vllm" and member["updates"]:
                # In float32 the two say the same of every token.
                assert member["engine/mismatch_kl"] < 1e-5 and member["engine/ess"] > 0.9999
    print(f"{rollout}: {json.dumps(metrics_of_members(steps[-1])['teacher_0'])}")
