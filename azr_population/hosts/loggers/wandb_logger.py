"""Weights & Biases: one run there per run here, however often it is resumed.

`<run>/wandb.json` keeps the run's id and the last logged step. A resumed run keeps the id and skips
the steps that it plays again, as their results are the same.
"""

import inspect
import os
from collections.abc import Mapping

from azr_population.config.schema import LoggerConfig
from azr_population.errors import UserError
from azr_population.hosts.loggers.remembered import Remembered
from azr_population.runs.directory import RunDirectory

INIT_SECONDS = 30.0
"""How long a run waits for the server before it goes on without W&B, which itself waits 90 s."""


class WandbLogger:
    """A W&B run, online or offline by `logger.mode` or WANDB_MODE."""

    def __init__(self, settings: LoggerConfig, directory: RunDirectory) -> None:
        """W&B keeps its files in the run directory's `wandb`."""
        import wandb

        path, config = directory.path, directory.config()
        arm = config["population"]
        if _would_ask(settings.mode):
            raise UserError(
                "there is no key of Weights & Biases here; wandb login, or logger.mode=offline"
            )
        self._known = Remembered(path / "wandb.json")
        self._run = wandb.init(
            dir=str(path),
            id=self._known.id,
            resume="allow",
            project=settings.project,
            entity=settings.entity,
            name=settings.run_name or f"{arm['name']} seed {arm.get('seed', config.get('seed'))}",
            group=settings.group or arm["name"],
            mode=settings.mode or None,
            config=config,
            settings=wandb.Settings(console="off", silent=True, init_timeout=INIT_SECONDS),
        )
        self._known.reach(self._known.step)

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        """Logs the step unless the run has it already."""
        if step > self._known.step:
            self._run.log(dict(figures), step=step)
            self._known.reach(step)

    def close(self) -> None:
        """Uploads what is left, or leaves the offline run for `wandb sync`."""
        self._run.finish()


def _would_ask(mode: str | None) -> bool:
    """Whether W&B would wait for somebody who chooses an account: online, and without a key."""
    import wandb

    if (mode or os.environ.get("WANDB_MODE") or "online") != "online":
        return False
    if "prompt" in inspect.signature(wandb.login).parameters:
        return not wandb.login(prompt=False)
    return not wandb.api.api_key  # versions that have no other way to ask
