import json
import os
from pathlib import Path

import needs
import pytest
from refusals import refuses

from azr_population.domains.code.seed_file import read_seed_file
from azr_population.domains.code.task_types import TaskType

IO = {"snippet": "def f(a):\n    return a", "input": "1", "output": "1", "imports": []}
FUNCTION = {"snippet": "def f(a):\n    return a", "inputs": ["1", "2"], "outputs": ["1", "2"]}


def write(path, *rows):
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return path


def test_both_kinds_of_line(tmp_path):
    proposals = read_seed_file(write(tmp_path / "seed.jsonl", IO, "", FUNCTION))
    assert [str(p.type) for p in proposals] == ["code_o", "code_i", "code_f"]
    assert proposals[2].inputs == ("1", "2")


@pytest.mark.parametrize(
    ("line", "about"),
    [
        ("{broken", "line 2"),
        ("[1]", "line 2"),
        ({"input": "1"}, "snippet"),
        ({"snippet": "x"}, "input"),
        ({"snippet": "x", "input": 5}, "input"),
        ({**FUNCTION, "message": None}, "message"),
        ({**FUNCTION, "message": 5}, "message"),
        ({**IO, "imports": 5}, "imports"),
        ({**IO, "imports": "import re"}, "imports"),
        ({"snippet": "x", "inputs": [5]}, "inputs"),
    ],
)
def test_a_broken_line_is_named(tmp_path, line, about):
    with refuses(about):
        read_seed_file(write(tmp_path / "seed.jsonl", IO, line))


def test_a_missing_file_is_named(tmp_path):
    with refuses("nowhere.jsonl"):
        read_seed_file(tmp_path / "nowhere.jsonl")
    (tmp_path / "latin.jsonl").write_bytes(b"\xe9")
    with refuses("latin.jsonl"):
        read_seed_file(tmp_path / "latin.jsonl")


@pytest.mark.azr
@needs.azr_checkout
def test_azr_seed_files_are_read_whole():
    data = Path(os.environ["AZR_HOME"]) / "data"
    pairs = read_seed_file(data / "7b_coder_seed_io.jsonl")
    functions = read_seed_file(data / "7b_coder_code_f_seed_io.jsonl")
    assert len(pairs) == 512 and len(functions) == 256
    assert all(proposal.type == TaskType.CODE_F for proposal in functions)
