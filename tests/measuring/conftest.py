"""A short run on the nano base that stores its members at snapshots."""

import pytest

from azr_population.cli import main

SETTINGS = [
    "population=2t2s",
    "population.rows=12",
    "population.attempts=2",
    "evolution.interval=2",
    "evolution.ready=0",
    "task.types=[code_o,code_i]",
    "exam.every=2",
    "exam.tasks_per_type=3",
    "exam.attempts=2",
    "run.snapshot_every=2",
    "run.steps=5",
    "engine.threads=1",
    "referee.workers=1",
    "seed=3",
]


@pytest.fixture(scope="session")
def stored_run(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "stored"
    assert main(["train", *SETTINGS, f"run.dir={path}"]) == 0
    return path
