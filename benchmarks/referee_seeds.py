"""AZR's seed tasks judged by the referee: which are accepted, and why the others are not.

Every record of a `*_seed_io.jsonl` is judged as code_i (the recorded input is the answer, the
program's output here is gold) and as code_o (the recorded output is the answer), every record of a
`*_code_f_seed_io.jsonl` as code_f (the program is the answer to itself). Each is judged `--repeats`
times, and the verdicts must be equal.

A false reject is an honest task within the rules that is not accepted. Outside the rules are a
module that is not allowed, chance, an input or output that is not a literal or too long, and a
recorded output that AZR cut.

    python benchmarks/referee_seeds.py --seeds .../*_seed_io.jsonl
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
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


def judge(referee: Referee, path: Path, repeats: int) -> dict[str, Any]:
    """The figures of one file, by type of task."""
    records = [json.loads(line) for line in path.read_text().splitlines()]
    result: dict[str, Any] = {}
    for kind in questions(records[0]):
        asked = [questions(record)[kind] for record in records]
        runs = [referee.judge(asked) for _ in range(repeats)]
        rules = {n: left_out(records[n], runs[0][n], kind) for n in range(len(records))}
        within = [n for n in rules if not rules[n]]
        reasons = {n: why_not(records[n], runs[0][n], kind) for n in within}
        rejected = {n: reason for n, reason in reasons.items() if reason}
        result[kind] = {
            "records": len(records),
            "within the rules": len(within),
            "false rejects": len(rejected),
            "percent": round(100 * len(rejected) / len(within), 2),
            "runs that differ from the first": sum(run != runs[0] for run in runs),
            "they are": rejected,
            "left out by a rule": {n: rule[:80] for n, rule in rules.items() if rule},
        }
    return result


def total(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The figures of all files together, by type of task."""
    sums_by_kind: dict[str, Any] = {}
    for kind in ("code_i", "code_o", "code_f"):
        parts = [result[kind] for result in results if kind in result]
        if parts:
            sums = {
                name: sum(part[name] for part in parts)
                for name in ("records", "within the rules", "false rejects")
            }
            percent = round(100 * sums["false rejects"] / sums["within the rules"], 2)
            differ = sum(part["runs that differ from the first"] for part in parts)
            sums_by_kind[kind] = {
                **sums,
                "percent": percent,
                "runs that differ from the first": differ,
            }
    return sums_by_kind


def main() -> None:
    """Print the figures and every record that is not accepted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=Path, nargs="+", required=True)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    settings = RefereeSettings(timeout=30.0, cpu_seconds=10.0)
    with Referee(settings) as referee:
        results = {path.name: judge(referee, path, arguments.repeats) for path in arguments.seeds}
    text = json.dumps({"all files": total(list(results.values())), **results}, indent=1)
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
