"""A run of three members."""

import pytest
from made_up_problems import adapter


@pytest.fixture
def played(tmp_path):
    """A run of three members."""
    run = tmp_path / "run"
    for number, name in enumerate(("student_0", "student_1", "teacher_0")):
        adapter(run / "members" / name, seed=number)
    (run / "config.yaml").write_text("seed: 1\n")
    return run
