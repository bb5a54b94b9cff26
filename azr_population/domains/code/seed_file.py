"""Seed tasks in the format of AZR's `data/*_seed_io.jsonl` and `*_code_f_seed_io.jsonl` files."""

import json
from pathlib import Path

from pydantic import BaseModel, ValidationError

from azr_population.domains.code.task_types import ParsedProposal, TaskType
from azr_population.errors import UserError
from azr_population.files import read_text


class _CallRow(BaseModel):
    """A program and one input: a code_o and a code_i proposal."""

    snippet: str
    imports: tuple[str, ...] | None = ()
    input: str

    def proposals(self) -> list[ParsedProposal]:
        types = TaskType.CODE_O, TaskType.CODE_I
        return [
            ParsedProposal(t, self.snippet, (self.input,), "", self.imports or ()) for t in types
        ]


class _FunctionRow(BaseModel):
    """A program and several inputs: a code_f proposal."""

    snippet: str
    imports: tuple[str, ...] | None = ()
    inputs: tuple[str, ...]
    message: str = ""

    def proposals(self) -> list[ParsedProposal]:
        about = self.snippet, self.inputs, self.message, self.imports or ()
        return [ParsedProposal(TaskType.CODE_F, *about)]


def read_seed_file(path: str | Path) -> list[ParsedProposal]:
    """Proposals from a seed file, one per line and task type.

    The recorded outputs are not used: the referee executes every program again, because AZR's
    records hold outputs that were cut or depend on hash order.

    Raises UserError: the file is missing, or a line is broken (named by its number).
    """
    lines = read_text(Path(path)).splitlines()
    proposals: list[ParsedProposal] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            model = _FunctionRow if isinstance(row, dict) and "inputs" in row else _CallRow
            proposals += model.model_validate(row).proposals()
        except ValueError as error:
            detail = str(error)
            if isinstance(error, ValidationError):
                first = error.errors()[0]
                detail = f"field {'.'.join(map(str, first['loc']))}: {first['msg']}"
            raise UserError(
                f"seed file {path}, line {number}: {detail}; fix or remove the line"
            ) from error
    return proposals
