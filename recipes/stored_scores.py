"""Scores of stored members at tasks, and the mean of several, for what a run does not record."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from azr_population.domains.code.chain_tasks import draw_eval_tasks, strata
from azr_population.domains.task import Task
from azr_population.errors import UserError
from azr_population.eval.members import find_members
from azr_population.experiments.plan import PlannedRun, RecipePlan, check_runs
from azr_population.experiments.recipes import read_arms, read_recipe, seed_numbers
from azr_population.method.held_out_eval import all_known, solved_shares
from azr_population.method.phases import StepContext
from azr_population.reading.tidy import seed_folders
from azr_population.weights.adapter import Adapter
from azr_population.weights.operators import weighted_sum


def numbered_runs(arm: Path) -> dict[int, Path]:
    """The runs seed_N of an arm's folder, by N."""
    return {int(run.name.removeprefix("seed_")): run for run in seed_folders(arm)}


def study_seeds() -> range:
    """The seeds that decide in population_or_not: of no others is anything said."""
    return seed_numbers(read_arms().protocols["population_or_not"].seeds)


def study_runs(out: Path, arm: str) -> dict[int, PlannedRun]:
    """The finished runs of an arm of population_or_not by seed, in the recipe's `--out`; where one
    is not there, its committed results, which have no members. Raises UserError: one is not what
    the recipe says."""
    arms = read_arms()
    recipe = read_recipe("population_or_not", arms)
    plan = RecipePlan(recipe, arms, from_results=True, arms=arm, out=out)
    check_runs(plan.runs)
    return {run.seed: run for run in plan.runs if run.finished}


def with_members(runs: Mapping[int, PlannedRun]) -> dict[int, Path]:
    """The folders of those runs that have their members."""
    return {seed: run.path for seed, run in runs.items() if not run.directory.results_only}


def deep_tasks(per_type: int, seed: int, types: Sequence[str]) -> list[Task]:
    """The deep half, 7 to 12 statements, of an eval of so many tasks of each type."""
    names = strata(per_type) * len(types)
    tasks = zip(draw_eval_tasks(per_type, seed, types), names, strict=True)
    return [task for task, name in tasks if name.startswith("deep")]


class Scores:
    """Scores of adapters at tasks, in the engine's only slot."""

    def __init__(self, context: StepContext) -> None:
        self._context = context

    def shares(
        self, adapter: Adapter, tasks: Sequence[Task], temperature: float, samples: int, seed: int
    ) -> list[float]:
        """The share of right answers to each task. Raises ValueError: one could not be judged."""
        self._context.engine.write(0, adapter)
        return all_known(solved_shares(self._context, tasks, 0, temperature, samples, seed))

    def greedy(self, adapter: Adapter, tasks: Sequence[Task]) -> float:
        """The share of tasks that the adapter solves by greedy decoding."""
        return fmean(self.shares(adapter, tasks, 0.0, 1, 0))

    def any_right(self, adapters: Sequence[Adapter], tasks: Sequence[Task], seed: int) -> float:
        """The share of tasks that one of the adapters solves, each once at temperature 1."""
        rates = [
            self.shares(adapter, tasks, 1.0, 1, 10 * seed + number)
            for number, adapter in enumerate(adapters)
        ]
        return fmean(float(any(shares)) for shares in zip(*rates, strict=True))


def stored_students(run: Path, step: int | None = None) -> list[Adapter]:
    """The adapters of a run's students, by name: after its last step, or after `step`, of which it
    has a snapshot. Raises UserError: it has not."""
    _, *members = find_members(run, every=step or 0)
    wanted = step or max(member.step for member in members)
    # A snapshot of the last step is the same member once more.
    students = {m.name: m for m in members if m.solves and m.step == wanted}
    if not students:
        raise UserError(f"{run} has no students of step {wanted}")
    return [students[name].adapter() for name in sorted(students)]


def mean_adapter(adapters: Sequence[Adapter]) -> Adapter:
    """The mean of their dW, truncated to the first one's rank."""
    return weighted_sum(adapters, [1 / len(adapters)] * len(adapters))
