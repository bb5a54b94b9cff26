"""A local run that vLLM samples: its records, and what it promises on resume."""

import json
import os
import subprocess
import sys

import pytest
from small_run import WITH_BIRTHS

from azr_population.runs.records import metrics_of_members
from azr_population.weights.peft_folder import load_adapter

pytestmark = [pytest.mark.slow]

SMALL = [*WITH_BIRTHS, "engine.rollout=vllm", "engine.vllm.max_num_seqs=16"]


def command(*words):
    done = subprocess.run(
        [sys.executable, "-m", "azr_population.cli", *words],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:]


def test_a_run_that_is_resumed_has_all_records_and_goes_on_with_its_members(tmp_path):
    run = tmp_path / "run"
    command("train", f"run.dir={run}", *SMALL, "run.steps=2")
    names = sorted(path.name for path in (run / "members").iterdir())
    before = {name: load_adapter(run / "members" / name) for name in names}
    tasks = (run / "tasks.jsonl").read_text()
    command("resume", str(run), "run.steps=3")
    steps = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [step["step"] for step in steps] == [1, 2, 3]
    assert (run / "tasks.jsonl").read_text().startswith(tasks)
    assert len((run / "lineage.jsonl").read_text().splitlines()) == 2
    for step in steps:
        for name, member in metrics_of_members(step).items():
            if member.get("updates"):
                assert member["engine/mismatch_kl"] < 1e-5 and member["engine/ess"] > 0.999, name
    for name in names:
        after = load_adapter(run / "members" / name)
        # One step from where they were, not from the start.
        moved = max(
            float((pair.B - before[name].factors[layer].B).abs().max())
            for layer, pair in after.factors.items()
        )
        assert moved <= 1.5e-3, name
