"""The secondary analyses of README.md, on the members, tasks and births of its runs.

    python recipes/questions/population_or_not/secondary.py RUNS OUT.json

RUNS has the folders 1t1s/seed_N and 4t4s/seed_N. Intervals are of 95% and not corrected."""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from statistics import fmean

from azr_population.analysis.children import child_gaps
from azr_population.analysis.statistics import Estimate, compare, interval, interval_text
from azr_population.domains.code.task_types import Task
from azr_population.eval.members import find_members, open_members
from azr_population.reading.run_data import RunData
from azr_population.recipes.stored_scores import Scores, deep_tasks, numbered_runs, stored_students

STEP, FIRST = 60, 51
"""The step of the members that are compared, and the first whose tasks they are asked."""
TASKS_PER_RUN, EVAL_SEED, EVAL_TASKS = 20, 9898, 480
"""Of the eval's tasks the deep half is asked, 7 to 12 statements."""
ARMS = ("1t1s", "4t4s")


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


def scores_of_members(runs: Path, seeds: Sequence[int]) -> dict[str, list[float]]:
    """Each seed's value of every measure, by `<arm>, <measure>`."""
    tasks = {(arm, seed): tasks_of(runs / arm / f"seed_{seed}") for arm in ARMS for seed in seeds}
    values: dict[str, list[float]] = {}
    with open_members(find_members(runs / ARMS[0] / f"seed_{seeds[0]}")) as members:
        scores = Scores(members.context)
        deep = deep_tasks(EVAL_TASKS, EVAL_SEED, members.plan.types)
        for seed in seeds:
            strangers = [task for (_, other), of in tasks.items() if other != seed for task in of]
            for arm in ARMS:
                students = stored_students(runs / arm / f"seed_{seed}", STEP)
                four = students * (4 // len(students))
                measures = {
                    "strangers": fmean(scores.greedy(student, strangers) for student in students),
                    "pass@4": scores.any_right(four, deep, seed),
                }
                for name, value in measures.items():
                    values.setdefault(f"{arm}, {name}", []).append(value)
            print(seed, {name: round(column[-1], 4) for name, column in values.items()}, flush=True)
    return values


def main() -> None:
    runs, out = Path(sys.argv[1]), Path(sys.argv[2])
    seeds = list(numbered_runs(runs / "4t4s"))
    values = scores_of_members(runs, seeds)
    populations = [RunData(runs / "4t4s" / f"seed_{seed}") for seed in seeds]
    tests: dict[str, Estimate] = {
        f"4T+4S above 1T+1S, {name}": compare(
            values[f"4t4s, {name}"], values[f"1t1s, {name}"], False
        )
        for name in ("strangers", "pass@4")
    }
    ages = {}
    for role, metric in (("student", "solve_rate"), ("teacher", "reward")):
        gaps = [child_gaps(run, metric, role) for run in populations]
        means = [frame.loc[frame["step"] == 0, "gap"].mean() for frame in gaps]
        tests[f"replaced {role}s, {metric} less that of the others"] = interval(means)
        counts = Counter(age for run in populations for age in ages_of_the_replaced(run, role))
        ages[role] = {str(age): counts[age] for age in sorted(counts)}
        print(f"ages of the replaced {role}s (steps: members): {ages[role]}")
    for name, test in tests.items():
        print(f"{name}: {interval_text(test, percent='reward' not in name, signed=True)}")
    content = {
        "command": " ".join(["python", "secondary.py", *sys.argv[1:]]),
        "seeds": seeds,
        "values": values,
        "tests": {name: test.to_json() for name, test in tests.items()},
        "ages": ages,
    }
    out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
