"""AZR writes the prompts of its difficulty estimate to one fixed file name, `temp.parquet`.

Two runs in one output folder (or two reward calls at once) read and delete each other's, and a
folder that does not exist yet makes the first call fail.
"""

import copy
import functools
import tempfile
from pathlib import Path
from typing import Any

from .mechanism import Patch


def _own_folder(original: Any) -> Any:
    @functools.wraps(original)
    def _get_problem_generator_rewards_and_valid_programs(
        self: Any, *args: Any, **kwargs: Any
    ) -> Any:
        Path(self.output_path).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.output_path, prefix="estimate_") as folder:
            own = copy.copy(self)
            own.output_path = folder
            return original(own, *args, **kwargs)

    return _get_problem_generator_rewards_and_valid_programs


TEMP_PARQUET = Patch(
    "azr-temp-parquet",
    "absolute_zero_reasoner.rewards.reward_managers:"
    "CodeIORewardManager._get_problem_generator_rewards_and_valid_programs",
    "0bf4dd8efd5fa9a9",
    "each difficulty estimate has a folder of its own",
    _own_folder,
)
