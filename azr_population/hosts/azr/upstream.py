"""Which patches a population run applies to AZR, and what happens where one does not fit."""

import sys
from collections.abc import Mapping, Sequence

from azr_population.errors import UserError
from azr_population.patches import EVALS, EXECUTOR, REWARD_EVALS, Patch, apply
from azr_population.patches.azr_fixes import (
    DATALOADER_STATE,
    OVERLONG_ESTIMATES,
    PROMPT_LOOP,
    REWARD_ARGUMENTS,
    SPLITTER,
    TEMP_PARQUET,
    TOTAL_STEPS,
)

REFEREE: Mapping[str, Sequence[Patch]] = {
    "azr": EVALS,
    # The reward code evaluates answers whoever executes programs.
    "sandbox": (EXECUTOR, *REWARD_EVALS),
}
"""What ends evaluation in the trainer's process, by `population.referee`."""

NEEDED: Sequence[Patch] = (DATALOADER_STATE, TEMP_PARQUET, OVERLONG_ESTIMATES)
"""Without these a population run crashes or pays for what is no task."""

OPTIONAL: Sequence[Patch] = (SPLITTER, PROMPT_LOOP, TOTAL_STEPS, REWARD_ARGUMENTS)
"""A run is sound without these; where upstream has changed they are left out with a warning."""


def apply_patches(referee: str) -> list[str]:
    """Applies what a run with this referee (`azr` or `sandbox`) needs; returns all names in force.
    Raises UserError: a needed patch does not fit the installed AZR."""
    done: list[str] = []
    # One by one, because two of them wrap the same function.
    for patch in (*REFEREE[referee], *NEEDED):
        done += apply([patch])
    for patch in OPTIONAL:
        try:
            done += apply([patch])
        except UserError as error:
            print(f"azr-population: warning: {error}; the run goes on without it", file=sys.stderr)
    return done
