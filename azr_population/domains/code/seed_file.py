"""Seed tasks in the format of AZR's `data/*_seed_io.jsonl` and `*_code_f_seed_io.jsonl` files."""

from pathlib import Path

from pydantic import BaseModel, ValidationError, model_validator

from azr_population.domains.code.task_types import ParsedProposal, TaskType
from azr_population.errors import UserError, first_problem
from azr_population.files import read_text


class _Row(BaseModel):
    """A program with one input: a code_o and a code_i proposal; or with several: one of code_f."""

    snippet: str
    imports: tuple[str, ...] | None = ()
    input: str | None = None
    inputs: tuple[str, ...] = ()
    message: str = ""

    @model_validator(mode="after")
    def _has_an_input(self) -> "_Row":
        if self.input is None and not self.inputs:
            raise ValueError("a row needs input or inputs")
        return self

    def proposals(self) -> list[ParsedProposal]:
        imports = self.imports or ()
        if self.input is None:
            return [
                ParsedProposal(TaskType.CODE_F, self.snippet, self.inputs, self.message, imports)
            ]
        types = TaskType.CODE_O, TaskType.CODE_I
        return [ParsedProposal(t, self.snippet, (self.input,), "", imports) for t in types]


def read_seed_file(path: str | Path) -> list[ParsedProposal]:
    """Proposals from a seed file, one per line and task type.

    The recorded outputs are not used: the referee executes every program again, because AZR's
    records hold outputs that were cut or depend on hash order.

    Raises UserError: the file is missing, or a line is broken (named by its number).
    """
    proposals: list[ParsedProposal] = []
    for number, line in enumerate(read_text(Path(path)).splitlines(), start=1):
        if line.strip():
            try:
                proposals += _Row.model_validate_json(line).proposals()
            except ValidationError as error:
                raise UserError(
                    f"seed file {path}, line {number}: {first_problem(error)}; fix or remove it"
                ) from error
    return proposals
