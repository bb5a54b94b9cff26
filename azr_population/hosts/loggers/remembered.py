"""What a logger remembers between a run and its resumption."""

import json
import uuid
from pathlib import Path
from typing import Any

from azr_population.files import write_atomically


class Remembered:
    """A file with the id of the run over there and the last step that it was given. A resumed run
    plays some steps again, with the same results, so they are logged once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        known: dict[str, Any] = {"id": uuid.uuid4().hex[:8], "step": 0}
        if path.is_file():
            known |= json.loads(path.read_text(encoding="utf-8"))
        self.id, self.step = str(known["id"]), int(known["step"])

    def reach(self, step: int) -> None:
        """`step` is logged."""
        self.step = step
        write_atomically(self._path, json.dumps({"id": self.id, "step": step}))
