"""All loggers of a run, and the guarantee that none of them can stop it."""

import threading
from collections.abc import Callable, Mapping

from azr_population.config.schema import LoggerConfig
from azr_population.hosts.loggers.logger import LOGGERS, Logger
from azr_population.runs.directory import RunDirectory

PATIENCE = 60.0
"""Seconds that a logger may take to close, such as for uploads over a broken network."""


class Loggers:
    """Passes figures on. A logger that fails is reported once and not called again.

    Args:
        loggers: by name.
        note: shows a line to the person who watches the run.
    """

    def __init__(self, loggers: Mapping[str, Logger], note: Callable[[str], None]) -> None:
        self._loggers = dict(loggers)
        self._note = note

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        """Hands `figures` to every logger that still works."""
        for name, logger in list(self._loggers.items()):
            try:
                logger.log(step, figures)
            except Exception as error:
                del self._loggers[name]
                self._note(failure(name, error))

    def close(self) -> None:
        """Closes every logger, and waits `PATIENCE` seconds at most for each."""
        while self._loggers:
            name, logger = self._loggers.popitem()
            # A daemon, so that a hanging logger does not keep the process alive.
            thread = threading.Thread(target=self._close, args=(name, logger), daemon=True)
            thread.start()
            thread.join(PATIENCE)
            if thread.is_alive():
                self._note(
                    f"logger {name} did not close within {PATIENCE:.0f} s; not waiting any longer"
                )

    def _close(self, name: str, logger: Logger) -> None:
        try:
            logger.close()
        except Exception as error:
            self._note(failure(name, error))


def open_loggers(
    settings: LoggerConfig, directory: RunDirectory, step: int, note: Callable[[str], None]
) -> Loggers:
    """Opens the loggers that `logger.names` wants, for a run that stands at `step`."""
    opened: dict[str, Logger] = {}
    for name in dict.fromkeys(settings.names):
        try:
            opened[name] = LOGGERS.find(name).function(settings, directory, step)
        except Exception as error:
            note(failure(name, error))
    return Loggers(opened, note)


def failure(name: str, error: BaseException) -> str:
    """The line that reports a failed logger."""
    lines = str(error).strip().splitlines()
    reason = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return f"logger {name} failed ({reason}); the run goes on without it"
