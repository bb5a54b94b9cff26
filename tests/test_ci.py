"""What `.ci/run` makes of its parts: here they are stubs that pass or fail."""

import shutil
import subprocess
from pathlib import Path

import pytest

RUN = Path(__file__).parents[1] / ".ci" / "run"
pytestmark = pytest.mark.skipif(
    not RUN.is_file() or not shutil.which("flock"), reason="needs a checkout and flock"
)


@pytest.fixture
def parts(tmp_path):
    """A checkout of nothing but `.ci/run` and parts that pass."""
    for script in ("check", "demo", "docs", "env", "test", "verl", "vllm_cpu"):
        stub(tmp_path / "scripts" / f"{script}.sh", "exit 0")
    for line in ("pins", "current", "vllm"):
        for program in ("azr-population", "python"):
            stub(tmp_path / f".venv-{line}" / "bin" / program, "exit 0")
    (tmp_path / ".ci").mkdir()
    shutil.copy(RUN, tmp_path / ".ci")
    return tmp_path


def stub(path, line):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/usr/bin/env bash\n{line}\n")
    path.chmod(0o755)


def play(parts):
    return subprocess.run(
        ["bash", str(parts / ".ci" / "run")], capture_output=True, text=True, check=False
    )


def test_it_passes_where_all_parts_pass(parts):
    done = play(parts)
    assert done.returncode == 0, done.stderr
    assert "--- pins" in done.stdout and "--- current" in done.stdout


@pytest.mark.parametrize("line", ["pins", "current"])
def test_a_line_that_fails_is_named_and_its_output_shown(parts, line):
    stub(parts / "scripts" / "test.sh", f'echo "tests of $LINE"; [ "$LINE" != {line} ]')
    done = play(parts)
    assert done.returncode == 1
    assert f"failed: {line}" in done.stderr and f"tests of {line}" in done.stdout


def test_the_last_stage_counts(parts):
    stub(parts / ".venv-vllm" / "bin" / "python", "exit 3")
    assert play(parts).returncode != 0
