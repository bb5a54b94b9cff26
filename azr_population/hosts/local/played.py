"""A run from Python: what `train` and `resume` return."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from azr_population.runs import RunDirectory
from azr_population.runs.records import by_number
from azr_population.weights.adapter import Adapter
from azr_population.weights.peft_folder import load_adapter


@dataclass(frozen=True)
class Run:
    """A run that has been played; `for step in run` goes through its steps.

    Everything is read from the run directory when it is asked for: `Run(path)` is one that was
    played before.
    """

    path: Path
    exit_code: int = 0
    """0, or 128 + the signal that stopped it after a finished step."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The lines of `metrics.jsonl`, one a step."""
        return self.directory.metrics()

    @property
    def directory(self) -> RunDirectory:
        """Its records: matches, tasks, lineage and so on."""
        return RunDirectory(self.path)

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The same steps, as a list."""
        return list(self)

    @property
    def members(self) -> dict[str, Adapter]:
        """The members as they are now, by name, loaded from their PEFT folders."""
        names = sorted((path.name for path in self.directory.members.iterdir()), key=by_number)
        return {name: load_adapter(self.directory.member(name)) for name in names}
