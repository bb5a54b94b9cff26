"""The run directory of an AZR run, as a local run has it, and figures for AZR's logger."""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from azr_population.adapters.peft_folder import save_adapter
from azr_population.azr.facade import PopulationGroup
from azr_population.errors import UserError
from azr_population.loggers.figures import section_figures
from azr_population.members import Roster
from azr_population.reports.lines import match_line, replacement_line, role_line
from azr_population.runs.directory import RunDirectory, replacing_folder
from azr_population.selfplay import record
from azr_population.selfplay.rows import Row
from azr_population.versions import installed


def open_run(config: Any, path: Path, patches: Sequence[str], resumes: bool) -> RunDirectory:
    """The run directory at `path`, new, or the one that is there when the run goes on.

    Raises:
        UserError: there is something there already and AZR was told not to resume.
    """
    directory = RunDirectory(path)
    if resumes and (path / "config.yaml").is_file():
        return directory
    if (path / "config.yaml").is_file():
        raise UserError(
            f"{path} holds a run already; go on with it by trainer.resume_mode=auto, or give "
            "another trainer.experiment_name or population.run_dir"
        )
    directory.create(OmegaConf.to_yaml(config, resolve=True), environment(patches))
    return directory


def environment(patches: Sequence[str]) -> dict[str, Any]:
    """What the run runs on, and which patches are in force."""
    packages = ("azr-population", "verl", "ray", "vllm", "torch", "transformers", "peft", "numpy")
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "host": "Absolute Zero Reasoner",
        "packages": {name: installed(name) for name in packages},
        "patches": list(patches),
    }


def count_copies(rows: Sequence[Row]) -> None:
    """Sets `copies`: equal tasks by the same teacher in this step."""
    counts = Counter((row.match.teacher.name, row.task) for row in rows if row.task is not None)
    for row in rows:
        if row.task is not None:
            row.copies = counts[row.match.teacher.name, row.task] - 1


def step_record(
    step: int,
    seconds: float,
    phases: Mapping[str, float],
    roster: Roster,
    rows: Sequence[Row],
    solved: Iterable[tuple[int, bool, float]],
    tokens: Mapping[int, int],
    updates: Mapping[int, Mapping[str, float]],
) -> dict[str, Any]:
    """The line of `metrics.jsonl`, as `selfplay.record.step_record` has it.

    Inside AZR students train on tasks from AZR's buffer and not on the attempts that estimate solve
    rates, so their members also have `trained_solve_rate`, `trained_reward` and `trained_rows`, and
    what they wrote for those rows (`tokens`, by slot) counts as theirs.
    """
    whole = record.step_record(step, seconds, phases, roster, rows, updates, None)
    answered = list(solved)
    for member in roster:
        figures = whole["members"][member.name]
        own = [(right, reward) for slot, right, reward in answered if slot == member.slot]
        proposed = sum(row.match.teacher is member for row in rows)
        figures["trained_rows"] = proposed + len(own)
        figures["tokens"] += tokens.get(member.slot, 0)
        figures["rollouts"] += len(own)
        if own:
            figures["trained_solve_rate"] = record.share(right for right, _ in own)
            figures["trained_reward"] = record.mean(reward for _, reward in own)
    whole["roles"] = record.role_metrics(whole["members"])
    return whole


def figures(step: Mapping[str, Any], births: int) -> dict[str, float]:
    """The numbers of a step for AZR's logger: `population/<member, role or task type>/<name>`.

    Times are left out, since AZR logs its own.
    """
    types = {
        kind: {key: own.get(key) for key in ("validity", "solve_rate", "unique")}
        for kind, own in step["types"].items()
    }
    return section_figures({**step["roles"], **step["members"], **types}, births)


def lines(
    step: Mapping[str, Any],
    matches: Sequence[Mapping[str, Any]],
    births: Sequence[Mapping[str, Any]],
) -> list[str]:
    """The step as plain lines for the console."""
    shown = [match_line(match) for match in matches]
    shown += [replacement_line(birth) for birth in births]
    shown += [role_line(role, own) for role, own in step["roles"].items()]
    return [f"population step {step['step']}: {line}" for line in shown]


def export_members(
    directory: RunDirectory, group: PopulationGroup, roster: Roster, base: str
) -> None:
    """Writes every member as a PEFT folder; a folder is always whole."""
    for member in roster:
        readme = {"rating": json.dumps({"mu": member.rating.mu, "sigma": member.rating.sigma})}
        with replacing_folder(directory.members / member.name) as folder:
            save_adapter(group.read_member(member.slot), folder, base, readme)
