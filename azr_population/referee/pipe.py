"""Judge tasks from standard input, verdicts to standard output. `azr-population referee --help`
has the format of the lines.
"""

import json
import queue
import sys
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NoReturn, TextIO

from pydantic import BaseModel, ConfigDict, ValidationError

from azr_population.errors import UserError, first_problem
from azr_population.files import refuse_closed_input

from .limits import RefereeSettings
from .procedures import TYPES
from .referee import Referee
from .verdicts import Judgement, Question, Reason

_OF_FUNCTIONS = {"inputs", "outputs"}
MAX_LINE_BYTES = 2 << 20
MAX_EXECUTIONS = 4096
_LINES_AHEAD = 8
_IN_FLIGHT_BYTES = 32 << 20
"""Approximate limit of the memory of waiting lines and their outputs."""
_DETAIL_CHARS = 300


class _Record(BaseModel):
    """The schema of a line: code_f has `inputs` and `outputs`, every other type `input`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: Any = None
    type: str
    program: str = ""
    input: str = ""
    inputs: list[str] = []
    outputs: list[str] = []
    answers: list[str] = []
    imports: list[str] = []


@dataclass
class _PendingLine:
    """A line that waits for its verdict; `size` is its approximate memory in bytes."""

    id: object = None
    question: Question = field(default_factory=lambda: Question("malformed"))
    malformed: dict[str, Any] = field(default_factory=dict)
    size: int = 0


def judge_standard_input(settings: RefereeSettings) -> None:
    """Judges standard input to its end. Raises UserError: standard input or output is closed, or
    the input cannot be read."""
    refuse_closed_input("tasks")
    if sys.stdout is None:
        raise UserError("standard output is closed, and verdicts are written to it")
    # A second stream that is never closed: at the end a thread may still wait for a line, and
    # closing would wait for that thread. The interpreter closes `sys.stdin` and would abort.
    source = open(sys.stdin.fileno(), "rb", closefd=False)  # noqa: SIM115
    with Referee(settings) as referee:
        judge_lines(referee, source, sys.stdout)


def judge_lines(referee: Referee, source: BinaryIO, sink: TextIO) -> None:
    """Writes the verdicts of the lines of `source` to `sink` in order, each as soon as possible."""
    lines: queue.Queue[bytes | OSError] = queue.Queue(maxsize=_LINES_AHEAD)
    reader = threading.Thread(target=_read, args=(source, lines), daemon=True)
    reader.start()
    pending: deque[_PendingLine] = deque()
    output_chars = referee.settings.max_output_chars
    for judgement in referee.stream(_questions(lines, pending, output_chars)):
        line = pending.popleft()
        # `dump` would encode in Python, which ends at a deeply nested id that `dumps` can write.
        sink.write(json.dumps({"id": line.id, **_verdict(line, judgement)}, allow_nan=False) + "\n")
        sink.flush()


def _read(source: BinaryIO, lines: queue.Queue[bytes | OSError]) -> None:
    """Puts the lines into the queue, a line that is too long only up to the limit; b'' is the
    end."""
    try:
        while line := source.readline(MAX_LINE_BYTES + 1):
            lines.put(line)
            while len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
                line = source.readline(MAX_LINE_BYTES + 1)
        lines.put(b"")
    except OSError as error:
        lines.put(error)


def _questions(
    lines: queue.Queue[bytes | OSError],
    pending: deque[_PendingLine],
    output_chars: int,
) -> Iterator[Question | None]:
    """The questions in the lines; None: no line yet, finish earlier questions."""
    number = 0
    while True:
        try:
            text = lines.get(block=not pending)
        except queue.Empty:
            yield None
            continue
        if isinstance(text, OSError):
            raise UserError(f"standard input cannot be read: {text.strerror}") from text
        if not text:
            return
        number += 1
        if not text.strip():
            continue
        line = _parsed(text, number)
        line.size = 4 * len(text) + _executions(line.question) * output_chars
        while pending and line.size + sum(waiting.size for waiting in pending) > _IN_FLIGHT_BYTES:
            yield None
        pending.append(line)
        yield line.question


def _parsed(text: bytes, number: int) -> _PendingLine:
    """Parses one line into what waits for the verdict."""
    line = _PendingLine()
    try:
        if len(text) > MAX_LINE_BYTES:
            raise ValueError(f"over {MAX_LINE_BYTES} bytes")
        record = json.loads(str(text, "utf-8-sig"), parse_constant=_refuse_constant)
        if not isinstance(record, dict):
            raise ValueError("not a JSON object")
        json.dumps(record.get("id"), allow_nan=False)  # 1e999 is read as infinity
        line.id = record.get("id")
        line.question = _question(record)
        if _executions(line.question) > MAX_EXECUTIONS:
            raise ValueError(f"inputs, answers: over {MAX_EXECUTIONS} executions")
    except (ValueError, RecursionError) as error:
        detail = f"line {number}: {error}"[:_DETAIL_CHARS]
        line.malformed, line.question = {"line": number, "detail": detail}, Question("malformed")
    return line


def _question(record: dict[str, Any]) -> Question:
    """The question in a line's object. Raises ValueError."""
    try:
        line = _Record.model_validate(record)
    except ValidationError as error:
        raise ValueError(first_problem(error)) from None
    if line.type not in TYPES:
        raise ValueError(f"type {line.type[:80]!r}: one of {', '.join(TYPES)}")
    functions, present = line.type == "code_f", line.model_fields_set
    needed, other = ({"inputs"}, {"input"}) if functions else ({"input", "program"}, _OF_FUNCTIONS)
    if not needed <= present or other & present:
        raise ValueError(f"{line.type} needs {', '.join(needed)} and has no {', '.join(other)}")
    inputs = tuple(line.inputs) if functions else (line.input,)
    outputs = () if line.program else tuple(line.outputs)
    if functions and not (inputs and (line.program or len(outputs) == len(inputs))):
        raise ValueError(f"inputs, outputs: {len(inputs)} inputs but {len(outputs)} outputs")
    answers, imports = tuple(line.answers), tuple(line.imports)
    return Question(line.type, line.program, inputs, outputs, answers, imports)


def _executions(question: Question) -> int:
    """The largest number of executions that it needs."""
    inputs, answers = len(question.inputs), len(question.answers)
    if question.kind == "code_o":
        return 2 * inputs
    return 2 * inputs + (inputs * (answers + 1) if question.kind == "code_f" else answers + 1)


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def _verdict(line: _PendingLine, judgement: Judgement) -> dict[str, Any]:
    execution, kind = judgement.execution, line.question.kind
    if not execution.valid:
        verdict: dict[str, Any] = {"valid": False, "reason": str(execution.reason)}
        if execution.reason in (Reason.MALFORMED, Reason.BANNED) and execution.detail:
            verdict["detail"] = execution.detail
        return {**verdict, **line.malformed}
    grades, outputs = judgement.grades, list(execution.outputs)
    verdict = {"valid": True}
    verdict |= {"outputs": outputs} if kind == "code_f" else {"output": outputs[0]}
    verdict["solved"] = [grade.solved for grade in grades]
    verdict["reasons"] = [str(grade.reason) for grade in grades]
    if kind == "code_f":
        verdict["accuracy"] = [grade.accuracy for grade in grades]
    return verdict
