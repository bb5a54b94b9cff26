"""Members as PEFT folders: a run's current members, its best one, and snapshots of a step."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

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
    births = _births(run)
    for member in population.roster:
        facts = card(member, population.step, births.get(member.name)) | _about(run, base)
        with replacing_folder((folder or run.members) / check_name(member.name)) as place:
            save_adapter(read(member.slot), place, base, facts)


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
    if best_before is not None and scores[name] <= best_before and folder.is_dir():
        return
    member = population.roster[name]
    facts = card(member, population.step, _births(run).get(name)) | _about(run, base)
    with replacing_folder(folder) as place:
        save_adapter(read(member.slot), place, base, facts | {"eval": f"{scores[name]:.4f}"})


def _births(run: RunDirectory) -> dict[str, Mapping[str, Any]]:
    """Each child's last line of `lineage.jsonl`."""
    return {str(birth.get("child")): birth for birth in run.lineage()}


def _about(run: RunDirectory, base: str) -> dict[str, str]:
    weights = run.environment().get("base")
    return {
        "run": "/".join(run.path.resolve().parts[-2:]),
        "base": base_name(base) + (f", weights {weights}" if weights else ""),
    }


def card(member: Member, step: int, birth: Mapping[str, Any] | None) -> dict[str, str]:
    """The facts on a member's card; `birth` is its line of `lineage.jsonl`, if any. The single
    agent has no rating."""
    facts = {"name": f"{member.name}, after step {step}"}
    facts["role"] = f"{member.role}: {_DOES[member.role]}"
    if member.role is not Role.AGENT:
        facts["rating"] = f"mu {member.rating.mu:.2f}, sigma {member.rating.sigma:.2f} (TrueSkill)"
    facts["generation"] = str(member.generation)
    if birth:
        parents = ", ".join(map(str, birth.get("parents") or ()))
        facts["lineage"] = f"{birth.get('operator')}({parents}) at step {birth['step']}"
    return facts


def write_snapshot(
    population: Population, read: Callable[[int], Adapter], run: RunDirectory, base: str
) -> None:
    """Writes the members of this step to `snapshots/step_<step>`: all or none."""
    run.snapshots.mkdir(exist_ok=True)
    with replacing_folder(run.snapshots / f"step_{population.step}") as folder:
        folder.mkdir()
        export_members(population, read, run, base, folder)
