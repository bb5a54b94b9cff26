"""The launchers of `examples/launch/`, played against an AZR checkout and a cluster that only
record what they are asked."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAUNCH = ROOT / "examples" / "launch"


@pytest.fixture
def azr(tmp_path):
    """An AZR checkout whose script writes down its arguments, one line a call, and fails where
    there is a file `fails`."""
    script = tmp_path / "azr" / "scripts" / "selfplay" / "coder7b.sh"
    script.parent.mkdir(parents=True)
    script.write_text(f'echo "$@" >>{tmp_path}/calls\n[ ! -e {tmp_path}/fails ]\n')
    return tmp_path


def play(name, folder, **variables):
    """Runs a launcher; returns its exit status and the calls of AZR's script."""
    environment = {
        "PATH": f"{folder}/bin:{os.environ['PATH']}", "AZR_HOME": str(folder / "azr"),
        "SLURM_GPUS_ON_NODE": "8", "SLURM_NNODES": "2", "SLURM_JOB_ID": "7",
        "SLURM_JOB_NODELIST": "n[1-2]", **variables,
    }  # fmt: skip
    done = subprocess.run(
        ["bash", LAUNCH / name, "population.seed=3"],
        env=environment,
        capture_output=True,
    )
    calls = folder / "calls"
    return done.returncode, calls.read_text().splitlines() if calls.exists() else []


def fake(folder, name, text):
    """A program in the place of one that this machine lacks."""
    path = folder / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/usr/bin/env bash\n{text}\n")
    path.chmod(0o755)


def test_one_node_is_rehearsed_and_played(azr):
    status, (rehearsed, played) = play("slurm_1node.sbatch", azr)
    assert status == 0
    assert rehearsed.split().count("population.dry_run=true") == 1
    assert "dry_run" not in played
    assert {"+population=4t4s", "trainer.n_gpus_per_node=8", "population.seed=3"} <= set(
        played.split()
    )


@pytest.mark.parametrize("name", ["slurm_1node.sbatch", "slurm_2nodes.sbatch"])
def test_what_cannot_start_is_not_played(azr, name):
    (azr / "fails").touch()
    fake(azr, "scontrol", "printf 'n1\\nn2\\n'")
    status, calls = play(name, azr)
    assert status != 0 and len(calls) == 1


def test_two_nodes_make_a_cluster_that_azr_joins(azr):
    fake(azr, "scontrol", "printf 'n1\\nn2\\n'")
    fake(azr, "srun", f'echo "$@" >>{azr}/srun')
    fake(azr, "ray", "printf ' 1 node_a\\n 1 node_b\\n'")
    status, calls = play("slurm_2nodes.sbatch", azr)
    assert status == 0 and len(calls) == 2
    assert {"trainer.nnodes=2", "ray_init.num_cpus=null"} <= set(calls[1].split())
    starts = sorted((azr / "srun").read_text().splitlines())
    assert [line.split()[2] for line in starts] == ["--exclude=n1", "--nodelist=n1"]
    assert "--head --port=20007" in starts[1] and "--address=n1:20007" in starts[0]


def test_a_ray_job_is_rehearsed_and_submitted(azr):
    # What stands behind `--` is what the cluster runs.
    fake(azr, "ray", 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"')
    status, (rehearsed, played) = play("ray_job.sh", azr, RAY_ADDRESS="http://head:8265", NODES="2")
    assert status == 0
    assert "population.dry_run=true" in rehearsed and "population.dry_run" not in played
    assert {"trainer.nnodes=2", "+population=4t4s", "population.seed=3"} <= set(played.split())
