"""`azr-population referee`: judge tasks from standard input, verdicts to standard output.

One JSON object per line in, one per line out, in the same order. In:

    {"id": 1, "type": "code_o", "program": "def f(x): ...", "input": "3", "answers": ["4"]}
    {"id": 2, "type": "code_i", "program": "def f(x): ...", "input": "3", "answers": ["5"]}
    {"id": 3, "type": "code_f", "inputs": ["1", "2"], "outputs": ["2", "3"],
     "answers": ["def f(x): return x + 1"]}

`imports` (import statements) may be added to each; a code_f line may give `program` in place of
`outputs`. For code_o and code_i the gold output is computed from `input`. Out:

    {"id": 1, "valid": true, "output": "4", "solved": [true], "reasons": ["solved"]}
    {"id": 9, "valid": false, "reason": "timeout"}

code_f verdicts also carry `accuracy`, and `banned` says in `detail` what is. A line that cannot be
read, or has a key that none of these is, gets the reason `malformed`, its line number and what is
wrong, and the rest goes on.
"""

import argparse
import json
import queue
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, NoReturn, TextIO

from azr_population.arguments import Parser
from azr_population.errors import UserError

from .reasons import Judgement, Question, Reason
from .referee import Referee
from .settings import RefereeSettings

_KEYS = {
    "code_o": {"id", "type", "program", "input", "answers", "imports"},
    "code_i": {"id", "type", "program", "input", "answers", "imports"},
    "code_f": {"id", "type", "program", "inputs", "outputs", "answers", "imports"},
}
"""What a line of each type may hold."""
MAX_LINE_BYTES = 16 << 20


