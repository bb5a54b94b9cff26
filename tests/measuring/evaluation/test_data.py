from __future__ import annotations

import base64
import gzip
import json
import pickle
import zlib

import needs
import pytest
from made_up_problems import CONTEST_ROWS, HUMANEVAL_ROWS, write_jsonl

from azr_population.errors import UserError
from azr_population.measuring.evaluation.benchmark import BENCHMARKS, chosen
from azr_population.measuring.evaluation.data import describe, locate, read


def one(name):
    return chosen(name)[0]


def test_all_are_the_ten_of_the_table_in_its_order():
    assert [b.title for b in chosen("all")] == [
        "HumanEval+", "MBPP+", "LiveCodeBench",
        "AIME 24", "AIME 25", "AMC 23", "MATH-500", "Minerva", "GSM8K", "OlympiadBench",
    ]  # fmt: skip
    assert [b.name for b in chosen("code,gsm8k")] == [
        "humaneval_plus", "mbpp_plus", "livecodebench", "gsm8k",
    ]  # fmt: skip


def test_an_unknown_benchmark_is_named_with_the_nearest():
    with pytest.raises(UserError, match=r"gsm8 is unknown \(did you mean gsm8k\?\)"):
        chosen("gsm8")


def test_a_folder_as_azr_ships_it(tmp_path):
    write_jsonl(
        tmp_path / "gsm8k/test.jsonl",
        [{"question": "1+1?", "answer": "It is <<1+1=2>>2\n#### 2", "idx": 0}],
    )
    data = read(one("gsm8k"), tmp_path)
    assert [(p.id, p.question, p.gold) for p in data.problems] == [("gsm8k/0", "1+1?", "2")]
    assert data.release == ""
    assert data.identity.startswith("unknown file (")


def test_gold_answers_of_each_format(tmp_path):
    write_jsonl(tmp_path / "amc23/test.jsonl", [{"question": "q", "answer": 27.0}])
    write_jsonl(
        tmp_path / "minerva_math/test.jsonl",
        [{"problem": "q", "solution": r"so \boxed{\frac{a}{b}} m", "type": "t", "idx": 0}],
    )
    write_jsonl(
        tmp_path / "olympiadbench/test.jsonl", [{"question": "q", "final_answer": ["$n=k+4$"]}]
    )
    golds = {
        n: read(one(n), tmp_path).problems[0].gold for n in ("amc23", "minerva", "olympiadbench")
    }
    assert golds == {"amc23": "27", "minerva": r"\frac{a}{b}", "olympiadbench": "n=k+4"}


def test_evalplus_own_variable_is_honoured_and_a_packed_file_read(tmp_path, monkeypatch):
    needs.module("evalplus", "-e '.[eval]'")
    path = tmp_path / "anywhere.jsonl.gz"
    path.write_bytes(gzip.compress("".join(json.dumps(r) + "\n" for r in HUMANEVAL_ROWS).encode()))
    monkeypatch.setenv("HUMANEVAL_OVERRIDE_PATH", str(path))
    problems = read(one("humaneval_plus"), None).problems
    assert [p.id for p in problems] == ["HumanEval/900", "HumanEval/901"]
    assert problems[0].base_inputs == [[2], [0]]
    monkeypatch.setenv("HUMANEVAL_OVERRIDE_PATH", str(tmp_path / "none"))
    with pytest.raises(UserError, match=r"HUMANEVAL_OVERRIDE_PATH=.*none is not a file"):
        locate(one("humaneval_plus"), None)


def test_missing_data_say_how_to_get_them(tmp_path, monkeypatch):
    monkeypatch.delenv("AZR_HOME", raising=False)
    with pytest.raises(UserError, match=r"gsm8k: no gsm8k/test.jsonl .* get it from https://"):
        read(one("gsm8k"), tmp_path)
    assert describe(one("gsm8k"), tmp_path).state == "missing"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{not json", "line 2"),
        ("[1]", "line 2.*not a JSON object"),
        ('{"question": "q"}', "line 2: it has no 'answer'"),
        ('{"question": "q", "answer": "no marks"}', "line 2"),
        ('{"question": "q", "answer": 7}', "line 2"),
    ],
)
def test_a_damaged_line_is_named(tmp_path, line, said):
    path = tmp_path / "gsm8k.jsonl"
    path.write_text(json.dumps({"question": "q", "answer": "#### 1"}) + "\n" + line + "\n")
    with pytest.raises(UserError, match=said):
        read(one("gsm8k"), tmp_path)


def test_an_empty_file_and_a_torn_archive(tmp_path):
    (tmp_path / "gsm8k.jsonl").write_text("")
    with pytest.raises(UserError, match="holds no problem"):
        read(one("gsm8k"), tmp_path)
    packed = gzip.compress(b'{"task_id": "HumanEval/1"}\n' * 999)
    (tmp_path / "HumanEval.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(UserError, match=r"HumanEval.jsonl.gz"):
        read(one("humaneval"), tmp_path)


def test_livecodebench_keeps_its_tests_on_disk_and_reads_every_release_file(tmp_path):
    private = json.loads(CONTEST_ROWS[0]["private_test_cases"])
    packed = base64.b64encode(zlib.compress(pickle.dumps(json.dumps(private)))).decode()
    write_jsonl(tmp_path / "livecodebench/test.jsonl", [CONTEST_ROWS[1]])
    write_jsonl(
        tmp_path / "livecodebench/test2.jsonl", [{**CONTEST_ROWS[0], "private_test_cases": packed}]
    )
    problems = read(one("livecodebench"), tmp_path).problems
    assert [(p.id, p.function) for p in problems] == [("own_pairs", "pairs"), ("own_sum", "")]
    assert len(problems[1].read_tests()) == 13
    assert problems[0].read_tests()[0] == ("[1, 2, 3]\n4", "[[1, 3]]")


class Bomb:
    def __reduce__(self):
        return (exec, ("raise SystemExit('the pickle ran')",))


def test_a_pickle_that_would_run_code_is_refused(tmp_path):
    packed = base64.b64encode(zlib.compress(pickle.dumps(Bomb()))).decode()
    write_jsonl(
        tmp_path / "livecodebench/test.jsonl", [{**CONTEST_ROWS[0], "private_test_cases": packed}]
    )
    (problem,) = read(one("livecodebench"), tmp_path).problems
    with pytest.raises(UserError, match="the tests of own_sum are damaged"):
        problem.read_tests()


@needs.azr_checkout
def test_the_known_hashes_are_those_of_azr_s_files():
    known = {b.name: describe(b, None).state for b in chosen("all")}
    assert known["mbpp_plus"] == "v0.2.0"
    assert all(known[b.name] == "AZR a82124e" for b in chosen("math"))
    assert len(list(BENCHMARKS)) >= 11
