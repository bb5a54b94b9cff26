"""Weights & Biases: one run there per run here, however often it is resumed.

`<run>/wandb.json` keeps the run's id and the last logged step. A resumed run keeps the id and skips
the steps that it plays again, as their results are the same.
"""

from __future__ import annotations

import inspect
import json
import os
import uuid
from collections.abc import Mapping
from typing import Any

from azr_population.config.schema import LoggerConfig
from azr_population.errors import UserError
from azr_population.files import write_atomically
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
        self._state = path / "wandb.json"
        known: dict[str, Any] = {"id": uuid.uuid4().hex[:8], "step": 0}
        if self._state.is_file():
            known |= json.loads(self._state.read_text(encoding="utf-8"))
        self._id, self._last = str(known["id"]), int(known["step"])
        self._run = wandb.init(
            dir=str(path),
            id=self._id,
            resume="allow",
            project=settings.project,
            entity=settings.entity,
            name=settings.run_name or f"{arm['name']} seed {arm.get('seed', config.get('seed'))}",
            group=settings.group or arm["name"],
            mode=settings.mode or None,  # type: ignore[arg-type]
            config=config,
            settings=wandb.Settings(console="off", silent=True, init_timeout=INIT_SECONDS),
        )
        self._remember(self._last)

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        """Logs the step unless the run has it already."""
        if step <= self._last:
            return
        self._run.log(dict(figures), step=step)
        self._remember(step)

    def close(self) -> None:
        """Uploads what is left, or leaves the offline run for `wandb sync`."""
        self._run.finish()

    def _remember(self, step: int) -> None:
        self._last = step
        write_atomically(self._state, json.dumps({"id": self._id, "step": step}))


def _would_ask(mode: str | None) -> bool:
    """Whether W&B would wait for somebody who chooses an account: online, and without a key."""
    import wandb

    if (mode or os.environ.get("WANDB_MODE") or "online") != "online":
        return False
    if "prompt" in inspect.signature(wandb.login).parameters:
        return not wandb.login(prompt=False)
    return not wandb.api.api_key  # versions that have no other way to ask
