"""Wrong commands as people type them: each is refused in one line that says the way out."""

import shlex
from pathlib import Path

import pytest
from refusals import refused

EXAMPLES = Path(__file__).parents[2] / "examples"
RUN = EXAMPLES / "runs" / "4t4s"
# A command and the words of its refusal that name the way out.
WRONG = {
    # Options of other programs.
    "train --steps 5": "run.steps=5",
    "train --steps=5": "run.steps=5",
    "demo --seed 3": "seed=3",
    "train --run.steps=5": "run.steps=5",
    "train --run.steps 5": "run.steps=5",
    "train --lr 1e-4": "population.student_lr=1e-4",
    "train --population 4t4s": "population=4t4s",
    "train --batch-size 64": "population.batch_size=64",
    "train --output-dir runs/x": "run.dir=runs/x",
    "train --dryrun": "--dry-run",
    "demo --dry-run": "azr-population train has it",
    # Overrides.
    "train run.steps 5": "run.steps=5",
    "train run.steps": "run.steps=",
    "train run.steps = 5": "run.steps=5",
    "train run.steps: 5": "run.steps=5",
    "train 4t4s": "population=4t4s",
    "demo 2t2s": "population=2t2s",
    "train steps=5": "run.steps",
    "train run.step=5": "run.steps",
    "train dir=runs/x": "run.dir",
    "train batch_size=64": "population.batch_size",
    "train lr=1e-4": "population.student_lr",
    "train population.size=4": "population.teachers=4 population.students=4",
    "train population=3t3s": "population.teachers=3 population.students=3",
    "train population=4T4S": "did you mean 4t4s?",
    "train population.teachers=four": "integer",
    "train base=/models/qwen": "base=hf base.path=/models/qwen",
    "train base=Qwen/Qwen2.5-Coder-3B": "base=hf base.path=Qwen/Qwen2.5-Coder-3B",
    "train base=hf": "base.path has no value; give the folder",
    "train base=hf base.path=/no/such": "/no/such",
    "train model=qwen": "base=hf base.path=",
    "train engine=cuda": "did you mean torch_cuda?",
    "train engine=vllm": "engine.rollout=vllm",
    "train evolution=off": "evolution=none",
    "train evolution.enabled=false": "evolution=none",
    "train matchmaking=random": "uniform",
    "train logger=tb": "tensorboard",
    "train seed=1,2,3": "one",
    "train run.dir=${HOME}/x": "the value itself",
    f"train run.dir={RUN}": "resume",
    # Runs.
    "report": "RUN",
    "report x.html": "--out x.html",
    f"report {RUN} x.html": "--out x.html",
    f"report {RUN} --uot y": "--out",
    f"report {RUN}/metrics.jsonl": str(RUN),
    f"report {EXAMPLES}/runs/README.md": "neither a run's folder nor the console output of AZR",
    f"report {RUN}/members": f"did you mean {RUN}?",
    "report nowhere": "which train and demo write",
    f"play {EXAMPLES}/runs/4t4": f"did you mean {EXAMPLES}/runs/4t4s?",
    f"show {EXAMPLES}": f"did you mean {EXAMPLES}/runs/1t1s?",
    f"show {RUN} teacher_0": f"did you mean {RUN}/teacher_0?",
    f"show {RUN}/student0": "student_0",
    f"show {RUN} --type output": "code_o",
    f"show {RUN} --step 99": "20",
    f"show {RUN} --verdict wrnog": "did you mean wrong?",
    f"sample {RUN}": "student_0",
    f"sample {RUN} student_9": "student_0",
    f"sample {RUN} student_0": "--propose TYPE",
    f"sample {RUN} --prompt a --propose code_o": "--prompt and --propose",
    f"compare {RUN}": "pass two or more runs",
    "resume": "RUN",
    f"resume {RUN}": "start a new run in another run.dir",
    f"resume {RUN} population.batch_size=4": "start a new run",
    f"resume {RUN} run.steps=40": "no checkpoint",
    f"resume {RUN} --steps 40": "run.steps=40",
    "train -s5": "No such option",
    "train -xyz": "No such option",
    "demo --steps": "No such option '--steps'; did you mean run.steps=VALUE?",
    # Other commands.
    "trian": "train",
    "run": "train",
    "help trian": "train",
    "recipe --from-results": "--list",
    "recipe fig4": "fig4",
    "evolve": "--list",
    f"evolve dare {RUN}/members/student_0 --out child": "takes 2 parents",
    f"export {RUN}": "--to FORMAT --out FOLDER",
    f"export {RUN} --to csv --out x": "jsonl",
    f"benchmark {RUN} --members studens": "students",
    f"push {RUN} teacher_0": "--repo",
    "new rewrd squared": "reward",
    "new reward my-reward": "my_reward",
    "new reward json": "my_json",
    "new domain program": "my_program",
    "new reward class": "try my_class",
    "new reward 2fast": "try my_2fast",
    f"report {RUN} --out .": "name one in it",
    f"export {RUN} --to jsonl --out {RUN}/config.yaml/x": f"{RUN}/config.yaml: ",
    "check-serving http://x --adapter a=x --adapter a=y": "--adapter names one thing twice",
    "check-serving http://x --adapter a=x --old b=y": "--old b",
    f"eval {RUN} --out x.csv": ".json",
}  # fmt: skip


@pytest.mark.parametrize("command", WRONG)
def test_the_refusal_says_the_way_out(command, capsys):
    line = refused(capsys, *shlex.split(command))
    assert WRONG[command] in line, line


@pytest.mark.parametrize("command", [f"play {RUN}", f"sample {RUN} student_0 --solve -", "referee"])
def test_an_input_that_is_closed_is_one_line(command, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", None)
    assert "standard input is closed" in refused(capsys, *shlex.split(command))
