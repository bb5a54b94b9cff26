"""The format that a base was made for, told by its folder and its tokenizer."""

from pathlib import Path
from typing import Any

from azr_population.domains.code.formats import FORMATS
from azr_population.domains.code.nano_format import MARKS
from azr_population.errors import UserError
from azr_population.files import read_json

WARMUP_LOG = "warmup.json"
"""What a warm-up leaves in its base's folder, its settings among it."""


def own_format(folder: str | Path, tokenizer: Any) -> str:
    """A name of `FORMATS`: the warm-up's; else `nano` where the marks of its prompts are single
    tokens; else `chat`. Raises UserError: the base was warmed up on prompts that have no name
    here."""
    log = Path(folder) / WARMUP_LOG
    if log.is_file():
        return _warmed_up_on(log)
    marks = tokenizer(list(MARKS), add_special_tokens=False)["input_ids"]
    return "nano" if all(len(ids) == 1 for ids in marks) else "chat"


def _warmed_up_on(log: Path) -> str:
    try:
        name = str(read_json(log)["settings"]["format"])
    except (KeyError, TypeError) as error:
        raise UserError(f"{log} names no format; name one by --format: {_names()}") from error
    if name not in [entry.name for entry in FORMATS]:
        raise UserError(
            f"{log}: the base was warmed up on the format {name!r}, which is unknown here; name "
            f"one by --format: {_names()}"
        )
    return name


def _names() -> str:
    return ", ".join(entry.name for entry in FORMATS)
