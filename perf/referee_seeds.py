"""AZR's seed tasks judged by the referee: which are accepted, and why the others are not.

Every record of a `*_seed_io.jsonl` is judged as code_i (the recorded input is the answer, the
program's output here is gold) and as code_o (the recorded output is the answer), every record of a
`*_code_f_seed_io.jsonl` as code_f (the program is the answer to itself). Each is judged `--repeats`
times, and the verdicts must be equal.

A false reject is an honest task within the rules that is not accepted. Outside the rules are a
module that is not allowed, chance, an input or output that is not a literal or too long, and a
recorded output that AZR cut.

    python perf/referee_seeds.py --seeds .../*_seed_io.jsonl
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from azr_population.referee import Judgement, Question, Reason, Referee, RefereeSettings
from azr_population.referee.sandbox import literal

CUT = 403  # AZR keeps 200 characters, "..." and 200 characters of a longer output
RULES = {
    Reason.BANNED,
    Reason.NOT_LITERAL,
    Reason.TOO_LARGE,
    Reason.NONDETERMINISTIC,
    Reason.TIMEOUT,
    Reason.ERROR,
}
"""Why a program is left out."""


def questions(record: dict[str, Any]) -> dict[str, Question]:
    """A record as questions."""
    program, imports = record["snippet"], tuple(record["imports"])
    if "inputs" in record:
        inputs = tuple(record["inputs"])
        return {"code_f": Question("code_f", program, inputs, (), (program,), imports)}
    return {
        kind: Question(kind, program, (record["input"],), (), (record[answer],), imports)
        for kind, answer in (("code_i", "input"), ("code_o", "output"))
    }


def left_out(record: dict[str, Any], judgement: Judgement, kind: str) -> str:
    """The rule that leaves a record out, or ''."""
    execution = judgement.execution
    if not execution.valid:
        return f"{execution.reason} {execution.detail}".strip() if execution.reason in RULES else ""
    if kind == "code_i" and literal.canonical_arguments(record["input"]) is None:
        return "the recorded input is no literal"
    if kind != "code_o":
        return ""
    if not record["output"]:
        return "no output recorded"
    if "Ellipsis" in record["output"] or (
        len(record["output"]) == CUT and "..." in record["output"]
    ):
        return "the recorded output is cut"
    if not _is_literal(record["output"]):
        return "the recorded output is no literal"
    return ""


def why_not(record: dict[str, Any], judgement: Judgement, kind: str) -> str:
    """Why a record within the rules is not accepted, or ''."""
    if not judgement.execution.valid:
        return str(judgement.execution.reason)
    if judgement.grades[0].solved:
        return ""
    output = judgement.execution.outputs[0]
    if kind == "code_o" and sorted(record["output"]) == sorted(output):
        return "recorded in another order: it depends on that of a set"
    words = re.findall(r"\w", record.get("output", "")), re.findall(r"\w", output)
    if kind == "code_o" and "set(" in record["snippet"] and len(words[0]) == len(words[1]):
        return "recorded in another order: it depends on that of a set"
    return f"{judgement.grades[0].reason}: {output[:80]!r}"


def _is_literal(text: str) -> bool:
    try:
        literal.parse(text)
    except literal.NotLiteral:
        return False
    return True


def judge(referee: Referee, records: dict[str, dict[str, Any]], repeats: int) -> dict[str, Any]:
    """The figures by type of task; `records` by file and number."""
    result: dict[str, Any] = {}
    for kind in ("code_i", "code_o", "code_f"):
        asked = {n: questions(r)[kind] for n, r in records.items() if kind in questions(r)}
        runs = [referee.judge(list(asked.values())) for _ in range(repeats)]
        judged = dict(zip(asked, runs[0], strict=True))
        rules = {n: left_out(records[n], judgement, kind) for n, judgement in judged.items()}
        within = [n for n, rule in rules.items() if not rule]
        reasons = {n: why_not(records[n], judged[n], kind) for n in within}
        rejected = {n: reason for n, reason in reasons.items() if reason}
        result[kind] = {
            "records": len(asked),
            "within the rules": len(within),
            "false rejects": len(rejected),
            "percent": round(100 * len(rejected) / max(len(within), 1), 2),
            "runs that differ from the first": sum(run != runs[0] for run in runs),
            "they are": rejected,
            "left out by a rule": {n: rule[:80] for n, rule in rules.items() if rule},
        }
    return result


def main() -> None:
    """Print the figures and every record that is not accepted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=Path, nargs="+", required=True)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    records = {
        f"{path.name} {number}": json.loads(line)
        for path in arguments.seeds
        for number, line in enumerate(path.read_text().splitlines())
    }
    with Referee(RefereeSettings(timeout=30.0, cpu_seconds=10.0)) as referee:
        text = json.dumps(judge(referee, records, arguments.repeats), indent=1)
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
