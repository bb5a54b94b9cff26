"""Seed tasks in the format of AZR's `data/*_seed_io.jsonl` and `*_code_f_seed_io.jsonl` files."""

import json
from pathlib import Path

from azr_population.domains.code.task import Proposal, TaskType
from azr_population.errors import UserError

_NAME_ONE = "name an AZR *_seed_io.jsonl file"


def read_seed_file(path: str | Path) -> list[Proposal]:
    """Proposals from a seed file, one per line and task type.

    A line with `input` is a code_o and a code_i proposal, one with `inputs` a code_f proposal. The
    recorded outputs are not used: the referee executes every program again, because AZR's records
    hold outputs that were cut or depend on hash order.

    Raises UserError: the file is missing, or a line is broken (named by its number).
    """
    if Path(path).exists() and not Path(path).is_file():
        raise UserError(f"seed file {path} is no regular file; {_NAME_ONE}")
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UserError(
            f"seed file {path} cannot be read: {error.strerror}; {_NAME_ONE}"
        ) from error
    except UnicodeDecodeError as error:
        raise UserError(
            f"seed file {path} is not UTF-8 text: {error.reason}; {_NAME_ONE}"
        ) from error
    proposals: list[Proposal] = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                proposals.extend(_proposals(json.loads(line)))
            except (ValueError, KeyError, TypeError) as error:
                detail = f"field {error} is missing" if isinstance(error, KeyError) else error
                raise UserError(
                    f"seed file {path}, line {number}: {detail}; mend or remove the line"
                ) from error
    return proposals


def _proposals(row: object) -> list[Proposal]:
    if not isinstance(row, dict):
        raise ValueError("not a JSON object")
    program = _text(row, "snippet")
    imports = _texts(row, "imports") if row.get("imports") is not None else ()
    if "inputs" in row:
        message = _text(row, "message") if "message" in row else ""
        return [Proposal(TaskType.CODE_F, program, _texts(row, "inputs"), message, imports)]
    argument = _text(row, "input")
    return [
        Proposal(type, program, (argument,), "", imports)
        for type in (TaskType.CODE_O, TaskType.CODE_I)
    ]


def _text(row: dict[str, object], name: str) -> str:
    value = row[name]
    if not isinstance(value, str):
        raise ValueError(f"field {name!r} is not a string")
    return value


def _texts(row: dict[str, object], name: str) -> tuple[str, ...]:
    value = row[name]
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError(f"field {name!r} is not a list of strings")
    return tuple(value)
