"""The secondary analyses of README.md, on the members, tasks and births of its runs.

    python recipes/questions/population_or_not/secondary.py RUNS OUT.json

RUNS is the folder of recipes' runs (`runs/recipes`). Scores need members, which are not committed;
who was replaced is in committed results too. OUT.json has the scores of every seed as it ends, and
the same command goes on behind them. Intervals are of 95% and not corrected."""

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from statistics import fmean

from azr_population.analysis.children import MEASURES, child_gaps
from azr_population.analysis.statistics import Estimate, compare, interval, interval_text
from azr_population.domains.code.task_types import Task
from azr_population.eval.members import find_members, open_members
from azr_population.files import read_json, write_atomically
from azr_population.reading.run_data import RunData
from azr_population.recipes.stored_scores import (
    Scores,
    deep_tasks,
    stored_students,
    study_runs,
    study_seeds,
    with_members,
)

STEP, FIRST = 60, 51
"""The step of the members that are compared, and the first whose tasks they are asked."""
TASKS_PER_RUN, EVAL_SEED, EVAL_TASKS = 20, 9898, 480
"""Of the eval's tasks the deep half is asked, 7 to 12 statements."""
ARMS, SCORES = ("1t1s", "4t4s"), ("strangers", "pass@4")

Folders = Mapping[str, Mapping[int, Path]]
"""arm -> seed -> the folder of a run that has its members."""


def tasks_of(run: Path) -> list[Task]:
    """`TASKS_PER_RUN` of the valid tasks that its teachers proposed in the steps `FIRST` to
    `STEP`."""
    rows = [row for row in RunData(run).read("tasks") if FIRST <= row["step"] <= STEP]
    return [
        Task(row["type"], row["program"], tuple(row["inputs"]), tuple(row["outputs"]))
        for row in Random(1).sample(rows, TASKS_PER_RUN)
    ]


def ages_of_the_replaced(run: RunData, role: str) -> list[int]:
    """The steps that each replaced member of a role had been there."""
    born: dict[str, int] = {}
    ages = []
    for birth in run.births:
        if birth.child.startswith(role):
            ages.append(birth.step - born.get(birth.child, 0))
            born[birth.child] = birth.step
    return ages


def score_members(runs: Folders, seeds: Sequence[int], out: Path) -> dict[str, dict[str, float]]:
    """By seed the value of every measure, as `<arm>, <measure>`; written to `out` seed by seed.
    Those that stand there for the same seeds are not computed again."""
    stored = read_json(out) if out.is_file() else {}
    values = stored["values"] if stored.get("seeds") == list(seeds) else {}
    tasks = {(arm, seed): tasks_of(runs[arm][seed]) for arm in ARMS for seed in seeds}
    with open_members(find_members(runs[ARMS[0]][seeds[0]])) as members:
        scores = Scores(members.context)
        deep = deep_tasks(EVAL_TASKS, EVAL_SEED, members.plan.types)
        for seed in (seed for seed in seeds if str(seed) not in values):
            strangers = [task for (_, other), of in tasks.items() if other != seed for task in of]
            of_seed: dict[str, float] = {}
            for arm in ARMS:
                students = stored_students(runs[arm][seed], STEP)
                four = students * (4 // len(students))
                met = [scores.greedy(student, strangers) for student in students]
                of_seed[f"{arm}, strangers"] = fmean(met)
                of_seed[f"{arm}, pass@4"] = scores.any_right(four, deep, seed)
            values[str(seed)] = of_seed
            write_atomically(out, json.dumps({"seeds": list(seeds), "values": values}) + "\n")
    return values


def main() -> None:
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    runs = {arm: study_runs(folder, arm) for arm in ARMS}
    members = {arm: with_members(of_arm) for arm, of_arm in runs.items()}
    seeds = sorted(set.intersection(*map(set, members.values())))
    values = score_members(members, seeds, out) if seeds else {}
    planned = len(study_seeds())
    tests: dict[str, Estimate] = {}
    for name in SCORES if seeds else ():
        a, b = ([values[str(seed)][f"{arm}, {name}"] for seed in seeds] for arm in ("4t4s", "1t1s"))
        tests[f"4T+4S above 1T+1S, {name}"] = compare(a, b, False)
    populations = [RunData(run.path) for run in runs["4t4s"].values()]
    ages: dict[str, dict[str, int]] = {}
    for role, metric in MEASURES.items():
        gaps = [child_gaps(run, metric, role) for run in populations]
        means = [frame.loc[frame["step"] == 0, "gap"].mean() for frame in gaps]
        tests[f"replaced {role}s, {metric} less that of the others"] = interval(means)
        counts = Counter(age for run in populations for age in ages_of_the_replaced(run, role))
        ages[role] = {str(age): counts[age] for age in sorted(counts)}
        print(f"ages of the replaced {role}s (steps: members): {ages[role]}")
    for name, test in tests.items():
        text = interval_text(test, percent="reward" not in name, signed=True)
        print(f"{name}: {text}, {test.n} of {planned} seeds")
    content = {
        "command": " ".join(["python", "secondary.py", *sys.argv[1:]]),
        "planned_seeds": planned,
        "seeds": seeds,
        "values": values,
        "tests": {name: test.to_json() for name, test in tests.items()},
        "ages": ages,
    }
    write_atomically(out, json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
