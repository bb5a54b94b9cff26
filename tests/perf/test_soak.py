"""The soak's short form: minutes, for CI's slow part."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).parents[2] / "perf" / "soak.py"


@pytest.mark.slow
def test_a_disturbed_run_ends_as_the_undisturbed_one(tmp_path):
    """Killed, without disk, without workers: the same members and records, no traceback. Memory is
    not judged: so short a run still fills its caches."""
    out = tmp_path / "soak.json"
    numbers = ("--steps=12", "--kills=3", "--full=1", "--worker-kills=1", "--growth=1000")
    done = subprocess.run([sys.executable, SOAK, *numbers, f"--json={out}"], capture_output=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:].decode()
    figures = json.loads(out.read_text())
    assert figures["faults"] == [] and len(set(figures["members"])) == 1
    assert figures["disturbances"]["kill"] == 3
    assert figures["disturbances"]["full disk"] == 1
    assert figures["disturbances"]["workers"] >= 1
