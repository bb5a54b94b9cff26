import pytest
from refusals import refuses

from azr_population.errors import UserError
from azr_population.runs import RunDirectory, directory


@pytest.fixture
def run(tmp_path):
    """A new run without records."""
    made = RunDirectory(tmp_path / "run")
    made.create("seed: 1\n", {"python": "3"})
    return made


def test_records_come_back_and_a_torn_line_is_skipped(run):
    run.append("metrics", [{"step": 1}, {"step": 2}])
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 3, "sec')
    assert [row["step"] for row in run.read("metrics")] == [1, 2]
    assert run.config() == {"seed": 1} and run.environment() == {"python": "3"}
    assert list(run.read("matches")) == []


def test_truncate_drops_later_steps_and_the_torn_line(run):
    run.append("tasks", [{"step": step, "program": "é"} for step in (1, 1, 2, 3)])
    with (run.path / "tasks.jsonl").open("a") as file:
        file.write('{"step": 4')
    run.truncate(2)
    run.append("tasks", [{"step": 3}])
    assert [row["step"] for row in run.read("tasks")] == [1, 1, 2, 3]


def test_truncate_drops_snapshots_of_later_steps(run):
    for step in (2, 3, 10):
        (run.snapshots / f"step_{step}").mkdir(parents=True)
    run.truncate(3)
    assert [step for step, _ in directory.steps(run.snapshots)] == [2, 3]


def test_a_folder_with_something_in_it_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with refuses("run.dir"):
        RunDirectory(tmp_path).create("", {})
    (tmp_path / "config.yaml").write_text("seed: 1")
    with refuses("run.dir"):
        RunDirectory(tmp_path).create("", {})
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_folder_that_is_no_run_is_named(tmp_path):
    with refuses("config.yaml"):
        RunDirectory(tmp_path).config()


def test_what_is_not_finite_is_written_as_null(run):
    run.append("metrics", [{"step": 1, "a/loss": float("nan"), "x": [1.5]}])
    assert list(run.read("metrics")) == [{"step": 1, "a/loss": None, "x": [1.5]}]


def test_a_folder_of_something_else_is_no_members(tmp_path):
    run = RunDirectory(tmp_path)
    assert run.member("student_12").name == "student_12"
    for name in ("../../victim", "teacher_0/..", "teacher_", "critic_0", "", None, "teacher_٣"):
        with pytest.raises(UserError):
            run.member(name)


def test_members_are_the_folders_of_members(tmp_path):
    for name in ("student_1", "student_0", "best", ".student_2.tmp"):
        (tmp_path / name).mkdir()
    (tmp_path / "student_3").touch()
    assert [path.name for path in directory.member_folders(tmp_path)] == ["student_0", "student_1"]
    (tmp_path / "critic_0").mkdir()
    with refuses("critic_0"):
        directory.member_folders(tmp_path)


def test_appending_follows_no_link(run, tmp_path):
    (tmp_path / "victim").write_text("precious")
    (run.path / "tasks.jsonl").symlink_to(tmp_path / "victim")
    with pytest.raises(UserError):
        run.append("tasks", [{"step": 1}])
    assert (tmp_path / "victim").read_text() == "precious"


DAMAGED = [
    "{}", '{"step": null}', "garbled", '{"step": -1}', "[1]", "[" * 100_000, '{"step": true}',
]  # fmt: skip


def test_damaged_lines_are_counted_skipped_and_kept(run):
    lines = ['{"step":1}', *DAMAGED, '{"step":2}', '{"step":3}']
    (run.path / "metrics.jsonl").write_text("\n".join(lines) + '\n{"step": 4')
    assert [row["step"] for row in run.read("metrics")] == [1, 2, 3]
    assert run.unreadable() == {"metrics": len(DAMAGED)}
    run.truncate(2)
    assert (run.path / "metrics.jsonl").read_text() == "\n".join(lines[:-1]) + "\n"


@pytest.mark.parametrize(
    "content", [b"a: [1\nb: {", b"\xff\xfe\x00", b"- 1\n"], ids=["YAML", "UTF-8", "mapping"]
)
def test_a_damaged_configuration_is_named(tmp_path, content):
    (tmp_path / "config.yaml").write_bytes(content)
    with refuses("config.yaml"):
        RunDirectory(tmp_path).config()


def lines_of(path):
    return {file.name: file.read_text() for file in path.glob("completions*")}


def test_a_bounded_record_is_put_aside_and_a_resumed_run_has_the_same_files(run, monkeypatch):
    monkeypatch.setitem(directory.BOUNDED, "completions", 40)
    states = {}
    for step in range(1, 12):
        run.append("completions", [{"step": step, "member": "teacher_0"}])
        states[step] = lines_of(run.path)
    assert all(len(text) < 100 for files in states.values() for text in files.values())
    assert [row["step"] for row in run.read("completions")] == [9, 10, 11]
    # Back to any step since the older file was begun, and on again.
    for back in (10, 9):
        run.truncate(back)
        assert [row["step"] for row in run.read("completions")] == list(range(9, back + 1))
        for step in range(back + 1, 12):
            run.append("completions", [{"step": step, "member": "teacher_0"}])
        assert lines_of(run.path) == states[11]


def test_a_bad_line_at_the_end_of_the_older_file_costs_no_newer_ones(run, monkeypatch):
    monkeypatch.setitem(directory.BOUNDED, "completions", 40)
    for step in (1, 2, 3):
        run.append("completions", [{"step": step, "member": "teacher_0"}])
    with (run.path / "completions.older.jsonl").open("a") as file:
        file.write("garbled\n")
    before = lines_of(run.path)
    run.truncate(3)
    assert lines_of(run.path) == before
