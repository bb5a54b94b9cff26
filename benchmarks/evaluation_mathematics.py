"""Our mathematics grader against AZR's on the same completions.

    AZR_HOME=... python benchmarks/evaluation_mathematics.py --data DIR [--records DIR]

Of every problem of the seven sets two completions are made up: its gold answer in plausible text,
and the gold answer of another problem. `--records` adds what models really wrote (the folder of an
evaluation). AZR's side runs in a process of its own: `parser.run_execute` and
`evaluate.new_math_equal_process` of its evaluation/math_eval/eval (needs word2number,
timeout-decorator, multiprocess). Verdicts that differ are listed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from azr_population import versions
from azr_population.measuring.evaluation.benchmark import Benchmark, chosen
from azr_population.measuring.evaluation.data import locate, read
from azr_population.measuring.evaluation.grading.grade import Graders
from azr_population.measuring.evaluation.grading.mathematics import normal
from azr_population.measuring.evaluation.problem import MathProblem
from azr_population.measuring.evaluation.prompts import WORDINGS
from azr_population.measuring.evaluation.store import Store

IN_AZR = {"minerva": "minerva_math"}
"""AZR's names of sets, where they differ from ours."""
TEXTS = (
    "<think>Let me see. First I try 7, no.</think> <answer>So it is $\\boxed{%s}$.</answer>",
    "Adding up, we get \\boxed{12}? No, that forgets a case. The answer is \\boxed{%s}",
    "<think>\\boxed{1} is too small.</think><answer>The final answer is: $$\\boxed{%s}$$ </answer>",
)
"""Plausible completions around an answer."""


def made_up(problems: list[MathProblem]) -> Iterator[tuple[MathProblem, str, str]]:
    """(problem, kind, completion): its own gold answer, and the next one that is another text."""
    for place, problem in enumerate(problems):
        text = TEXTS[place % len(TEXTS)]
        yield problem, "gold", text % problem.gold
        order = [*problems[place + 1 :], *problems[:place]]
        other = next(p.gold for p in order if _value(p.gold) != _value(problem.gold))
        yield problem, "shuffled", text % other


def _value(gold: str) -> str:
    """The answer without the variable that it is the value of: 5 for x=5."""
    return normal(gold).rpartition("=")[2].strip()


def recorded(
    benchmark: Benchmark, problems: list[MathProblem], folders: list[Path]
) -> Iterator[tuple[MathProblem, str, str]]:
    """(problem, rule, completion) of what models wrote."""
    by_id = {problem.id: problem for problem in problems}
    for folder in folders:
        rows = (folder / "settings.jsonl").read_text().splitlines()
        settings = {row["digest"]: row for row in map(json.loads, rows)}
        for key, drawn in Store(folder).completions.items():
            about = settings[key.settings]
            if about["benchmark"] == benchmark.name and key.problem in by_id:
                rule = WORDINGS.find(about["prompt"]).function.rule
                yield by_id[key.problem], rule, drawn.text


def compared(
    name: str, data: Path, every: int, folders: list[Path], graders: Graders
) -> dict[str, Any]:
    """Both graders on a benchmark's completions."""
    (benchmark,) = chosen(name)
    problems: list[MathProblem] = read(benchmark, data).problems  # type: ignore[assignment]
    (path,) = locate(benchmark, data)
    rows = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    by_id = {problem.id: row for problem, row in zip(problems, rows, strict=True)}
    asked = list(made_up(problems[::every])) + list(recorded(benchmark, problems, folders))
    rules = {"gold": "tagged", "shuffled": "tagged"}
    ours: list[bool] = []
    for problem, kind, text in asked:
        ((_, verdicts),) = graders.grade(rules.get(kind, kind), [(problem, text)])
        ours.append(verdicts[0].passed)
    theirs = azr_verdicts(
        [
            {
                "row": by_id[problem.id],
                "set": IN_AZR.get(name, name),
                "completion": text,
                "azr": rules.get(kind, kind) == "tagged",
            }
            for problem, kind, text in asked
        ]
    )
    differing = [
        {"id": p.id, "kind": kind, "gold": p.gold, "completion": text[-200:], "ours": a, "azr": b}
        for (p, kind, text), a, b in zip(asked, ours, theirs, strict=True)
        if a != b
    ]
    passed = Counter((kind, right) for (_, kind, _), right in zip(asked, ours, strict=True))
    return {
        "set": name,
        "completions": len(asked),
        "ours": {f"{kind} {'right' if r else 'wrong'}": n for (kind, r), n in passed.items()},
        "agree": len(asked) - len(differing),
        "differ": differing,
    }


def azr_verdicts(asked: list[dict[str, Any]]) -> list[bool]:
    """What AZR's own code says, in its own process."""
    with tempfile.TemporaryDirectory() as folder:
        given, said = Path(folder) / "given.json", Path(folder) / "said.json"
        given.write_text(json.dumps(asked))
        program = [sys.executable, __file__, "--azr", str(given), str(said)]
        subprocess.run(program, check=True, stdout=subprocess.DEVNULL)
        verdicts: list[bool] = json.loads(said.read_text())
    return verdicts


def azr(given: Path, said: Path) -> None:
    """Runs in the process of AZR's side."""
    sys.path.insert(0, str(Path(os.environ["AZR_HOME"]) / "evaluation/math_eval/eval"))
    from evaluate import new_math_equal_process
    from parser import parse_ground_truth, run_execute

    verdicts = []
    for number, one in enumerate(json.loads(given.read_text())):
        prompt = "azr_boxed" if one["azr"] else "qwen-boxed"
        prediction, _ = run_execute(None, one["completion"], prompt, one["set"], azr=one["azr"])
        _, gold = parse_ground_truth(one["row"], one["set"])
        verdicts.append(bool(new_math_equal_process((number, prediction or "", gold))))
    said.write_text(json.dumps(verdicts))


def main() -> None:
    """Prints the figures of each set and all, and the verdicts that differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--every", type=int, default=1, help="take each n-th problem")
    parser.add_argument("--records", type=Path, nargs="*", default=[])
    parser.add_argument("--sets", default="math")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--azr", nargs=2, type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.azr:
        azr(*arguments.azr)
        return
    sets = []
    with Graders() as graders:
        for benchmark in chosen(arguments.sets):
            sets.append(
                compared(
                    benchmark.name, arguments.data, arguments.every, arguments.records, graders
                )
            )
            print({k: v for k, v in sets[-1].items() if k != "differ"}, flush=True)
            for one in sets[-1]["differ"]:
                print("  ", one, flush=True)
    total = sum(one["completions"] for one in sets)
    agree = sum(one["agree"] for one in sets)
    print(f"{agree} of {total} verdicts agree ({100 * agree / total:.2f}%)")
    if arguments.json:
        packages = ("math-verify", "latex2sympy2-extended", "sympy")
        content = {
            "agree": agree,
            "completions": total,
            "environment": versions.environment(*packages),
            "sets": sets,
        }
        arguments.json.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
