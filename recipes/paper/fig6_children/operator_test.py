"""Do children end where their parent does, if both train on the same tasks? (README.md, "The
operator test")

    python recipes/paper/fig6_children/operator_test.py RUNS OUT

RUNS is the folder of recipes' runs (`runs/recipes`), with finished ones of population_or_not. OUT
gets scores.csv, a line for each seed, arm and eval; an arm that it has is not played again. The
table (operators.csv) and the picture (operators.svg) are made from it; without RUNS only these
are."""

import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from azr_population.analysis import charts
from azr_population.analysis.statistics import Estimate, compare, interval_text
from azr_population.analysis.svg import to_svg
from azr_population.domains.task import Task
from azr_population.engines.engine import Hyperparameters
from azr_population.eval.members import MemberSet, StoredMember, find_members, open_members
from azr_population.method.held_out_eval import all_known, solved_shares
from azr_population.method.matchmaking import Match
from azr_population.method.members import Member, Role
from azr_population.method.phases import propose_and_judge, solve_and_grade
from azr_population.method.rewards import reward_attempts
from azr_population.method.training import attempts_that_teach, training_samples, update
from azr_population.recipes.stored_scores import (
    deep_tasks,
    mean_adapter,
    study_runs,
    study_seeds,
    with_members,
)
from azr_population.runs.records import conservative
from azr_population.streams import Streams
from azr_population.weights.adapter import Adapter
from azr_population.weights.breeding import all_operators, breed

OPERATORS = tuple(operator.name for operator in all_operators() if operator.code)
UNTOUCHED, CONTROLS = "untouched", ("copy_parent", "linear_0_5")
ARMS = (UNTOUCHED, *CONTROLS, *OPERATORS)
EVAL_SEED, EVAL_TASKS = 9999, 1920
"""The exam is the deep half of these, 7 to 12 statements."""
EVAL_STEPS, ENDS = (0, 18, 20), (18, 20)
"""Steps of evals, and those whose mean counts as the end."""
MARGIN, LEVEL = 0.015, 0.10
"""A child is equal to its untouched parent if the 90% interval of their difference lies within the
margin: two one-sided tests at 5% (Schuirmann 1987)."""
COLUMNS = ["seed", "arm", "step", "score"]


def best_rated(students: Sequence[StoredMember]) -> list[StoredMember]:
    """By mu - 3 sigma, as evolution chooses parents, the best first. By mu the child that was born
    at the last step would be among the best: it has its parents' mu, and has not trained."""
    return sorted(students, key=lambda student: -(conservative(student.metrics) or 0.0))


