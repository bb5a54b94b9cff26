"""`azr-population azr`: AZR's own main, under the veRL that is installed.

Under veRL 0.4.1, which AZR pins, it does what `python -m absolute_zero_reasoner.main_azr_ppo` does.
Under later ones stand-ins for what is gone are found in this process and in all that its Ray starts
(`patches/verl_shims.py`).
"""

import importlib.util
import os
import runpy
import sys
from collections.abc import Sequence
from typing import Any

from azr_population.errors import UserError
from azr_population.hosts.azr.checks import ENTRY
from azr_population.patches import verl_shims
from azr_population.versions import installed

TRIED = ("0.4.1", "0.9.1")
"""Versions of veRL under which AZR was run."""


RESUMES = "the same command with trainer.resume_mode=auto continues from the last checkpoint"


def launch(overrides: Sequence[str], module: str | None = None) -> None:
    """Runs AZR's main, or another `module` of AZR's, which ends the process if it fails. Raises
    UserError: AZR or veRL is not there, or stock AZR is asked for and cannot run under this
    veRL."""
    sys.path.insert(0, os.getcwd())  # as `python -m` does
    version = installed("verl")
    if version is None:
        raise UserError("veRL is not installed: bash scripts/verl.sh, or see docs/with_azr.md")
    if importlib.util.find_spec(ENTRY.partition(".")[0]) is None:
        raise UserError(
            "there is no absolute_zero_reasoner here: start the command in AZR's checkout"
        )
    if version not in TRIED:
        print(f"azr-population: tried with veRL {' and '.join(TRIED)}, this is {version}")
    if importlib.util.find_spec(verl_shims.WORKERS) is None:
        if not module and not any(word.lstrip("+").startswith("population=") for word in overrides):
            raise UserError(
                f"stock AZR needs the workers of veRL 0.4.1, which {version} no longer has: add "
                "+population=single, or use AZR's pins"
            )
        verl_shims.install()
        os.environ["RAY_RUNTIME_ENV_HOOK"] = f"{__name__}.{with_shims.__name__}"
    sys.argv = [module or ENTRY, *overrides]
    try:
        runpy.run_module(module or ENTRY, run_name="__main__", alter_sys=True)
    except (KeyboardInterrupt, SystemExit) as end:
        # AZR's main turns a Ctrl-C into an exit with 0.
        if not isinstance(end, KeyboardInterrupt) and not isinstance(
            end.__context__, KeyboardInterrupt
        ):
            raise
        import ray

        ray.shutdown()  # its processes have output left, which comes first
        way_out = "" if module else f"; {RESUMES}"
        print(f"azr-population: stopped{way_out}", file=sys.stderr, flush=True)
        raise SystemExit(130) from None


def with_shims(runtime_env: dict[str, Any] | None) -> dict[str, Any]:
    """Ray's hook: the environment of AZR's processes, which install the stand-ins first."""
    hook = f"{verl_shims.__name__}.{verl_shims.install.__name__}"
    return {**(runtime_env or {}), "worker_process_setup_hook": hook}
