"""A run of three members."""

import json

import pytest
from made_up_problems import adapter


@pytest.fixture
def played(tmp_path):
    """A run of three members, student_1 the better student."""
    run = tmp_path / "run"
    for number, name in enumerate(("student_0", "student_1", "teacher_0")):
        adapter(run / "members" / name, seed=number)
    (run / "config.yaml").write_text("seed: 1\n")
    rated = {f"student_{n}/mu": 20.0 + n for n in range(2)}
    rated |= {f"student_{n}/sigma": 1.0 for n in range(2)}
    (run / "metrics.jsonl").write_text(json.dumps({"step": 3, **rated}) + "\n")
    return run
