"""Members as PEFT folders: a run's current members, its best one, and snapshots of a step."""

from collections.abc import Callable, Mapping
from pathlib import Path

from azr_population.files import check_name, replacing_folder
from azr_population.method.members import Member, Role
from azr_population.method.population import Population
from azr_population.runs.directory import RunDirectory
from azr_population.weights.adapter import Adapter
from azr_population.weights.model_card import base_name
from azr_population.weights.peft_folder import save_adapter

BEST = "best"
"""The folder in `members/` with the member that scored best at an eval."""
_DOES = {
    Role.TEACHER: "proposes tasks",
    Role.STUDENT: "solves tasks",
    Role.AGENT: "proposes and solves tasks",
}


def export_members(
    population: Population,
    read: Callable[[int], Adapter],
    run: RunDirectory,
    base: str,
    folder: Path | None = None,
) -> None:
    """Writes every member as a PEFT folder with a model card into `folder` (default: the run's
    `members/`). Each folder appears whole or not at all."""
    for member in population.roster:
        place = (folder or run.members) / check_name(member.name)
        _write(member, population.step, read(member.slot), run, base, place)


def keep_best(
    scores: Mapping[str, float],
    best_before: float | None,
    population: Population,
    read: Callable[[int], Adapter],
    run: RunDirectory,
    base: str,
) -> None:
    """Writes the member with the best of `scores` (by name) as `members/best` if it beats every
    earlier eval of the run."""
    name = max(scores, key=lambda name: scores[name])
    folder = run.members / BEST
    if best_before is None or scores[name] > best_before or not folder.is_dir():
        member, score = population.roster[name], f"{scores[name]:.4f}"
        _write(member, population.step, read(member.slot), run, base, folder, eval=score)


def write_snapshot(
    population: Population, read: Callable[[int], Adapter], run: RunDirectory, base: str
) -> None:
    """Writes the members of this step to `snapshots/step_<step>`: all or none."""
    run.snapshots.mkdir(exist_ok=True)
    with replacing_folder(run.snapshots / f"step_{population.step}") as folder:
        folder.mkdir()
        export_members(population, read, run, base, folder)


def _write(
    member: Member,
    step: int,
    adapter: Adapter,
    run: RunDirectory,
    base: str,
    folder: Path,
    **facts: str,
) -> None:
    """One folder. The single agent has no rating."""
    about = {
        "name": f"{member.name}, after step {step}",
        "role": f"{member.role}: {_DOES[member.role]}",
        "rating": f"mu {member.rating.mu:.2f}, sigma {member.rating.sigma:.2f} (TrueSkill)",
        "generation": str(member.generation),
    }
    if member.role is Role.AGENT:
        del about["rating"]
    births = [birth for birth in run.lineage() if birth.get("child") == member.name]
    for birth in births[-1:]:
        parents = ", ".join(map(str, birth.get("parents") or ()))
        about["lineage"] = f"{birth.get('operator')}({parents}) at step {birth['step']}"
    weights = run.environment().get("base")
    about["run"] = "/".join(run.path.resolve().parts[-2:])
    about["base"] = base_name(base) + (f", weights {weights}" if weights else "")
    with replacing_folder(folder) as place:
        save_adapter(adapter, place, base, about | facts)
