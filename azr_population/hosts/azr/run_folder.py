"""The folder of a run inside AZR: made, taken up again, or refused before anything is lost."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from azr_population.config.effects import INCIDENTAL, RESUMABLE, differing_keys, flat
from azr_population.engines.base_model import fingerprint
from azr_population.errors import UserError
from azr_population.files import write_atomically
from azr_population.runs import RunDirectory
from azr_population.versions import environment

_AZRS = (
    "data.train_batch_size", "azr.problem_types", "azr.reward.n_samples",
    "actor_rollout_ref.actor.optim.lr", "actor_rollout_ref.actor.optim.weight_decay",
    "actor_rollout_ref.actor.grad_clip",
)  # fmt: skip
"""Keys of AZR's that a population is trained by."""
_NEW_RUN = "to start a new run, give another trainer.experiment_name or population.run_dir"


def open_run(
    played: dict[str, Any], path: Path, facts: Mapping[str, Any], resumes: bool
) -> RunDirectory:
    """The run directory at `path`, new, with these facts in its environment, or the one that is
    there when the run goes on; `played` is the whole configuration. Raises UserError: there is a
    run and AZR was told not to resume, or it has steps that were played with other settings or on
    another base."""
    directory, weights = RunDirectory(path), None
    # The base may lie on the workers' nodes alone.
    with suppress(UserError, OSError):
        weights = fingerprint(str(played["actor_rollout_ref"]["model"]["path"]))
    if directory.exists:
        if resumes:
            if directory.last_recorded_step():
                _refuse_changes(directory, played)
                if weights:
                    directory.check_base(weights, f"; {_NEW_RUN}")
            return directory
        raise UserError(
            f"{path} holds a run already; continue it with trainer.resume_mode=auto, or give "
            "another trainer.experiment_name or population.run_dir"
        )
    record = {
        **environment("verl", "ray", "vllm"),
        "host": "Absolute Zero Reasoner",
        **facts,
        **({"base": weights} if weights else {}),
    }
    directory.create(OmegaConf.to_yaml(OmegaConf.create(played)), record)
    return directory


def _refuse_changes(directory: RunDirectory, played: dict[str, Any]) -> None:
    """Raises UserError for settings that members are trained by and that would change in the middle
    of a run: those that a local run does not let change either, but for speed and memory."""
    before, after = flat(directory.config()), flat(played)
    for key in differing_keys(before, after, RESUMABLE | INCIDENTAL):
        if key.startswith("population.") or key in _AZRS:
            way_out = f"set {key}={before[key]}" if key in before else "leave it out"
            raise UserError(
                f"{key}={after.get(key)} differs from the run's own {before.get(key)} in "
                f"{directory.path}; {way_out}; or, {_NEW_RUN}",
                key=key,
            )


def refuse_to_erase(directory: RunDirectory, played: Mapping[str, Any]) -> None:
    """Raises UserError: AZR starts from scratch where the directory has steps of which there was a
    checkpoint, or there never is one."""
    steps, trainer = directory.last_recorded_step(), directory.config().get("trainer") or {}
    own, every = trainer.get("default_local_dir"), trainer.get("save_freq") or 0
    same = own == played["trainer"].get("default_local_dir")
    if steps and not (same and steps <= every):
        raise UserError(
            f"{directory.path} has {steps} steps, and AZR finds no checkpoint of them in "
            f"{played['trainer'].get('default_local_dir')} (they were played with {own}); bring it "
            f"back to go on. {_NEW_RUN[0].upper()}{_NEW_RUN[1:]}",
            key="population.run_dir",
        )


def record_settings(directory: RunDirectory, played: Mapping[str, Any]) -> None:
    """Stores what is played from here on, such as more steps."""
    text = OmegaConf.to_yaml(OmegaConf.create(dict(played)))
    write_atomically(directory.path / "config.yaml", text)
