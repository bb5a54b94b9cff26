"""What is a population for? The questions of README.md, asked of stored members.

    python recipes/questions/what_for/what_for.py RUNS OUT.json

RUNS has the folders 1t1s/seed_N and 4t4s/seed_N of the recipe what_ships (runs/.../defaults).
"""

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean

from azr_population.analysis.statistics import LEVEL, Estimate, compare
from azr_population.domains.code.chain_tasks import draw_eval_tasks
from azr_population.domains.code.task_types import Task
from azr_population.eval.members import find_members, open_members
from azr_population.method.held_out_eval import pass_at
from azr_population.reading.run_data import RunData
from azr_population.recipes.stored_scores import (
    Scores,
    mean_adapter,
    numbered_runs,
    stored_students,
)
from azr_population.weights.adapter import Adapter

HELD_OUT, CHOICE = 9494, 9595
TASKS, LAST, MARGIN = 240, 10, 0.02
"""Held-out tasks; steps whose tasks the specialists answer; the margin of every question."""


def of_independent(rights: Sequence[Sequence[float]]) -> list[float]:
    """pass@4 by the students of four runs, for which `rights` has an answer to each task by the
    student of each run: the jackknife's pseudo-values, one for each run, since all sets of four
    runs share runs (Chen et al. 2021 for the estimate, Efron 1982 for these)."""

    def pass_at_4(rows: Sequence[Sequence[float]]) -> float:
        n = len(rows)
        return fmean(pass_at(4, n, n - column.count(0)) for column in zip(*rows, strict=True))

    n, whole = len(rights), pass_at_4(rights)
    without = [pass_at_4([*rights[:i], *rights[i + 1 :]]) for i in range(n)]
    return [n * whole - (n - 1) * each for each in without]


def specialist_gain(scores: Scores, run: Path, four: Sequence[Adapter]) -> float:
    """How much better students are at the tasks of the teacher that each met most, beside the
    others' tasks, than the mean of the other students: the mean over students."""
    tasks, met = defaultdict[str, list[Task]](list), defaultdict[str, Counter[str]](Counter)
    recorded = RunData(run)
    for row in recorded.read("matches"):
        met[row["student"]][row["teacher"]] += 1
    for row in recorded.read("tasks"):
        if row["step"] > recorded.last - LAST:
            task = Task(row["type"], row["program"], tuple(row["inputs"]), tuple(row["outputs"]))
            tasks[row["teacher"]].append(task)
    rates = [
        {teacher: scores.shares(adapter, of, 0.0, 1, 0) for teacher, of in sorted(tasks.items())}
        for adapter in four
    ]

    def lead(student: int, teacher: str) -> float:
        others = [share for name, of in rates[student].items() if name != teacher for share in of]
        return fmean(rates[student][teacher]) - fmean(others)

    gains = []
    for place in range(len(four)):
        teachers = [pair for pair in met[f"student_{place}"].most_common() if pair[0] in tasks]
        teacher = teachers[0][0]
        rest = [lead(other, teacher) for other in range(len(four)) if other != place]
        gains.append(lead(place, teacher) - fmean(rest))
    return fmean(gains)


def answer(test: Estimate) -> str:
    """Where the interval lies beside the margin; without an interval it is open."""
    if test.low > MARGIN:
        return "more"
    if test.high < -MARGIN:
        return "less"
    return "nothing" if test.low > -MARGIN and test.high < MARGIN else "open"


def main() -> None:
    runs, out = Path(sys.argv[1]), Path(sys.argv[2])
    numbers = list(numbered_runs(runs / "4t4s"))
    values: dict[str, list[float]] = defaultdict(list)
    rights: list[list[float]] = []
    with open_members(find_members(runs / "1t1s" / f"seed_{numbers[0]}")) as members:
        scores, types = Scores(members.context), members.plan.types
        exam = draw_eval_tasks(TASKS, HELD_OUT, types)
        choice = draw_eval_tasks(TASKS, CHOICE, types)
        alone = {seed: stored_students(runs / "1t1s" / f"seed_{seed}")[0] for seed in numbers}
        for seed in numbers:
            run = runs / "4t4s" / f"seed_{seed}"
            four = stored_students(run)
            once = scores.shares(alone[seed], exam, 1.0, 4, seed)
            greedy = [scores.greedy(adapter, exam) for adapter in four]
            chosen = max(range(len(four)), key=lambda i: scores.greedy(four[i], choice))
            of_seed = {
                "four, any right": scores.any_right(four, exam, seed),
                "one four times, any right": fmean(float(share > 0) for share in once),
                "mean of four": fmean(greedy),
                "chosen": greedy[chosen],
                "one": scores.greedy(alone[seed], exam),
                "soup": scores.greedy(mean_adapter(four), exam),
                "specialists": specialist_gain(scores, run, four),
            }
            print(seed, json.dumps(of_seed), flush=True)
            rights.append(scores.shares(alone[seed], exam, 1.0, 1, 10 * seed))
            for name, value in of_seed.items():
                values[name].append(value)
    values["independent, any right"] = of_independent(rights)
    questions = {
        "pass@4 of four students above one student's": (
            "four, any right", "one four times, any right", False,
        ),
        "pass@4 of four students above four independent ones'": (
            "four, any right", "independent, any right", False,
        ),
        "the chosen member above the mean of its four": ("chosen", "mean of four", True),
        "the chosen member above the student of 1T+1S": ("chosen", "one", False),
        "the soup above the mean of its four": ("soup", "mean of four", True),
        "specialists above the others": ("specialists", "", False),
    }  # fmt: skip
    level = LEVEL / len(questions)
    tests = {
        question: compare(values[a], values[b] if b else None, paired, level)
        for question, (a, b, paired) in questions.items()
    }
    answers = {question: answer(test) for question, test in tests.items()}
    for question, test in tests.items():
        interval = f"{test.mean:+.3f} [{test.low:+.3f}, {test.high:+.3f}]"
        print(f"{question}: {interval}, {answers[question]}")
    content = {
        "command": " ".join(["python recipes/questions/what_for/what_for.py", *sys.argv[1:]]),
        "seeds": numbers,
        "values": dict(values),
        "tests": {
            question: {"answer": answers[question], **asdict(test)}
            for question, test in tests.items()
        },
        "margin": MARGIN,
    }
    out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
