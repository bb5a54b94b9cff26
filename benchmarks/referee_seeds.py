"""AZR's seed tasks before the referee: which are accepted, and why each of the others is not.

For every record: as code_i, the recorded input as the answer (the gold output is what the program
gives for it here); as code_o, the recorded output as the answer. Each is asked `--repeats` times,
and the verdicts must be the same every time.

    python benchmarks/referee_seeds.py --seeds .../7b_coder_seed_io.jsonl
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from azr_population.referee import Judgement, Question, Reason, Referee, RefereeSettings
from azr_population.referee.sandbox import literal

CUT = 403  # AZR keeps 200 characters, "..." and 200 characters of a longer output


def why_not(record: dict[str, str], judgement: Judgement, kind: str) -> str:
    """The name of what keeps a record from being accepted; '' when it is accepted."""
    execution = judgement.execution
    if not execution.valid:
        return f"program: {execution.reason} {execution.detail}".strip()
    grade = judgement.grades[0]
    if grade.solved:
        return ""
    if kind == "code_i":
        return f"the recorded input is no literal: {record['input'][:60]!r}"
    recorded = record["output"]
    if len(recorded) == CUT and "..." in recorded:
        return "cut by AZR at 400 characters"
    if recorded == "":
        return "no output recorded"
    if "Ellipsis" in recorded:
        return "a cut record that AZR evaluated to Ellipsis"
    if grade.reason is Reason.NOT_LITERAL:
        return f"the recorded output is no literal: {recorded[:60]!r}"
    if _unordered(recorded) == _unordered(execution.outputs[0]):
        return "depends on hash order: same characters in another order"
    return f"recorded {recorded[:80]!r}, is {execution.outputs[0][:80]!r}"


def _unordered(text: str) -> list[str]:
    return sorted(text)


def is_literal(text: str) -> bool:
    """Whether the text is a literal by the referee's rules."""
    try:
        literal.parse(text)
    except literal.NotLiteral:
        return False
    return True


def _is_input(text: str) -> bool:
    try:
        literal.parse_arguments(text)
    except literal.NotLiteral:
        return False
    return True


def main() -> None:
    """Print the shares accepted and every record that is not."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    records = [json.loads(line) for line in given.seeds.read_text().splitlines()]
    result: dict[str, object] = {}
    with Referee(RefereeSettings(deadline=10.0)) as referee:
        for kind, answer in (("code_i", "input"), ("code_o", "output")):
            questions = [
                Question(kind, r["snippet"], (r["input"],), (), (r[answer],), tuple(r["imports"]))
                for r in records
            ]
            runs = [referee.judge(questions) for _ in range(given.repeats)]
            changed = sum(run != runs[0] for run in runs)
            reasons = {
                number: why_not(record, judgement, kind)
                for number, (record, judgement) in enumerate(zip(records, runs[0], strict=True))
            }
            counted = [
                number
                for number, record in enumerate(records)
                if is_literal(record["output"])
                and (kind == "code_i" or len(record["output"]) != CUT)
            ]
            accepted = sum(not reasons[number] for number in counted)
            what = "records whose output is a literal" + (", not cut" if kind == "code_o" else "")
            result[kind] = {
                what: len(counted),
                "accepted": accepted,
                "percent": round(100 * accepted / len(counted), 2),
                "percent of those whose recorded input is a literal too": round(
                    100 * accepted / sum(_is_input(records[number]["input"]) for number in counted),
                    2,
                ),
                "runs that differ from the first": changed,
                "not accepted": {n: reasons[n] for n in counted if reasons[n]},
                "of the others, not accepted": {
                    n: reasons[n] for n in reasons if reasons[n] and n not in counted
                },
            }
    text = json.dumps(result, indent=1)
    print(text)
    if given.out:
        given.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
