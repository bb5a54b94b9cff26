"""The run directory of an AZR run, as a local run has it, and figures for AZR's logger."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from azr_population.engines.base_model import fingerprint
from azr_population.errors import UserError
from azr_population.hosts.loggers import step_figures
from azr_population.runs import RunDirectory
from azr_population.versions import environment

VALIDATION = "val/test_score/"
"""What AZR puts before the name of a source of validation tasks."""


def open_run(config: Any, path: Path, patches: Sequence[str], resumes: bool) -> RunDirectory:
    """The run directory at `path`, new, or the one that is there when the run goes on. Raises
    UserError: there is something there already and AZR was told not to resume."""
    directory = RunDirectory(path)
    if resumes and (path / "config.yaml").is_file():
        return directory
    if (path / "config.yaml").is_file():
        raise UserError(
            f"{path} holds a run already; go on with it by trainer.resume_mode=auto, or give "
            "another trainer.experiment_name or population.run_dir"
        )
    record = {
        **environment("verl", "ray", "vllm"),
        "host": "Absolute Zero Reasoner",
        "patches": list(patches),
    }
    # The base may lie on the workers' nodes alone.
    with suppress(UserError, OSError):
        record["base"] = fingerprint(str(config.actor_rollout_ref.model.path))
    directory.create(OmegaConf.to_yaml(config, resolve=True), record)
    return directory


def validation(figures: Mapping[str, Any], step: int, member: str) -> dict[str, Any]:
    """AZR's validation after `step` as the run directory keeps it: the share solved by source."""
    shares = {
        key.removeprefix(VALIDATION): float(value)
        for key, value in figures.items()
        if key.startswith(VALIDATION)
    }
    return {"step": step, "member": member, "shares": shares}


def figures(step: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a step for AZR's logger, without times, since AZR logs its own."""
    return {
        name: value for name, value in step_figures(step).items() if not name.startswith("time/")
    }
