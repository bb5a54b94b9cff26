"""AZR's own command with the override, end to end on CPUs: four minutes each on two busy cores."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import host
import pytest

from azr_population.runs.checkpoint import members_digest

pytestmark = [
    pytest.mark.azr,
    pytest.mark.slow,
    pytest.mark.timeout(3000),
    pytest.mark.skipif(not host.AZR_HOME, reason="AZR_HOME names no checkout of AZR"),
]

POPULATION = [
    "population.worker=scripted_worker.ScriptedWorker",
    "population.lora.rank=4",
    "population.lora.alpha=8",
    "population.evolution.interval=2",
    "population.threads=1",
    "data.max_response_length=300",
    "data.max_prompt_length=4000",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("verl", reason="verl is not installed (extra: verl)")
    folder = tmp_path_factory.mktemp("azr")
    host.prepare(folder)
    return folder


def run_directory(folder: Path, out: str = "out") -> Path:
    return folder / out / "test_answer" / "base" / "answer_conditional" / "population"


def records(folder: Path, name: str) -> list[dict[str, Any]]:
    lines = (run_directory(folder) / f"{name}.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_a_population_plays_all_problem_types(folder: Path) -> None:
    extra = ["+population=4t4s", *POPULATION, "trainer.save_freq=3"]
    code, log = host.run(folder, [*extra, "trainer.total_training_steps=4"])
    assert code == 0, log[-3000:]
    steps, matches, births = (records(folder, n) for n in ("metrics", "matches", "lineage"))
    assert [step["step"] for step in steps] == [1, 2, 3, 4]
    for step in steps:
        # 2 rows of stock AZR's agent, twice for proposing and solving, of 3 problem types.
        assert {own["trained_rows"] for own in step["members"].values()} == {12}
        assert {own["updates"] for own in step["members"].values()} <= {0.0, 1.0}
        assert set(step["types"]) == {"code_i", "code_o", "code_f"}
    assert len(matches) == 16 and all(match["proposed"] == 12 for match in matches)
    assert any(0 < (match["solve_rate"] or 0) < 1 for match in matches)
    assert {birth["step"] for birth in births} == {2, 4} and len(births) == 4
    tasks = records(folder, "tasks")
    assert {task["type"] for task in tasks} == {"code_i", "code_o", "code_f"}
    for task in tasks:
        assert sum(task["solved"]) / len(task["solved"]) == task["solve_rate"]
    assert "population/teacher/validity" in log and "population/student_3/mu" in log
    assert (run_directory(folder) / "report.html").is_file()


def test_a_resumed_run_ends_as_the_whole_one(folder: Path) -> None:
    whole = run_directory(folder)
    if not whole.is_dir():
        pytest.skip("there is no run to resume; test_a_population_plays_all_problem_types makes it")
    shutil.copytree(whole, folder / "whole")
    # As after a crash in step 4: its records are there, and the checkpoint of step 3.
    shutil.rmtree(whole.parent / "global_step_4")
    (whole.parent / "latest_checkpointed_iteration.txt").write_text("3")
    extra = ["+population=4t4s", *POPULATION, "trainer.save_freq=3"]
    code, log = host.run(folder, [*extra, "trainer.total_training_steps=4"])
    assert code == 0, log[-3000:]
    for name in ("matches", "lineage", "tasks"):
        again = (whole / f"{name}.jsonl").read_text()
        assert again == (folder / "whole" / f"{name}.jsonl").read_text()
    assert members_digest(whole / "members") == members_digest(folder / "whole" / "members")


def test_single_is_one_agent_with_the_same_rows(folder: Path) -> None:
    extra = ["+population=single", *POPULATION, f"trainer.default_local_dir={folder / 'single'}"]
    code, log = host.run(folder, [*extra, "trainer.total_training_steps=1"])
    assert code == 0, log[-3000:]
    path = run_directory(folder, "single")
    (step,) = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    assert step["members"]["agent_0"]["trained_rows"] == 12
    assert (path / "members" / "agent_0" / "adapter_model.safetensors").is_file()


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("algorithm.adv_estimator=gae", "algorithm.adv_estimator=gae is not supported"),
        ("population.lora.target_modules=[c_attn]", "c_attn"),
        ("data.train_batch_size=300", "300 different ones are drawn"),
    ],
)
def test_bad_input_ends_the_command_with_one_line(folder: Path, override: str, told: str) -> None:
    code, log = host.run(folder, ["+population=4t4s", override])
    (line,) = re.findall(r"^azr-population: .*$", log, re.MULTILINE)
    assert code == 1 and told in line and "Traceback" not in log


def test_without_the_override_the_trainer_is_azrs_own(folder: Path) -> None:
    # Stock AZR on CPUs ends where it looks for GPUs; until there nothing of ours may be loaded.
    code, log = host.run(folder, [f"trainer.default_local_dir={folder / 'stock'}"])
    assert code != 0 and "Total available GPUs 0 is less than" in log
    assert "azr_population" not in log and "azr-population" not in log
    assert not list(folder.glob("stock/**/population"))