def main(argv: Sequence[str] | None = None) -> int:
    """The command: reads standard input to its end. Returns the exit code."""
    parser = Parser(
        prog="azr-population referee",
        description="\n".join((__doc__ or "").splitlines()[2:]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--workers", type=int, default=0, help="default: one per core")
    parser.add_argument("--deadline", type=float, default=2.0, help="seconds per execution")
    parser.add_argument("--memory-mb", type=int, default=256, help="what each may allocate")
    parser.add_argument("--max-output-chars", type=int, default=10_000)
    parser.add_argument(
        "--accept-unconfined",
        action="store_true",
        help="run even where the platform cannot confine programs, at your own risk",
    )
    given = parser.parse_args(argv)
    settings = RefereeSettings(
        workers=given.workers,
        deadline=given.deadline,
        memory_mb=given.memory_mb,
        max_output_chars=given.max_output_chars,
        accept_unconfined=given.accept_unconfined,
    )
    if sys.stdin is None or sys.stdout is None:
        raise UserError(
            "standard input or output is closed; tasks come by one, verdicts by the other"
        )
    try:
        # A stream of its own, never closed: a thread may still wait for a line of it at the end,
        # and closing waits for that thread. The interpreter would close `sys.stdin`, and abort.
        source = open(sys.stdin.fileno(), "rb", closefd=False)  # noqa: SIM115
        with Referee(settings) as referee:
            judge_lines(referee, source, sys.stdout)
    except BrokenPipeError:
        sys.stderr.close()  # the reader has left; there is nobody to tell
    return 0


def judge_lines(referee: Referee, source: BinaryIO, sink: TextIO) -> None:
    """Write the verdict of each line of `source` to `sink` as soon as its turn has come."""
    lines: queue.Queue[bytes | OSError | None] = queue.Queue(maxsize=4096)
    reader = threading.Thread(target=_read, args=(source, lines), daemon=True)
    reader.start()
    pending: deque[dict[str, Any]] = deque()
    for judgement in referee.stream(_questions(lines, pending)):
        heading = pending.popleft()
        kind = heading.pop("type", "")
        try:
            json.dump({**heading, **_verdict(judgement, kind)}, sink, allow_nan=False)
            sink.write("\n")
            sink.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise UserError(f"verdicts cannot be written: {error.strerror}") from error


def _read(source: BinaryIO, lines: queue.Queue[bytes | OSError | None]) -> None:
    try:
        for line in source:
            lines.put(line)
    except OSError as error:
        lines.put(error)
    else:
        lines.put(None)


def _questions(
    lines: queue.Queue[bytes | OSError | None], pending: deque[dict[str, Any]]
) -> Iterator[Question | None]:
    """The questions in the lines; None for "nothing to read yet, finish what you have"."""
    number = 0
    while True:
        try:
            line = lines.get(block=not pending)
        except queue.Empty:
            yield None
            continue
        if line is None:
            return
        if isinstance(line, OSError):
            raise UserError(f"standard input cannot be read: {line.strerror}") from line
        number += 1
        if not line.strip():
            continue
        heading, question = _question(line, number)
        pending.append(heading)
        yield question


def _question(line: bytes, number: int) -> tuple[dict[str, Any], Question]:
    """Read one line: what its verdict begins with, and the question."""
    heading: dict[str, Any] = {"id": None}
    try:
        if len(line) > MAX_LINE_BYTES:
            raise ValueError(f"{len(line)} bytes, at most {MAX_LINE_BYTES}")
        record = json.loads(line, parse_constant=_no_number)
        if not isinstance(record, dict):
            raise ValueError("not a JSON object")
        json.dumps(record.get("id"), allow_nan=False)  # 1e999 is read as a number that is none
        heading["id"] = record.get("id")
        kind = record.get("type")
        if not isinstance(kind, str) or kind not in _KEYS:
            raise ValueError(f"type {kind!r}: one of {', '.join(_KEYS)}")
        heading["type"] = kind
        if unknown := record.keys() - _KEYS[kind]:
            known = ", ".join(sorted(_KEYS[kind]))
            raise ValueError(f"{', '.join(sorted(unknown))}: {kind} has {known}")
        if kind == "code_f":
            inputs, program = _texts(record, "inputs"), record.get("program", "")
            outputs = _texts(record, "outputs") if not program else ()
            if not program and len(outputs) != len(inputs):
                raise ValueError(f"{len(inputs)} inputs but {len(outputs)} outputs")
        else:
            text, outputs, program = record.get("input"), (), record.get("program")
            if not isinstance(text, str):
                raise ValueError("input: a string is needed")
            inputs = (text,)
        if not inputs:
            raise ValueError("inputs: at least one is needed")
        if not isinstance(program, str):
            raise ValueError("program: a string is needed")
        question = Question(
            type=kind,
            program=program,
            inputs=inputs,
            outputs=outputs,
            answers=_texts(record, "answers", ()),
            imports=_texts(record, "imports", ()),
        )
    except (ValueError, RecursionError) as error:
        heading = {"id": heading["id"], "line": number, "detail": f"line {number}: {error}"}
        return heading, Question(type="malformed")
    return heading, question


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


def _texts(
    record: dict[str, Any], name: str, default: tuple[str, ...] | None = None
) -> tuple[str, ...]:
    values = record.get(name, default)
    if not isinstance(values, (list, tuple)) or not all(isinstance(v, str) for v in values):
        raise ValueError(f"{name}: a list of strings is needed")
    return tuple(values)


def _verdict(judgement: Judgement, kind: str) -> dict[str, Any]:
    execution = judgement.execution
    if not execution.valid:
        verdict: dict[str, Any] = {"valid": False, "reason": str(execution.reason)}
        if execution.reason in (Reason.MALFORMED, Reason.BANNED) and execution.detail:
            verdict["detail"] = execution.detail
        return verdict
    verdict = {"valid": True}
    if kind == "code_f":
        verdict["outputs"] = list(execution.outputs)
    else:
        verdict["output"] = execution.outputs[0]
    verdict["solved"] = [grade.solved for grade in judgement.grades]
    verdict["reasons"] = [str(grade.reason) for grade in judgement.grades]
    if kind == "code_f":
        verdict["accuracy"] = [grade.accuracy for grade in judgement.grades]
    return verdict
