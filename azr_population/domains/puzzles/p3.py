"""Python Programming Puzzles (P3, Schuster et al. 2021) as its authors publish them: one JSON list,
`puzzles/puzzles.json` of github.com/microsoft/PythonProgrammingPuzzles (MIT).

A row has `sat`, and in `sol_header` and `sol_bodies` programs that find an answer; some have none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from azr_population.domains.puzzles.grammar import PUZZLE
from azr_population.domains.task import ParsedProposal
from azr_population.errors import UserError, first_problem
from azr_population.files import read_json
from azr_population.referee import Program, Referee

_TYPES = "from typing import List\n\n\n"
"""Annotations of `sat` say List; the file leaves the import out."""
_CALL = "\n\n\ndef f():\n    return sol()\n"


class _Row(BaseModel):
    sat: str
    sol_header: str = ""
    sol_bodies: list[str] = []


def read_p3(path: Path) -> list[ParsedProposal]:
    """A proposal for each puzzle with a solution; its input is the program `sol`, still to be run.
    Raises UserError: the file cannot be read, or a row is not a puzzle."""
    try:
        rows = TypeAdapter(list[_Row]).validate_python(read_json(path))
    except ValidationError as error:
        raise UserError(
            f"seed file {path}: {first_problem(error)}; give P3's puzzles.json"
        ) from error
    return [
        ParsedProposal(PUZZLE, _typed(row.sat), (f"{_TYPES}{row.sol_header}\n{row.sol_bodies[0]}",))
        for row in rows
        if row.sol_bodies
    ]


def program_of(row: Mapping[str, Any]) -> str:
    """`sat` with what its annotations need. Raises KeyError or ValueError if it has none."""
    return _typed(_Row.model_validate({"sat": row["sat"]}).sat)


def _typed(sat: str) -> str:
    return _TYPES + sat if "List" in sat else sat


def with_witnesses(seeds: Sequence[ParsedProposal], referee: Referee) -> list[ParsedProposal]:
    """The seeds with the literal that their `sol` returns; without those whose `sol` fails."""
    executions = referee.check([Program(seed.inputs[0] + _CALL, ("",)) for seed in seeds])
    return [
        replace(seed, inputs=execution.outputs)
        for seed, execution in zip(seeds, executions, strict=True)
        if execution.valid
    ]
