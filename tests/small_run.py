"""A run that is really played, and is over soon."""

SMALL = [
    "population=1t1s", "population.batch_size=4", "population.samples_per_task=2",
    "task.types=[code_o]", "eval.every=0", "run.checkpoint_every=1",
    "run.snapshot_every=1", "engine.threads=1", "referee.workers=1",
]  # fmt: skip

WITH_BIRTHS = [
    "population=2t2s", "population.batch_size=6", "population.samples_per_task=2",
    "population.student_lr=1e-3",
    "task=code_o", "evolution.interval=2", "evolution.grace_period=0", "eval.every=0", "seed=3",
    "run.checkpoint_every=1", "referee.allow_unsandboxed=true", "engine.threads=1",
]  # fmt: skip
"""Of an engine with processes of its own; a child is born every two steps."""
