"""Atomic writing, and reading of files that may come from somebody else.

A folder from somebody else may have anything in place of a file: a link to another file, a pipe
that never ends, JSON nested a hundred thousand levels deep. Nothing here writes through a link, and
every fault in a file that is read is a `UserError`.
"""

import codecs
import errno
import fcntl
import io
import json
import os
import re
import secrets
import shutil
import stat
import sys
import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from azr_population.errors import UserError

LONGEST_SETTINGS = 1_000_000
"""Bytes of a configuration; a run's has a few thousand."""
DEEPEST_SETTINGS = 64
"""Levels of a configuration; a run's has four."""
_NOT_YAML = (OSError, ValueError, LookupError, AttributeError)
"""PyYAML also raises these for a value that is not of its tag (`!!bool x`, `!!int ""`)."""
_MEND = "fix it by hand, restore a copy, or start the run again"
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Byte order marks, as Windows' editors and PowerShell's `>` write them."""
_NOT_THERE = frozenset(
    (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.EPERM)
)
"""Errors by which file systems (network, FUSE, Windows) answer a call that they lack."""


def write_atomically(path: Path, content: str | bytes) -> None:
    """Writes to a temporary file with a random name, syncs and renames it.

    A link at `path` is replaced, not followed. A failed write leaves `path` unchanged.
    """
    if not path.name:  # `.`
        raise UserError(f"{path} is a folder, and a file belongs there; name one in it")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
            sync(file)
        os.replace(temporary, path)
    except IsADirectoryError as error:
        raise UserError(f"{path} is a folder, and a file belongs there; move it away") from error
    finally:
        temporary.unlink(missing_ok=True)


def refuse_closed_input(what: str) -> None:
    """Raises UserError: standard input, from which `what` is read, was closed before the start."""
    if sys.stdin is None:
        raise UserError(f"standard input is closed, and {what} are read from it")


@contextmanager
def writing(name: object, way_out: str = "") -> Iterator[None]:
    """Turns an OSError of the system inside the block into a `UserError` that names `name`. One
    without a number, as a Ray that does not answer, is none of a file."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise UserError(f"{name} cannot be written: {error.strerror}{way_out}") from error


@contextmanager
def lock(path: Path, used: str) -> Iterator[None]:
    """Holds an exclusive lock on a file, which a crash releases too; warns if the file system has
    no locks. Raises UserError: another process has it (the message is `used`), or it cannot be
    written."""
    with writing(path):
        descriptor = open_own(path, os.O_WRONLY | os.O_APPEND)
    with os.fdopen(descriptor, "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UserError(used) from error
        except OSError as error:
            if error.errno not in _NOT_THERE:
                raise
            warnings.warn(
                f"{path.parent} is on a file system without locks ({error.strerror}); nothing "
                "keeps a second process from writing there",
                stacklevel=3,
            )
        yield


@contextmanager
def if_supported() -> Iterator[None]:
    """Ignores that the file system does not have what is asked for inside (`chmod`, `fsync`)."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NOT_THERE:
            raise


def sync(file: IO[Any]) -> None:
    """Puts what was written to the file on the disk, if its file system can do that."""
    file.flush()
    with if_supported():
        os.fsync(file.fileno())


def open_own(name: str | Path, flags: int) -> int:
    """An `opener` for `open`: creates the file if it is missing, and never follows a link.

    Raises UserError: at `path` is a link, a folder, or a pipe (opening it would block).
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
    """Raises `UserError` for links and special files in `folder`, or anywhere in its subfolders
    `below`: a link leads elsewhere, and reading a pipe blocks.

    The folder itself may be a link, for a run on another disk.
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


def read_text(path: Path, errors: str = "strict") -> str:
    """The text of a regular file, with `\\n` between lines: UTF-8, or what its byte order mark
    says. `errors` as in `bytes.decode`. Raises UserError: it is missing, not a regular file, or not
    in that encoding."""
    refuse_irregular(path)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    return decode(raw, path, errors)


def decode(raw: bytes, name: object, errors: str = "strict") -> str:
    """Text of UTF-8 bytes, with `read_text`'s errors; `name` stands for them in the message."""
    encoding = next((kind for mark, kind in _MARKS.items() if raw.startswith(mark)), "utf-8")
    try:
        return io.StringIO(raw.decode(encoding, errors), newline=None).read()
    except UnicodeDecodeError as error:
        raise UserError(f"{name} is not {error.encoding} text (byte {error.start})") from error


def inflate(packed: bytes, longest: int) -> bytes:
    """The bytes that zlib packed. Raises ValueError: they are damaged, or more than `longest`
    bytes, of which no more are unpacked."""
    inflater = zlib.decompressobj()
    try:
        raw = inflater.decompress(packed, longest)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not inflater.eof:
        raise ValueError(f"packed data that are cut off or have more than {longest:,} bytes")
    return raw


def read_json(path: Path) -> Any:
    """The JSON value in a regular file. Raises UserError: as `read_text`, or it is not JSON or
    nested too deep."""
    text = read_text(path)
    try:
        return json.loads(text)
    except ValueError as error:
        raise UserError(f"{path} is damaged: {error}") from error
    except RecursionError as error:
        raise UserError(f"{path} is nested too deep to be read") from error


def read_yaml(path: Path, dumped: bool = False) -> dict[str, Any]:
    """The mapping in a regular YAML file, read as OmegaConf does but without interpolation.
    `dumped` reads a file that a program wrote ten times as fast: it has no number that OmegaConf
    reads differently.

    Raises UserError: as `read_text`, or it is not YAML, not a mapping, nested too deep, or has
    aliases, by which a short file can exhaust the memory."""
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
    except (*_NOT_YAML, yaml.YAMLError, OmegaConfBaseException) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark else ""
        raise UserError(f"{path} is not readable YAML{where}; {_MEND}") from error
    except RecursionError as error:
        raise UserError(f"{path} is nested too deep to be read") from error
    if not isinstance(settings, dict):
        raise UserError(f"{path} holds no settings by name; {_MEND}")
    return {str(key): value for key, value in settings.items()}


def refuse_irregular(path: Path) -> None:
    """Raises `UserError` unless `path` is a regular file: reading a pipe would block."""
    if not path.exists():
        raise UserError(f"{path} is missing")
    if not path.is_file():
        raise UserError(f"{path} is not a regular file")


@contextmanager
def replacing_folder(final: Path) -> Iterator[Path]:
    """Yields a temporary path for a new folder, then replaces `final` by it, synced to disk.

    An error inside the block leaves `final` unchanged.
    """
    temporary = final.with_name(f".{final.name}.tmp")
    _remove(temporary)
    try:
        yield temporary
        for path in temporary.rglob("*"):
            if path.is_file():
                with path.open("rb") as file:
                    sync(file)
    except BaseException:
        # Do not leave half a folder behind, for example on a full disk.
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
        with if_supported():
            os.fsync(directory)
    finally:
        os.close(directory)


def _remove(path: Path) -> None:
    """Removes what a crash left behind; a link is not followed."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    else:
        shutil.rmtree(path, ignore_errors=True)


_MEMBER = re.compile(r"(teacher|student|agent)_[0-9]{1,6}")


def check_name(name: object) -> str:
    """`name` if it is a valid member name: a role and a number, such as `teacher_0`.

    Names become folders, so every name that is read from a file is checked here.

    Raises UserError: any other name.
    """
    if isinstance(name, str) and _MEMBER.fullmatch(name):
        return name
    raise UserError(
        f"{name!r} is not a member's name; members are called teacher_0, student_0, ..."
    )
