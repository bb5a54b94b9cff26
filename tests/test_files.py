import errno
import fcntl
import os
import resource
import subprocess
import sys
import zlib

import pytest
from refusals import refuses

from azr_population.files import (
    inflate,
    lock,
    read_json,
    read_text,
    read_yaml,
    refuse_unplain,
    replacing_folder,
    write_atomically,
)


def test_a_link_is_replaced_and_not_followed(tmp_path):
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "report.html").symlink_to("victim")
    write_atomically(tmp_path / "report.html", "page")
    assert (tmp_path / "victim").read_text() == "precious"
    assert not (tmp_path / "report.html").is_symlink()
    assert (tmp_path / "report.html").read_text() == "page"


def test_temporary_names_cannot_be_guessed(tmp_path, monkeypatch):
    names = []
    monkeypatch.setattr(os, "replace", lambda old, new: names.append(old.name))
    for _ in range(2):
        write_atomically(tmp_path / "a", "text")
    assert len(set(names)) == 2
    assert list(tmp_path.iterdir()) == [], "what was not put in place is removed"


def test_new_files_have_the_rights_that_the_user_gives_to_new_files(tmp_path):
    previous = os.umask(0o027)
    try:
        write_atomically(tmp_path / "a", "text")
    finally:
        os.umask(previous)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_a_folder_is_replaced_whole_or_not_at_all(tmp_path):
    final = tmp_path / "member"
    for text in ("old", "new"):
        with replacing_folder(final) as folder:
            folder.mkdir()
            (folder / text).write_text(text)
    with pytest.raises(OSError), replacing_folder(final) as folder:
        folder.mkdir()
        raise OSError("disk full")
    assert [path.name for path in tmp_path.iterdir()] == ["member"]
    assert [path.name for path in final.iterdir()] == ["new"]


def test_a_link_in_the_place_of_a_folder_is_removed_as_a_link(tmp_path):
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "kept").write_text("")
    for name in ("member", ".member.tmp", ".member.old"):
        (tmp_path / name).symlink_to(victim)
    with replacing_folder(tmp_path / "member") as folder:
        folder.mkdir()
    assert [path.name for path in victim.iterdir()] == ["kept"]
    assert not (tmp_path / "member").is_symlink()


def test_pipes_are_found_too(tmp_path):
    os.mkfifo(tmp_path / "metrics.jsonl")
    with refuses("metrics.jsonl"):
        refuse_unplain(tmp_path, below=())


def test_links_are_found_where_is_written(tmp_path):
    (tmp_path / "members" / "teacher_0").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "link").symlink_to("/")
    refuse_unplain(tmp_path, below=("members",))
    (tmp_path / "members" / "teacher_0" / "README.md").symlink_to("/etc/hostname")
    with refuses("README.md"):
        refuse_unplain(tmp_path, below=("members",))


@pytest.mark.parametrize(
    "content",
    [b"{", b"\xff", b"[" * 100_000, b"9" * 5_000, b"\xff\xfea"],
    ids=["damaged", "not UTF-8", "too deep", "too long a number", "half a character"],
)
def test_json_that_cannot_be_read(tmp_path, content):
    (tmp_path / "a.json").write_bytes(content)
    with refuses("a.json"):
        read_json(tmp_path / "a.json")
    with refuses("b.json"):
        read_json(tmp_path / "b.json")


@pytest.mark.parametrize("tag", ['int ""', 'float ""', "bool x", "timestamp x"])
@pytest.mark.parametrize("dumped", [True, False])
def test_yaml_whose_value_is_not_of_its_tag(tmp_path, tag, dumped):
    (tmp_path / "a.yaml").write_text(f"a: !!{tag}\n")
    with refuses("a.yaml"):
        read_yaml(tmp_path / "a.yaml", dumped=dumped)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_text_of_windows_is_read(tmp_path, encoding, end):
    (tmp_path / "a").write_bytes(f"é\u2028\x85{end}b{end}".encode(encoding))
    assert read_text(tmp_path / "a") == "é\u2028\x85\nb\n"


def test_packed_data_are_unpacked_up_to_a_limit():
    assert inflate(zlib.compress(b"a" * 1000), 1000) == b"a" * 1000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for packed in (zlib.compress(bytes(200_000_000)), zlib.compress(b"abc")[:-1], b"abc"):
        with pytest.raises(ValueError):
            inflate(packed, 1000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000, "kB"


@pytest.fixture
def without(monkeypatch):
    """Makes the system calls of a file system that has neither locks nor syncing."""

    def answer(number):
        def fail(*_):
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(fcntl, "flock", fail)
        monkeypatch.setattr(os, "fsync", fail)

    return answer


@pytest.mark.parametrize(
    "number", [errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.ENOLCK, errno.EPERM]
)
def test_what_a_file_system_does_not_have_ends_no_run(tmp_path, without, number):
    without(number)
    with pytest.warns(UserWarning, match="without locks"), lock(tmp_path / ".lock", "in use"):
        write_atomically(tmp_path / "a", "text")
        with replacing_folder(tmp_path / "step_1") as folder:
            folder.mkdir()
            (folder / "b").write_text("text")
    assert (tmp_path / "a").read_text() == (tmp_path / "step_1/b").read_text() == "text"


def test_what_is_broken_is_not_ignored(tmp_path, without):
    without(errno.EIO)
    with pytest.raises(OSError):
        write_atomically(tmp_path / "a", "text")
    with pytest.raises(OSError), lock(tmp_path / ".lock", "in use"):
        pass


def test_a_lock_is_one_process_s(tmp_path):
    with lock(tmp_path / ".lock", "in use"), refuses("in use"), lock(tmp_path / ".lock", "in use"):
        pass


def test_a_user_without_a_home_and_a_name_starts():
    """As in a container that is started as any user; Altair asks for a home at its import."""
    program = """
import os, pwd
def unknown(uid): raise KeyError(uid)
pwd.getpwuid = unknown
import azr_population.analysis.charts
from azr_population.printable import shareable
print(shareable("a"))
"""
    environment = {k: v for k, v in os.environ.items() if k not in ("HOME", "USER", "LOGNAME")}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True)
    assert done.stdout == b"a\n", done.stderr


def test_a_lock_that_cannot_be_written_is_named(tmp_path):
    path = tmp_path / "nowhere" / ".lock"
    with refuses(path), lock(path, "used"):
        pass
