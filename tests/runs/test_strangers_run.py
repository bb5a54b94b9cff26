"""A run directory that somebody sent or that went bad: one line, exit code 2, nothing destroyed."""

import hashlib
import json
import os
import resource
import shlex
import shutil
import subprocess
import sys

import pytest

from azr_population.cli import main
from azr_population.runs import RunDirectory
from azr_population.runs.checkpoint import members_digest, steps

pytestmark = pytest.mark.integration

SMALL = [
    "population=1t1s",
    "population.batch_size=4",
    "population.samples_per_task=2",
    "task.types=[code_o]",
    "eval.every=0",
    "run.checkpoint_every=1",
    "engine.threads=1",
    "referee.workers=1",
]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "whole"
    assert main(["train", *SMALL, "run.steps=2", f"run.dir={path}"]) == 0
    return path


@pytest.fixture
def run(finished, tmp_path):
    """A copy of a finished run of two steps, in a folder that has a neighbour."""
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "thesis.tex").write_text("precious")
    yield shutil.copytree(finished, tmp_path / "run")
    assert (tmp_path / "victim" / "thesis.tex").read_text() == "precious"


def edit_state(run, change):
    """Changes the checkpoints' plain state, and their checksums with it."""
    for _, folder in steps(run / "checkpoints"):
        state = json.loads((folder / "state.json").read_text())
        change(state)
        (folder / "state.json").write_text(json.dumps(state))
        manifest = json.loads((folder / "manifest.json").read_text())
        text = (folder / "state.json").read_bytes()
        manifest["state.json"] = hashlib.sha256(text).hexdigest()
        (folder / "manifest.json").write_text(json.dumps(manifest))


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def refused(run, capsys, *arguments):
    """What `resume` says when it refuses in one line and writes nothing."""
    before = contents(run)
    capsys.readouterr()
    assert main(["resume", str(run), "run.steps=3", *arguments]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "Traceback" not in said
    assert contents(run) == before
    return said


@pytest.mark.parametrize("name", ["../../../victim", "..", "/etc", "teacher_0/../../x", "", 7])
def test_names_of_members_lead_nowhere(run, capsys, name):
    edit_state(run, lambda state: state["roster"][0].update(name=name))
    assert "is no name of a member" in refused(run, capsys)


@pytest.mark.parametrize(
    ("field", "value"), [("sigma", 0), ("sigma", -1), ("mu", float("nan")), ("generation", -1)]
)
def test_numbers_that_no_member_can_have(run, capsys, field, value):
    edit_state(run, lambda state: state["roster"][0].update({field: value}))
    assert "the stored members are damaged" in refused(run, capsys)


@pytest.mark.parametrize("step", [-1, 10**12, "2", None, 2.0])
def test_a_state_of_another_step(run, capsys, step):
    edit_state(run, lambda state: state.update(step=step))
    assert f"state.json is of step {step!r}" in refused(run, capsys)


def test_tasks_that_are_no_text(run, capsys):
    edit_state(run, lambda state: state["buffer"]["tasks"][0].update(program=3))
    assert "a task holds what is no text: [3, " in refused(run, capsys)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", [".lock", "metrics.jsonl", "tasks.jsonl", "config.yaml"])
def test_pipes_are_not_waited_for(run, capsys, name):
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name)
    capsys.readouterr()
    assert main(["resume", str(run), "run.steps=3"]) == 2
    assert f"{name} is no regular file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("record", "change"),
    [
        ("metrics", {"time/update": [1]}),
        ("metrics", {"teacher/reward": {}}),
        ("metrics", {"time/step": 1e308}),
        ("metrics", {"<b>/mu": "<b>"}),
        ("matches", {"step": 10**12}),
        ("completions", {"verdict": None, "reason": None, "prompt": None, "reward": "<b>"}),
        ("completions", {"member": 3}),
        ("tasks", {"lines": 1e308}),
        ("tasks", {"program": None}),
        ("tasks", {"program": 3}),
        ("lineage", {"fitness": True}),
        ("lineage", {"options": [[1]]}),
        ("lineage", {"generation": float("nan")}),
    ],
)
def test_lines_of_another_shape_hurt_nobody(run, record, change):
    file = run / f"{record}.jsonl"
    whole = {"step": 2, "child": "student_0", "operator": "dare", "parents": []}
    line = json.loads(file.read_text().splitlines()[-1]) if record != "lineage" else whole
    file.write_text(file.read_text() + json.dumps({**line, **change}) + "\n")
    assert main(["report", str(run)]) == 0


