"""What README and docs print is true: Python runs, commands are taken, examples work."""

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import azr_population
from azr_population.cli import _parser, main
from azr_population.conf.load import load_config

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "recipes" / "README.md"]


def printed_commands():
    """(page, command) for every indented or fenced `azr-population ...` line."""
    for page in PAGES:
        for line in page.read_text().splitlines():
            command = line.split(" #")[0].strip()
            if re.match(r"(    |\$ )?azr-population ", line) and "..." not in command:
                yield page.name, command.removeprefix("$ ")


def test_the_python_of_docs_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testfile(
        str(ROOT / "docs" / "python.md"), module_relative=False, verbose=False
    )
    assert failed == 0 and tried > 15


def test_every_public_name_is_there_and_the_package_is_still_light():
    for name in azr_population.__all__:
        assert getattr(azr_population, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'refree'"):
        _ = azr_population.refree
    code = "import sys, azr_population; dir(azr_population); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize(("page", "command"), list(printed_commands()))
def test_every_printed_command_is_taken(page, command):
    words = shlex.split(command.split(" < ")[0].split(" > ")[0])[1:]
    arguments = _parser().parse_args(words)
    if words[0] == "train":
        load_config(arguments.overrides)


@pytest.mark.slow
def test_the_commands_for_a_laptop_run_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = ["population.rows=4", "population.attempts=2", "exam.every=0", "referee.workers=1"]
    assert main(["train", *small, "run.steps=1", "run.dir=runs/demo"]) == 0
    block = (ROOT / "README.md").read_text().split("## With a laptop")[1].split("\n\n")[1]
    commands = [line.split("#")[0].split() for line in block.splitlines()]
    played = [words for words in commands if words[0] == "azr-population"]
    assert [words[1] for words in played] == ["train", "resume", "report", "compare", "doctor"]
    for words in played:
        words = [re.sub("run.steps=(50|100)", "run.steps=1", word) for word in words[1:]]
        assert main([*words, *(small if words[0] == "train" else [])]) == 0, words


@pytest.fixture(scope="module")
def members(tmp_path_factory):
    """The members' folder of a tiny run."""
    run = tmp_path_factory.mktemp("runs") / "demo"
    small = "population=2t2s population.rows=4 population.attempts=2 exam.every=0 run.steps=1"
    assert main(["train", *small.split(), "referee.workers=1", f"run.dir={run}"]) == 0
    return run / "members"


def example(name, *arguments):
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / name, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_example_of_operators(members, tmp_path):
    child = tmp_path / "child"
    said = example("use_operators.py", members / "student_0", members / "student_1", child)
    assert said.startswith("child of ") and (child / "adapter_model.safetensors").is_file()


def test_the_example_of_a_member_in_peft(members):
    assert ">>> f(" in example("load_member.py", members / "teacher_0")


def test_the_example_of_a_tiny_base(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("def f(a):\n    return a + 1\n" * 50)
    assert example("tiny_base.py", tmp_path / "base", text).strip() == str(tmp_path / "base")
    assert (tmp_path / "base" / "model.safetensors").is_file()
