"""The benchmarks' files: where they lie, their formats, and what is damaged."""

import base64
import gzip
import json
import os
import pickle
import zlib

import needs
import pytest
from made_up_problems import CONTEST_ROWS, HUMANEVAL_ROWS, write_jsonl
from refusals import refuses

from azr_population.eval.benchmark.benchmarks import find_benchmarks, read_benchmark

GSM8K = {"question": "1+1?", "answer": "It is <<1+1=2>>2\n#### 2"}


def read(name, folder):
    read_benchmark.cache_clear()
    return read_benchmark(name, str(folder))


def test_all_are_the_ten_of_the_table_in_its_order():
    assert [b.title for b in find_benchmarks("all")] == [
        "HumanEval+", "MBPP+", "LiveCodeBench",
        "AIME 24", "AIME 25", "AMC 23", "MATH-500", "Minerva", "GSM8K", "OlympiadBench",
    ]  # fmt: skip
    names = [b.name for b in find_benchmarks("code,gsm8k")]
    assert names == ["humaneval_plus", "mbpp_plus", "livecodebench", "gsm8k"]
    for unknown in ("gsm8", ""):
        with refuses("benchmarks"):
            find_benchmarks(unknown)


def test_gold_answers_of_each_format(tmp_path):
    write_jsonl(tmp_path / "gsm8k/test.jsonl", [GSM8K])
    write_jsonl(tmp_path / "amc23/test.jsonl", [{"question": "q", "answer": 27.0}])
    minerva = {"problem": "q", "solution": r"so \boxed{\frac{a}{b}} m"}
    write_jsonl(tmp_path / "minerva_math/test.jsonl", [minerva])
    olympiad = {"question": "q", "final_answer": ["$n=k+4$"]}
    write_jsonl(tmp_path / "olympiadbench/test.jsonl", [olympiad])
    golds = {
        name: read(name, tmp_path).problems[0].gold
        for name in ("gsm8k", "amc23", "minerva", "olympiadbench")
    }
    assert golds == {
        "gsm8k": "2", "amc23": "27", "minerva": r"\frac{a}{b}", "olympiadbench": "n=k+4",
    }  # fmt: skip
    assert read("gsm8k", tmp_path).identity.startswith("unknown file (")


def test_a_packed_file_is_read(tmp_path):
    needs.module("evalplus", "-e '.[eval]'")
    path = tmp_path / "HumanEvalPlus.jsonl.gz"
    path.write_bytes(gzip.compress("".join(json.dumps(r) + "\n" for r in HUMANEVAL_ROWS).encode()))
    for beside in ("HumanEvalPlus.jsonl.gz.part", "humaneval_plus/HumanEvalPlus.jsonl.crdownload"):
        (tmp_path / beside).parent.mkdir(exist_ok=True)  # downloads that are not at their end
        (tmp_path / beside).write_bytes(path.read_bytes()[:99])
    problems = read("humaneval_plus", tmp_path).problems
    assert [p.id for p in problems] == ["HumanEval/900", "HumanEval/901"]
    assert problems[0].base_inputs == [[2], [0]]
    write_jsonl(tmp_path / "HumanEvalPlus.jsonl", HUMANEVAL_ROWS)  # unpacked beside it
    assert len(read("humaneval_plus", tmp_path).problems) == 2


def test_missing_data_name_their_source(tmp_path, monkeypatch):
    monkeypatch.delenv("AZR_HOME", raising=False)
    with refuses("https://"):
        read("gsm8k", tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        "{not json",
        "[" * 100_000,
        '{"question": "\\ud800", "answer": "#### 1"}',
        '{"question": "q", "answer": ' + "9" * 5_000 + "}",
        "[1]",
        '{"question": "q"}',
        '{"question": "q", "answer": "no marks"}',
        '{"question": "q", "answer": 7}',
    ],
)
def test_a_damaged_line_is_named(tmp_path, line):
    (tmp_path / "gsm8k.jsonl").write_text(json.dumps(GSM8K) + "\n" + line + "\n")
    with refuses("line 2"):
        read("gsm8k", tmp_path)


def test_an_empty_file_a_torn_archive_and_a_repeated_id(tmp_path):
    (tmp_path / "gsm8k.jsonl").write_text("")
    packed = gzip.compress(b'{"task_id": "HumanEval/1"}\n' * 999)
    (tmp_path / "HumanEvalPlus.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    write_jsonl(tmp_path / "livecodebench/test.jsonl", [CONTEST_ROWS[0]] * 2)
    for name, file in (
        ("gsm8k", "gsm8k"),
        ("humaneval_plus", "HumanEvalPlus"),
        ("livecodebench", "test"),
    ):
        with refuses(file):
            read(name, tmp_path)


def test_livecodebench_keeps_its_tests_on_disk_and_reads_every_release_file(tmp_path):
    private = json.loads(CONTEST_ROWS[0]["private_test_cases"])
    packed = base64.b64encode(zlib.compress(pickle.dumps(json.dumps(private)))).decode()
    second = {**CONTEST_ROWS[0], "question_id": "own_2", "private_test_cases": packed}
    write_jsonl(tmp_path / "livecodebench/test10.jsonl", [second])
    write_jsonl(tmp_path / "livecodebench/test2.jsonl", CONTEST_ROWS)
    problems = read("livecodebench", tmp_path).problems
    assert [problem.id for problem in problems] == ["own_2", "own_sum", "own_pairs"]
    assert problems[0].read_tests() == problems[1].read_tests()


@pytest.mark.parametrize(
    "private",
    [pickle.dumps(print), pickle.dumps("[" * 100_000), pickle.dumps([1]), b"", bytes(300_000_000)],
    ids=["code", "too deep", "not text", "nothing", "a bomb"],
)
def test_damaged_or_hostile_tests_are_refused_by_their_problem(tmp_path, private):
    packed = base64.b64encode(zlib.compress(private)).decode()
    rows = [{**CONTEST_ROWS[0], "private_test_cases": packed}]
    write_jsonl(tmp_path / "livecodebench/test.jsonl", rows)
    with refuses(CONTEST_ROWS[0]["question_id"]):
        read("livecodebench", tmp_path).problems[0].read_tests()


def test_a_pipe_in_the_place_of_a_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "gsm8k.jsonl")
    with refuses("gsm8k.jsonl"):
        read("gsm8k", tmp_path)
