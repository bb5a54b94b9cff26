"""The command on the embedded base, which solves nothing: what matters is that it says so."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import suppress

import needs
import pytest
from made_up_problems import HUMANEVAL_ROWS, write_jsonl

from azr_population.bases.nano import nano_base_path
from azr_population.cli import main

needs.module("math_verify", "-e '.[eval]'")
needs.module("pebble", "-e '.[eval]'")


@pytest.fixture
def data(tmp_path):
    rows = [{"question": f"{n} + {n}?", "answer": f"#### {2 * n}"} for n in range(6)]
    write_jsonl(tmp_path / "data/gsm8k/test.jsonl", rows)
    return tmp_path / "data"


def command(tmp_path, data, *more):
    return [
        "evaluate", str(nano_base_path()), "--data", str(data), "--benchmarks", "gsm8k",
        "--prompts", "cot", "--max-tokens", "8", "--processes", "1",
        "--records", str(tmp_path / "records"), *more,
    ]  # fmt: skip


def test_a_model_that_cannot_scores_nothing(tmp_path, data, capsys):
    out = tmp_path / "table.csv"
    assert main(command(tmp_path, data, "--out", str(out))) == 0
    shown = capsys.readouterr()
    assert "| base | 0.0 [0.0, 45.9] |" in shown.out  # Clopper and Pearson, 0 of 6
    assert "GSM8K: 6 of 6 problems, unknown file" in shown.out
    assert ",base,base,1,GSM8K,0,0,0.459258,6" in out.read_text()
    kept = json.loads((tmp_path / "records/figures.json").read_text())
    names = ("gsm8k", "gsm8k by AZR's rule")
    assert kept["right"] == {name: {"base": [0] * 6} for name in names}


def test_a_folder_in_the_place_of_the_figures_is_told_before_anything_is_drawn(
    tmp_path, data, capsys
):
    (tmp_path / "records/figures.json").mkdir(parents=True)
    assert main(command(tmp_path, data)) == 2
    assert capsys.readouterr().err.endswith("records/figures.json is no regular file\n")
    assert not (tmp_path / "records/completions.jsonl").exists()


def test_killed_and_started_again_it_goes_on(tmp_path, data, capsys):
    """Killed after the first completion is on disk; the second command draws the other ones only,
    and ends with what an undisturbed one ends with."""
    path = tmp_path / "records/completions.jsonl"
    typed = command(tmp_path, data, "--rows", "1")
    program = [sys.executable, "-m", "azr_population.cli", *typed]
    with subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        while not (path.is_file() and path.read_bytes().count(b"\n")):
            with suppress(subprocess.TimeoutExpired):  # until it has something to lose
                run.wait(0.01)
                break
        run.send_signal(signal.SIGKILL)
    before = path.read_text().splitlines(keepends=True)
    assert before
    assert main(typed) == 0
    after = path.read_text().splitlines(keepends=True)
    assert after[: len(before)] == before
    assert len(after) == 6
    first = capsys.readouterr().out
    assert main(command(tmp_path / "other", data, "--rows", "1")) == 0
    assert capsys.readouterr().out == first
    assert main([*typed, "--regrade"]) == 0
    assert capsys.readouterr().out == first


def test_list_says_what_is_there(tmp_path, data, capsys, monkeypatch):
    monkeypatch.delenv("AZR_HOME", raising=False)
    write_jsonl(data / "HumanEvalPlus-v0.1.10.jsonl", HUMANEVAL_ROWS)
    assert main(["evaluate", "--list", "--data", str(data)]) == 0
    shown = capsys.readouterr().out
    rows = {line.split()[0]: line.split() for line in shown.splitlines() if line}
    assert rows["gsm8k"][1:5] == ["math", "unknown", "file", "6"]
    assert rows["humaneval_plus"][1:5] == ["code", "unknown", "file", "2"]
    assert rows["livecodebench"][1:3] == ["code", "missing"]
    assert rows["humaneval"][1:3] == ["extra", "missing"]
    assert "missing: livecodebench: livecodebench/*.jsonl" in shown


OWN = """
from azr_population.measuring.evaluation.benchmark import BenchmarkRow, benchmark
from azr_population.measuring.evaluation.problem import MathProblem


@benchmark(
    "own", title="Own", area="math", files=("own.jsonl",), source="here", licence="-",
    right="-", prompt="cot",
)
def own(row: BenchmarkRow) -> MathProblem:
    return MathProblem(row.id, row["q"], row["a"])
"""


def test_a_benchmark_of_the_user_s(tmp_path, data, capsys):
    (tmp_path / "mine.py").write_text(OWN)
    write_jsonl(data / "own.jsonl", [{"q": "1+1?", "a": "2"}])
    typed = command(tmp_path, data, "--with", str(tmp_path / "mine.py"))
    typed[typed.index("gsm8k")] = "own"
    assert main(typed) == 0
    assert "| model | Own |" in capsys.readouterr().out
    assert main([*command(tmp_path, data), "--with", str(tmp_path / "none.py")]) == 2
    assert "none.py is no Python file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--samples", "4", "--greedy"], "greedy samples are all the same"),
        (["--greedy", "--temperature", "0.5"], "say different things"),
        (["--temperature", "-1"], "--temperature=-1.0: 0 (greedy) or more"),
        (["--top-p", "0"], "--top-p=0.0: above 0"),
        (["--prompts", "azr_box"], "--prompts=azr_box is unknown (did you mean azr_boxed?)"),
        (["--prompts", "azr,cot"], "two wordings for one kind of problem"),
        (["--rollout", "trt"], "--rollout=trt: torch, vllm, or openai=URL"),
        (["--rollout", "openai=http://127.0.0.1:9/v1"], "does not answer"),
        (["--out", "table.html"], "--out=table.html: it ends in .md, .csv"),
        (["--benchmarks", "gsm9k"], "gsm9k is unknown (did you mean gsm8k?)"),
        (["--limit", "0"], "0 is too small"),
    ],
)
def test_bad_input_is_one_line(tmp_path, data, capsys, more, said):
    assert main(command(tmp_path, data, *more)) == 2
    error = capsys.readouterr().err.strip()
    assert said in error
    assert "\n" not in error


def test_nobody_named_and_no_such_folder(tmp_path, data, capsys):
    assert main(["evaluate", "--data", str(data), "--benchmarks", "gsm8k"]) == 2
    assert "name a run, a PEFT folder or a base" in capsys.readouterr().err
    assert main(["evaluate", str(tmp_path / "nothing"), "--data", str(data)]) == 2
    assert "is no run" in capsys.readouterr().err
