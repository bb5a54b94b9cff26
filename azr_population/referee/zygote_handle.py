"""The trainer's handle on one zygote: start it, send it a job, take the report, kill it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from azr_population.errors import UserError

from .limits import RefereeSettings
from .sandbox import wire

if TYPE_CHECKING:
    from .jobs import Job

_SANDBOX = Path(__file__).parent / "sandbox"
_BOOT = """
import sys
sys.path[:] = [entry for entry in sys.path if entry]
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("sandbox", sys.argv[1] + "/__init__.py",
                               submodule_search_locations=[sys.argv[1]])
sys.modules["sandbox"] = module_from_spec(spec)
spec.loader.exec_module(sys.modules["sandbox"])
from sandbox.kernel import fix_addresses
fix_addresses(sys.argv[2:])
from sandbox.zygote import main
main()
"""
# From 3.13 on a module's AttributeError reads the current folder, which no child can access.
_SAFE_PATH = ("-P",) if sys.version_info >= (3, 11) else ()
_INTERPRETER = (sys.executable, "-s", "-S", "-B", *_SAFE_PATH, "-X", "utf8")
_START_SECONDS = 60.0
now = time.monotonic


class SandboxLayer(NamedTuple):
    """One layer of confinement, as tested in a worker."""

    name: str
    available: bool
    detail: str


class Worker:
    """One zygote process and the job that it has.

    A fresh interpreter is executed instead of forking the trainer: that is cheap and safe whatever
    memory and threads the trainer has.
    """

    def __init__(self, settings: RefereeSettings) -> None:
        self.job: Job | None = None
        self.since = now()
        """When it got its job."""
        self._settings = settings
        try:
            self._socket, zygote_end = socket.socketpair()
            with zygote_end:
                self.process = subprocess.Popen(
                    [*_INTERPRETER, "-c", _BOOT, str(_SANDBOX), *settings.leave_out],
                    stdin=zygote_end.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    env=_environment(),
                    cwd="/",
                    start_new_session=True,
                )
        except OSError as error:
            raise UserError(
                f"referee: a worker cannot be started ({error.strerror}); each takes 3 open files "
                "(`ulimit -n`) and 20 MB; referee.workers sets how many there are"
            ) from error
        self._socket.settimeout(_START_SECONDS)
        self._replies = self._socket.makefile("rb")
        self.send(json.dumps(_options(settings)).encode() + b"\n")

    def fileno(self) -> int:
        """Readable when a report has arrived or the zygote is gone."""
        return self._socket.fileno()

    @cached_property
    def layers(self) -> list[SandboxLayer]:
        """The layers of confinement in its greeting, for which this waits.

        Raises UserError: it did not start, or cannot confine programs.
        """
        line = b""
        with suppress(OSError):
            line = self._replies.readline()
        hello = json.loads(line) if line.endswith(b"\n") else {"error": self._last_words()}
        if "error" in hello:
            raise UserError(f"referee: a worker did not start: {hello['error']}")
        layers = [SandboxLayer(*layer) for layer in hello["layers"]]
        seccomp = next(layer for layer in layers if layer.name == "seccomp")
        if not seccomp.available and not self._settings.allow_unsandboxed:
            raise UserError(
                f"referee: this platform cannot confine programs ({seccomp.detail}); "
                "referee.allow_unsandboxed=true runs model-written code as you, at your own risk"
            )
        return layers

    def _last_words(self) -> str:
        self.process.kill()
        stderr = self.process.stderr
        lines = (stderr.read() if stderr else b"").decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else f"it died, or took over {_START_SECONDS:.0f} s"

    def send(self, message: bytes) -> None:
        """Sends a job; that the zygote is dead is noticed when its report is read."""
        with suppress(OSError):
            self._socket.sendall(message)

    def receive(self) -> wire.Report | None:
        """The report on its job, or None if the zygote is gone."""
        with suppress(OSError):
            header = self._replies.read(wire.REPORT.size)
            if len(header) == wire.REPORT.size:
                end, code, length = wire.REPORT.unpack(header)
                frame = self._replies.read(length)
                if len(frame) == length:
                    return wire.Report(end, code, frame)
        return None

    def disconnect(self) -> None:
        """Closes this process's end; the zygote ends when nobody has that open."""
        self._replies.close()
        self._socket.close()

    def close(self) -> None:
        """Kills the zygote; its children die with it. Idempotent."""
        self.disconnect()
        self.process.kill()
        self.process.wait()
        if self.process.stderr:
            self.process.stderr.close()


def _environment() -> dict[str, str]:
    """Nothing of the trainer's environment, except what its interpreter needs to start.

    LD_BIND_NOW: symbols are resolved once in the zygote and not again in each child.
    """
    environment = {"PYTHONHASHSEED": "0", "LD_BIND_NOW": "1"}
    for name in ("LD_LIBRARY_PATH", "PYTHONHOME"):
        if name in os.environ:
            environment[name] = os.environ[name]
    return environment


def _options(settings: RefereeSettings) -> dict[str, Any]:
    extra = [entry for entry in sys.path if entry] if settings.required_modules else []
    return {
        "modules": list(dict.fromkeys((*settings.modules, *settings.required_modules))),
        "required": list(settings.required_modules),
        "path": extra,
        "leave_out": list(settings.leave_out),
        "banned_names": list(settings.banned_names),
        "max_output_chars": settings.max_output_chars,
        "cpu_seconds": settings.cpu_seconds,
        "part_seconds": settings.part_seconds,
        "prelude": settings.prelude,
        "memory_bytes": settings.memory_mb << 20,
        "region_bytes": 4096 + 96 * settings.max_output_chars,
    }
