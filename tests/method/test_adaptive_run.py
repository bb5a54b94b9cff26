"""A whole run with everything that evolution can be told, killed and resumed, on the nano base."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from azr_population.cli import main
from azr_population.runs import RunDirectory
from azr_population.runs.checkpoint import members_digest

OVERRIDES = [
    "population=2t2s",
    "population.batch_size=3",
    "population.samples_per_task=2",
    "evolution.interval=1",
    "evolution.grace_period=0",
    "evolution.adaptive=true",
    "evolution.operators.layer_wise=0",
    "evolution.operators.component_masking+full_gaussian=8",
    "evolution.options.full_gaussian.eps=0.1",
    "evolution.selection_options.top=1",
    "eval.every=0",
    "run.checkpoint_every=1",
    "run.steps=4",
    "engine.threads=1",
    "referee.workers=1",
    "seed=3",
]


def records(path: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Metrics without times, and lineage."""
    run = RunDirectory(path)
    metrics = [{k: v for k, v in row.items() if not k.startswith("time/")} for row in run.metrics()]
    return metrics, list(run.lineage())


@pytest.mark.slow
def test_a_killed_and_resumed_run_adapts_and_credits_as_a_whole_one(tmp_path: Path) -> None:
    uninterrupted, killed = tmp_path / "whole", tmp_path / "killed"
    assert main(["train", *OVERRIDES, f"run.dir={uninterrupted}"]) == 0
    command = [sys.executable, "-m", "azr_population.cli", "train", *OVERRIDES]
    with subprocess.Popen([*command, f"run.dir={killed}"], stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 200
        while not (killed / "checkpoints" / "step_2").exists() and time.monotonic() < deadline:
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.05)
                break
        process.send_signal(signal.SIGKILL)
    assert len(records(killed)[0]) < 4, "the run was over before it was killed"
    assert main(["resume", str(killed)]) == 0
    assert records(killed) == records(uninterrupted)
    assert members_digest(killed / "members") == members_digest(uninterrupted / "members")
    metrics, lineage = records(uninterrupted)
    assert len(lineage) == 8
    sizes = [size for birth in lineage for size in birth["step_sizes"].values()]
    assert sizes and not {0.1, 0.15} & set(sizes)
    credit = metrics[-1]["operators"]
    assert sum(figures["born"] for figures in credit.values()) == 8
    assert sum(figures["judged"] for figures in credit.values()) == 6
    assert "component_masking+full_gaussian" in credit
    json.dumps(credit, allow_nan=False)