@pytest.mark.parametrize("key", ["step", "roster", "rewards"])
def test_a_state_that_lacks_something(run, capsys, key):
    edit_state(run, lambda state: state.pop(key))
    assert f"is damaged (KeyError('{key}'))" in refused(run, capsys)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("seed: 1\n", "seed: 4\n", "seed=4, and its checkpoint of step 2 was played with seed=1"),
        ("  batch_size: 4\n", "  batch_size: 6\n", "population.batch_size=6"),
    ],
)
def test_an_edited_configuration(run, capsys, old, new, says):
    config = run / "config.yaml"
    assert old in config.read_text()
    config.write_text(config.read_text().replace(old, new, 1))
    assert says in refused(run, capsys)


def test_a_stored_configuration_looks_nothing_up(run, capsys, monkeypatch):
    monkeypatch.setenv("SECRET", "hunter2")
    config = run / "config.yaml"
    config.write_text(config.read_text().replace("name: 1t1s", "name: ${oc.env:SECRET}"))
    said = refused(run, capsys)
    assert "population.name=${oc.env:SECRET} is no value" in said and "hunter2" not in said
    assert main(["report", str(run)]) == 0
    assert "hunter2" not in (run / "report.html").read_text()


@pytest.mark.parametrize("name", [".lock", "metrics.jsonl", "members/teacher_0/README.md"])
def test_links_are_not_followed(run, tmp_path, capsys, name):
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(tmp_path / "victim" / "thesis.tex")
    capsys.readouterr()
    assert main(["resume", str(run), "run.steps=3"]) == 2
    assert "is a symbolic link" in capsys.readouterr().err


def test_the_report_follows_no_link(run, tmp_path):
    for name in (".report.html.tmp", "report.html"):
        (run / name).unlink(missing_ok=True)
        (run / name).symlink_to(tmp_path / "victim" / "thesis.tex")
    assert main(["report", str(run)]) == 0
    assert "<html" in (run / "report.html").read_text()


def test_fewer_steps_than_were_played(run, capsys):
    capsys.readouterr()
    assert main(["resume", str(run), "run.steps=1"]) == 2
    assert "run.steps=1 is less than the 2 steps" in capsys.readouterr().err


@pytest.mark.timeout(60)
@pytest.mark.parametrize("record", ["metrics", "matches", "lineage", "tasks", "completions"])
def test_damaged_lines_of_a_record_hurt_nobody(run, record):
    with (run / f"{record}.jsonl").open("a") as file:
        for line in ("{}", '{"step": null}', "garbled", "[" * 50_000, '{"step": 2}'):
            file.write(line + "\n")
    assert main(["report", str(run)]) == 0
    assert RunDirectory(run).unreadable() == {record: 4}
    assert f"Damaged lines left out: 4 of {record}.jsonl." in (run / "report.html").read_text()


COMMAND = [sys.executable, "-m", "azr_population.cli"]


def test_a_full_disk_is_told_and_the_last_checkpoint_is_sound(run):
    """No file may grow beyond a megabyte here, as on a disk that is full."""
    size = sum(len(content) for content in contents(run).values())
    done = subprocess.run(
        [*COMMAND, "resume", str(run), "run.steps=4"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000)),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and size > 1_000_000
    assert done.stderr.count("\n") == 1 and "cannot be written: File too large" in done.stderr
    digest = members_digest(run / "members")
    assert main(["resume", str(run), "run.steps=2"]) == 0
    assert members_digest(run / "members") == digest
    assert main(["resume", str(run), "run.steps=3"]) == 0


def test_a_missing_file_elsewhere_is_told_by_its_name(run, monkeypatch, capsys):
    def gone(*_):
        os.stat("/nowhere/page.html")

    monkeypatch.setattr("azr_population.analysis.report.write_report", gone)
    assert main(["resume", str(run), "run.steps=3"]) == 2
    told = capsys.readouterr().err
    assert "azr-population: /nowhere/page.html: No such file or directory; mend" in told
    assert "cannot be written" not in told


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to read-only folders")
def test_a_read_only_folder_is_told(run, capsys):
    os.chmod(run, 0o500)
    try:
        assert "cannot be written" in refused(run, capsys)
    finally:
        os.chmod(run, 0o700)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("typed", ["train --config", "recipe --list", "evolve --list"])
def test_output_that_cannot_be_written_is_told(typed):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, *typed.split()], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 2
    assert done.stderr == (
        "azr-population: its output cannot be written: No space left on device\n"
    )


def test_a_reader_that_leaves_is_noticed(tmp_path):
    path = tmp_path / "run"
    command = shlex.join([*COMMAND, "train", *SMALL, "run.steps=30", f"run.dir={path}"])
    script = f"{command} | head -2; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert done.returncode == 141
    assert done.stderr.count("\n") == 1 and f"azr-population resume {path}" in done.stderr
    assert len(list(RunDirectory(path).metrics())) < 30
