"""A short run on the nano base that stores its members at snapshots; a run that was not played."""

import pytest
from made_up_problems import adapter

from azr_population.cli import main

SETTINGS = [
    "population=2t2s", "population.batch_size=12", "population.samples_per_task=2",
    "evolution.interval=2", "evolution.grace_period=0", "task.types=[code_o,code_i]",
    "eval.every=2", "eval.tasks_per_type=3", "eval.samples=2", "run.snapshot_every=2",
    "run.steps=5", "engine.threads=1", "referee.workers=1", "seed=3",
]  # fmt: skip


@pytest.fixture(scope="session")
def stored_run(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "stored"
    assert main(["train", *SETTINGS, f"run.dir={path}"]) == 0
    return path


@pytest.fixture
def played(tmp_path):
    """A run of three members."""
    run = tmp_path / "run"
    for number, name in enumerate(("student_0", "student_1", "teacher_0")):
        adapter(run / "members" / name, seed=number)
    (run / "config.yaml").write_text("seed: 1\n")
    return run
