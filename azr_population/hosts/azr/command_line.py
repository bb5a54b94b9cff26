"""What is wrong with a command's `population` overrides, in one line, before Hydra composes.

Hydra refuses an unknown arm or option too, over several lines, which AZR's scripts bury under a
traceback (they set HYDRA_FULL_ERROR).
"""

import re
from collections.abc import Sequence

from azr_population.config.inside_azr import PopulationSettings, arms
from azr_population.config.load import ENTRIES
from azr_population.config.schema import unknown_key

OWN_FILES = ("--config-dir", "-cd", "hydra.searchpath", "++hydra.searchpath", "+hydra.searchpath")
"""Arguments with which a user's own directories may hold further arms."""


def override_error(arguments: Sequence[str]) -> str | None:
    """The line for the first `population` override that cannot be meant; None when all can.

    `arguments` are the command's, without its name. Values are left to `settings.read_settings`.
    """
    plus, arm, options = "", None, []
    for argument in arguments:
        if match := re.fullmatch(r"(\+{0,2})population=(.*)", argument):
            plus, arm = match[1], match[2].strip("'\"")
        elif match := re.fullmatch(r"(\+{0,2})population\.([\w.]+)=.*", argument, re.DOTALL):
            options.append(match[2])
    if arm is None:
        if options and not _own_files(arguments):
            return (
                f"population.{options[0]} is set without a population; add "
                f"+population=<arm> ({', '.join(arms())})"
            )
        return None
    if not _own_files(arguments):
        if re.fullmatch(r"\w+", arm) and arm not in arms():
            return f"+population={arm} is unknown; choose from {', '.join(arms())}"
        if not plus:
            return f"population={arm} lacks a plus, as AZR has no such group: +population={arm}"
    return next(filter(None, map(_unknown, options)), None)


def _own_files(arguments: Sequence[str]) -> bool:
    return any(argument.split("=")[0] in OWN_FILES for argument in arguments)


def _unknown(option: str) -> str | None:
    """The line for an option's dotted path that no setting has."""
    key = f"population.{option}"
    exists = key in set(PopulationSettings.keys("population.")) or option.startswith(ENTRIES)
    return None if exists else str(unknown_key(PopulationSettings, key, "population."))