class OperatorTest:
    """The arms of one seed: children of the two best rated students, at tasks of the teachers."""

    def __init__(self, loaded: MemberSet, seed: int) -> None:
        self._context, self._config = loaded.context, loaded.plan.config
        self._types, self._streams, self._seed = loaded.plan.types, Streams(seed), seed
        self._exam = deep_tasks(EVAL_TASKS, EVAL_SEED, self._types)
        students = [member for member in loaded.members if member.solves and member.folder]
        self._parents = [member.adapter() for member in best_rated(students)[:2]]
        self._tasks = self._propose([m for m in loaded.members if m.proposes and m.folder])

    def _propose(self, teachers: Sequence[StoredMember]) -> list[list[Task]]:
        """The valid tasks of each step, the same for all arms: of every teacher the same number of
        proposals."""
        each = self._config.population.batch_size // len(teachers)
        steps: list[list[Task]] = [[] for _ in range(EVAL_STEPS[-1])]
        for number, teacher in enumerate(teachers):
            self._context.engine.write(0, teacher.adapter())
            match = Match(Member(teacher.name, Role.TEACHER, 0), Member("none", Role.STUDENT, 0))
            asked = [(match, self._types[i % len(self._types)]) for i in range(each * len(steps))]
            seed = self._streams.integer("propose", number)
            proposals = propose_and_judge(self._context, asked, self._config.task, seed)
            for place, proposal in enumerate(proposals):
                if proposal.task is not None:
                    steps[place // each].append(proposal.task)
        return steps

    def play(self, arm: str) -> Iterator[tuple[int, str, int, float]]:
        """Trains the arm; yields its rows of scores.csv."""
        population, engine = self._config.population, self._context.engine
        engine.write(0, self._child(arm))  # with a fresh optimizer
        for step in range(EVAL_STEPS[-1] + 1):
            if step:
                seed = self._streams.integer(f"solve {arm}", step)
                tasks, samples = self._tasks[step - 1], population.samples_per_task
                problems = solve_and_grade(self._context, tasks, 0, seed, samples)
                reward_attempts(problems)
                chosen = attempts_that_teach(
                    problems,
                    population.attempt_batch_size,
                    population,
                    self._streams.numpy(f"attempts {arm}", step),
                )
                update(
                    engine, training_samples(chosen), {0: Hyperparameters(population.student_lr)}
                )
            if step in EVAL_STEPS:
                shares = all_known(solved_shares(self._context, self._exam, 0, 0.0, 1, 0))
                yield self._seed, arm, step, sum(shares) / len(shares)

    def _child(self, arm: str) -> Adapter:
        if arm in (UNTOUCHED, "copy_parent"):
            return self._parents[0]
        if arm == "linear_0_5":
            return mean_adapter(self._parents)
        return breed({arm: 1.0}, self._parents, self._streams.torch(f"breed {arm}"))[0]


def play(runs: Mapping[int, Path], scores: Path) -> None:
    """Plays the arms that the file of scores lacks, seed by seed, of these runs of 4T+4S."""
    played = set()
    if scores.is_file():
        played = {(row.seed, row.arm) for row in pd.read_csv(scores).itertuples()}
    else:
        scores.parent.mkdir(parents=True, exist_ok=True)
        scores.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
    for seed, run in runs.items():
        missing = [arm for arm in ARMS if (seed, arm) not in played]
        if not missing:
            continue
        with open_members(find_members(run)) as loaded:
            test = OperatorTest(loaded, seed)
            for arm in missing:
                rows = list(test.play(arm))
                with scores.open("a", encoding="utf-8", newline="") as file:
                    csv.writer(file, lineterminator="\n").writerows(rows)
                print(
                    f"seed {seed}, {arm}: {rows[0][3]:.1%}, at the end {rows[-1][3]:.1%}",
                    flush=True,
                )


def table(scores: pd.DataFrame) -> pd.DataFrame:
    """A row for each arm: its differences to the untouched parent in points. `equal` is decided by
    all seeds of the study and by no fewer. The mean of the parent's two copies, which have less
    chance in them than one, was taken after seeing, and decides nothing."""
    ends = _ends(scores)
    births = scores[scores["step"] == 0].pivot(index="seed", columns="arm", values="score")
    rows = []
    for arm in (arm for arm in ARMS[1:] if arm in ends):
        birth = compare(100 * births[arm], 100 * births[UNTOUCHED], True, LEVEL)
        end = compare(100 * ends[arm], 100 * ends[UNTOUCHED], True, LEVEL)
        row = {"arm": arm, "seeds": end.n}
        for name, test in (("at birth", birth), ("at the end", end)):
            row |= {name: test.mean, f"{name}, low": test.low, f"{name}, high": test.high}
        for name, (others, level) in _ABOVE.items():
            row[name] = ""
            if arm not in others and set(others) <= set(ends):
                other = ends[others].mean(axis=1, skipna=False)
                row[name] = interval_text(compare(100 * ends[arm], 100 * other, True, level))
        row["equal"] = _within_margin(end) and end.n == len(study_seeds())
        rows.append(row)
    return pd.DataFrame(rows)


def _ends(scores: pd.DataFrame) -> pd.DataFrame:
    """The score that counts as the end, a row for each seed and a column for each arm."""
    return scores[scores["step"].isin(ENDS)].groupby(["seed", "arm"])["score"].mean().unstack()


def _within_margin(test: Estimate) -> bool:
    """Whether the interval of a difference in points lies within it; without one it does not."""
    return abs(test.low) < 100 * MARGIN and abs(test.high) < 100 * MARGIN


def chance(scores: pd.DataFrame) -> str:
    """How far the parent's two copies, which differ by their draws alone, end apart, and how often
    this test calls two such arms equal."""
    ends = _ends(scores)
    apart = 100 * (ends["copy_parent"] - ends[UNTOUCHED]).dropna()
    draws = np.random.default_rng(0).normal(0.0, apart.std(), (2000, len(apart)))
    equal = [_within_margin(compare(row, np.zeros(len(row)), True, LEVEL)) for row in draws]
    return (
        f"The parent's two copies differ by {apart.std():.1f} points between seeds (standard "
        f"deviation); two such arms are called equal in {np.mean(equal):.0%} of cases."
    )


def draw(frame: pd.DataFrame, path: Path) -> str:
    """Draws the differences at the end with their intervals; returns the title."""
    equal = frame["equal"]
    marked = frame["arm"] + equal.map({True: ": equal", False: ""})
    ends = {name: frame[f"at the end{suffix}"] for name, suffix in _BOUNDS.items()}
    count, seeds = int(equal[frame["arm"].isin(OPERATORS)].sum()), frame["seeds"].min()
    operators = f"{count or 'none'} of {len(OPERATORS)} operators"
    title = f"Children of {operators} are shown to equal their parent"
    if seeds < (planned := len(study_seeds())):
        title = f"Children beside their parent: not decided, {seeds} of {planned} seeds"
    to_svg(
        charts.intervals(pd.DataFrame({"label": marked, **ends, "sure": equal}), "points"),
        path,
        title,
        [
            "Child less untouched parent, greedy on programs of 7 to 12 statements; 90% intervals",
            f"over {seeds} seeds. Equal: within {100 * MARGIN:g} points.",
            "copy_parent is the parent itself, trained with other draws.",
        ],
    )
    return title


_ABOVE = {f"above {control} [95%]": ([control], 0.05) for control in CONTROLS} | {
    "above both copies [90%]": ([UNTOUCHED, "copy_parent"], LEVEL)
}
"""What an arm is compared with beside `untouched`: the mean of these arms, and the level."""
_BOUNDS = {"mean": "", "low": ", low", "high": ", high"}


def main() -> None:
    *runs, out = map(Path, sys.argv[1:])
    scores = out / "scores.csv"
    for folder in runs:
        play(with_members(study_runs(folder, "4t4s")), scores)
    played = pd.read_csv(scores)
    frame = table(played)
    frame.round(3).to_csv(out / "operators.csv", index=False)
    print(frame.to_string(index=False, float_format="{:+.2f}".format))
    print(draw(frame, out / "operators.svg"))
    if len(frame) == len(ARMS) - 1 and frame["seeds"].min() == len(study_seeds()):
        print(chance(played))


if __name__ == "__main__":
    main()
