"""Writing so that a file is old or new and never half, and reading what a stranger may have made.

A folder that somebody sent may hold anything in the place of a file: a link to another file, a pipe
that never ends, JSON that nests a hundred thousand deep. Nothing here follows a link to write, and
every fault in what is read is a `UserError`.
"""

import fcntl
import io
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from azr_population.errors import UserError

LONGEST_SETTINGS = 1_000_000
"""Bytes of a configuration; a run's own has some thousands."""
DEEPEST_SETTINGS = 64
"""Levels of a configuration; a run's own has four."""
_MEND = "fix it by hand, restore a copy, or start the run again"


def write_atomically(path: Path, text: str) -> None:
    """Writes to a name that nobody can guess, syncs and renames.

    A link at `path` is replaced and not followed. A failed write leaves `path` as it was.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except IsADirectoryError as error:
        raise UserError(f"{path} is a folder, and a file belongs there; move it away") from error
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def writing(what: object, way_out: str = "") -> Iterator[None]:
    """Whatever keeps the user's file from being written is a `UserError` that names `what`."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{what} cannot be written: {error.strerror}{way_out}") from error


@contextmanager
def lock(path: Path, used: str) -> Iterator[None]:
    """Holds a file that one process at a time can hold, freed even by a crash; raises a `UserError`
    with the words `used` where another has it."""
    with open(path, "ab", opener=open_own) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UserError(used) from error
        yield


def open_own(name: str | Path, flags: int) -> int:
    """A descriptor of a file that is created when missing and never reached through a link.

    Serves as the `opener` of `open`.

    Raises UserError: there is a link at `path`, a folder, or a pipe (which would be waited for).
    """
    path = Path(name)
    never_linked = os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags | never_linked, 0o666)
    except OSError as error:
        if path.is_symlink():
            raise UserError(f"{path} is a symbolic link; put a file in its place") from error
        if path.exists() and not path.is_file():
            raise UserError(f"{path} is not a regular file; move it away") from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UserError(f"{path} is not a regular file; move it away")
    return descriptor


def refuse_unplain(folder: Path, below: Sequence[str]) -> None:
    """Raises `UserError` for what is neither a file nor a folder in `folder`, or anywhere in its
    subfolders `below`: a link leads elsewhere, and a pipe is waited for without end.

    The folder itself may be a link: whoever wants a run on another disk links the whole.
    """
    inside = [path for name in below for path in (folder / name).rglob("*")]
    for path in (*folder.iterdir(), *inside):
        if path.is_symlink():
            raise UserError(
                f"{path} is a symbolic link to {os.readlink(path)}, and what is written here would "
                "go there; put a copy in its place, or link the whole folder"
            )
        if not path.is_dir():
            refuse_irregular(path)


def read_text(path: Path) -> str:
    """The text of a regular file. Raises UserError: it is missing, no regular file, or not
    UTF-8."""
    refuse_irregular(path)
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text (byte {error.start})") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error


def read_json(path: Path) -> Any:
    """The JSON value in a regular file. Raises UserError: as `read_text`, or it is no JSON, or
    nested too deep."""
    text = read_text(path)
    try:
        return json.loads(text)
    except ValueError as error:
        raise UserError(f"{path} is damaged: {error}") from error
    except RecursionError as error:
        raise UserError(f"{path} is nested too deep to be read") from error


def read_yaml(path: Path, dumped: bool = False) -> dict[str, Any]:
    """The settings by name in a regular file, as OmegaConf reads YAML, but nothing looked up; what
    a program has `dumped` has no number that OmegaConf reads otherwise, and is read ten times as
    fast.
    Raises UserError: as `read_text`, or it is no YAML, not settings by name, nested too deep, or
    says one part twice by an alias: a page of those grows beyond any memory."""
    import yaml
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    refuse_irregular(path)
    if (size := path.stat().st_size) > LONGEST_SETTINGS:
        raise UserError(f"{path} has {size:,} bytes, and no configuration is as long; {_MEND}")
    text = read_text(path)
    try:
        depth = 0
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        for event in yaml.parse(text, loader):
            if isinstance(event, yaml.AliasEvent):
                raise UserError(
                    f"{path} holds aliases (*), which no configuration here does; {_MEND}"
                )
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST_SETTINGS:  # PyYAML takes a minute for some thousands.
                raise yaml.YAMLError
        if dumped:
            settings = yaml.load(text, loader)
        else:
            settings = OmegaConf.to_container(OmegaConf.load(io.StringIO(text)), resolve=False)
    except (yaml.YAMLError, OSError, ValueError, OmegaConfBaseException) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark else ""
        raise UserError(f"{path} is not readable YAML{where}; {_MEND}") from error
    except RecursionError as error:
        raise UserError(f"{path} is nested too deep to be read") from error
    if not isinstance(settings, dict):
        raise UserError(f"{path} holds no settings by name; {_MEND}")
    return {str(key): value for key, value in settings.items()}


def refuse_irregular(path: Path) -> None:
    """Raises `UserError` unless `path` is a regular file: a pipe would be waited for for ever."""
    if not path.exists():
        raise UserError(f"{path} is missing")
    if not path.is_file():
        raise UserError(f"{path} is not a regular file")


@contextmanager
def replacing_folder(final: Path) -> Iterator[Path]:
    """Gives a path to make a folder at, and puts that in the place of `final`, synced to disk.

    An error on the way leaves `final` as it was.
    """
    temporary = final.with_name(f".{final.name}.tmp")
    _remove(temporary)
    try:
        yield temporary
        for path in temporary.rglob("*"):
            if path.is_file():
                with path.open("rb") as file:
                    os.fsync(file.fileno())
    except BaseException:
        # A full disk is no reason to leave half a folder on it.
        _remove(temporary)
        raise
    old = final.with_name(f".{final.name}.old")
    _remove(old)
    if final.is_symlink():
        final.unlink()
    if final.exists():
        os.rename(final, old)
    os.rename(temporary, final)
    _remove(old)
    directory = os.open(final.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _remove(path: Path) -> None:
    """Removes what a crash left behind, a link as a link."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    else:
        shutil.rmtree(path, ignore_errors=True)


_MEMBER = re.compile(r"(teacher|student|agent)_[0-9]{1,6}")


def check_name(name: object) -> str:
    """`name`, if a member can have it: its role and a number, such as `teacher_0`.

    Names become folders, so whatever reads one from a file asks here first.

    Raises UserError: it is anything else.
    """
    if isinstance(name, str) and _MEMBER.fullmatch(name):
        return name
    raise UserError(
        f"{name!r} is not a member's name; members are called teacher_0, student_0, ..."
    )
