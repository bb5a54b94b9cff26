"""A run that is really played, and is over soon."""

SMALL = [
    "population=1t1s", "population.batch_size=4", "population.samples_per_task=2",
    "task.types=[code_o]", "eval.every=0", "run.checkpoint_every=1",
    "run.snapshot_every=1", "engine.threads=1", "referee.workers=1",
]  # fmt: skip
