"""Members as PEFT folders: a run's current members, its best one, and snapshots of a step."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from azr_population.files import check_name, replacing_folder
from azr_population.method.members import Member, Role
from azr_population.method.population import Population
from azr_population.runs.directory import RunDirectory
from azr_population.runs.records import Scored, best_of, births_of, member_scores
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


@dataclass(frozen=True)
class MemberFolders:
    """Writes the members of a run as PEFT folders with model cards. Each folder appears whole or
    not at all."""

    population: Population
    read: Callable[[int], Adapter]
    """Returns the adapter in a slot."""
    run: RunDirectory
    base: str
    """The base's folder or name."""

    def export(self, folder: Path | None = None) -> None:
        """Writes every member into `folder` (default: the run's `members/`)."""
        for member in self.population.roster:
            self._write(member, (folder or self.run.members) / check_name(member.name))

    def keep_best(self, scores: Mapping[str, float]) -> None:
        """Writes the member with the best of `scores`, those of this step by name, as
        `members/best` if it beats all earlier ones of the run's records."""
        step, folder = self.population.step, self.run.members / BEST
        recorded = member_scores(self.run.read("metrics"), self.run.read("validations"))
        earlier = [scored for scored in recorded if scored.step < step]
        now = [Scored(score, step, name) for name, score in scores.items()]
        best = best_of(now)
        if best and (best_of([*earlier, best]) is best or not folder.is_dir()):
            self._write(self.population.roster[best.name], folder, eval=f"{best.score:.4f}")

    def write_snapshot(self) -> None:
        """Writes the members of this step to `snapshots/step_<step>`: all or none."""
        self.run.snapshots.mkdir(exist_ok=True)
        with replacing_folder(self.run.snapshots / f"step_{self.population.step}") as folder:
            folder.mkdir()
            self.export(folder)

    def _write(self, member: Member, folder: Path, **facts: str) -> None:
        """Writes one member's folder. The single agent has no rating."""
        about = {
            "name": f"{member.name}, after step {self.population.step}",
            "role": f"{member.role}: {_DOES[member.role]}",
            "rating": f"mu {member.rating.mu:.2f}, sigma {member.rating.sigma:.2f} (TrueSkill)",
            "generation": str(member.generation),
        }
        if member.role is Role.AGENT:
            del about["rating"]
        for birth in births_of(self.run.read("lineage")):
            if birth.child == member.name:
                about["lineage"] = birth.origin
        weights = self.run.environment().get("base")
        about["run"] = "/".join(self.run.path.resolve().parts[-2:])
        about["base"] = base_name(self.base) + (f", weights {weights}" if weights else "")
        with replacing_folder(folder) as new_folder:
            save_adapter(self.read(member.slot), new_folder, self.base, about | facts)
