"""A finished run for the tests of whole runs."""

import pytest
from test_local_run import train


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A run of four steps that nothing interrupted, with the checkpoints of steps 2 and 4."""
    path = tmp_path_factory.mktemp("runs") / "whole"
    overrides = ["run.snapshot_every=2"]
    assert train(path, "run.steps=4", *overrides) == 0
    return path
