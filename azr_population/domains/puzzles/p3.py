"""Python Programming Puzzles (P3, Schuster et al. 2021) as its authors publish them: one JSON list,
`puzzles/puzzles.json` of github.com/microsoft/PythonProgrammingPuzzles (MIT).

A row has `sat`, and in `sol_header` and `sol_bodies` programs that find an answer; some have none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from azr_population.domains.puzzles.grammar import PUZZLE
from azr_population.domains.task import ParsedProposal
from azr_population.errors import UserError
from azr_population.files import read_json
from azr_population.referee import Program, Referee

_TYPES = "from typing import List\n\n\n"
"""Annotations of `sat` say List; the file leaves the import out."""
_CALL = "\n\n\ndef f():\n    return sol()\n"


def read_p3(path: Path) -> list[ParsedProposal]:
    """A proposal for each puzzle with a solution; its input is the program `sol`, still to be run.
    Raises UserError for a file that cannot be read or a row that is no puzzle."""
    rows = read_json(path)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UserError(f"seed file {path} is not a list of puzzles; give P3's puzzles.json")
    try:
        read = [(program_of(row), solution_of(row)) for row in rows]
    except (KeyError, TypeError) as error:
        raise UserError(f"seed file {path}: a puzzle has no {error}; fix the file") from error
    return [ParsedProposal(PUZZLE, program, (sol,)) for program, sol in read if sol]


def program_of(row: Mapping[str, Any]) -> str:
    """`sat` with what its annotations need. Raises KeyError or TypeError where it has none."""
    sat = _text(row, "sat")
    return _TYPES + sat if "List" in sat else sat


def solution_of(row: Mapping[str, Any]) -> str:
    """The first program `sol`; '' where nobody has solved it. Raises KeyError or TypeError."""
    bodies = row["sol_bodies"]
    if not isinstance(bodies, list):
        raise TypeError("list in 'sol_bodies'")
    return f"{_TYPES}{_text(row, 'sol_header')}\n{bodies[0]}" if bodies else ""


def with_witnesses(seeds: Sequence[ParsedProposal], referee: Referee) -> list[ParsedProposal]:
    """The seeds with the literal that their `sol` returns; without those whose `sol` fails."""
    executions = referee.check([Program(seed.inputs[0] + _CALL, ("",)) for seed in seeds])
    return [
        replace(seed, inputs=execution.outputs)
        for seed, execution in zip(seeds, executions, strict=True)
        if execution.valid
    ]


def _text(row: Mapping[str, Any], name: str) -> str:
    if not isinstance(row[name], str):
        raise TypeError(f"text in {name!r}")
    return str(row[name])
