"""`examples/azr_ab.sh` with a stand-in for AZR: logs stay, and the verdict is the end."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
AZR = """\
for word in "$@"; do
    case $word in
        trainer.experiment_name=*) name=${word#*=} ;;
        population.run_dir=*) run=${word#*=} ;;
    esac
done
echo 'step:0 - val/test_score/x:0.125'
echo 'step:1 - pred_code_o/accuracy:0.5'
echo 'step:2 - val/test_score/x:0.25'
[ -n "${run:-}" ] || exit 0
mkdir -p "$run"
echo "{seed: 1, population: {name: $name}}" >"$run/config.yaml"
echo '{"step": 1, "member": "student_0", "shares": {"x": 0.5}}' >"$run/validations.jsonl"
echo '{"step": 1, "roles": {}, "members": {}}' >"$run/metrics.jsonl"
"""


def test_the_script_ends_with_the_verdict_on_all_arms(tmp_path):
    scripts = tmp_path / "azr" / "scripts" / "selfplay"
    scripts.mkdir(parents=True)
    (scripts / "coder7b.sh").write_text(AZR)
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    own = {"AZR_HOME": str(tmp_path / "azr"), "OUT": str(tmp_path / "out")}
    own |= {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", str(ROOT / "examples" / "azr_ab.sh")],
        env={**os.environ, **own},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    verdicts = [line.split() for line in done.stdout.splitlines() if "validation, at the" in line]
    # single and 4t4s against stock, then 4t4s against single.
    assert [line[5:7] for line in verdicts] == [
        ["25.0%", "50.0%"],
        ["25.0%", "50.0%"],
        ["50.0%", "50.0%"],
    ]
    kept = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"stock.log", "single.log", "4t4s.log", "compare.html", "population.html"} <= kept
