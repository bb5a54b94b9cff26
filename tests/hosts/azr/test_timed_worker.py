"""AZR's command with the worker that perf/azr_on_gpu times, on a CPU."""

import os
import subprocess
import sys
from pathlib import Path

import host
import needs
import pytest

pytestmark = [pytest.mark.azr, pytest.mark.slow]

FOLDER = Path(__file__).parents[3] / "perf" / "azr_on_gpu"
SMALL = [
    "trainer.device=cpu", "population.lora.rank=4", "population.lora.alpha=8",
    "population.threads=1", "data.max_response_length=300", "azr.reward.n_samples=2",
    "azr.executor_max_workers=1", "azr.data_selection_strategy.num_inputs=4",
    "azr.data_selection_strategy.io_n=1", "ray_init.num_cpus=4",
]  # fmt: skip


def test_a_step_samples_for_real_and_trains_on_scripted_answers(tmp_path):
    needs.verl()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    variables = host.environment(tmp_path) | {"PATH": path, "ROWS": "2", "TIMED_MEAN": "12"}
    base, out = tmp_path / "base", tmp_path / "out"
    made = [sys.executable, FOLDER / "random_base.py", "small", base]
    subprocess.run(made, env=variables, check=True, capture_output=True)
    played = ["bash", FOLDER / "run.sh", "single", "1", base, "torch", out, *SMALL]
    done = subprocess.run(played, env=variables, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-3000:]
    assert done.stdout.count("timed:") >= 2
    assert "'total/updates': 1.0" in done.stdout and "'step': 1" in done.stdout
