"""Co-evolving populations of LoRA adapters for reasoning self-play.

The pieces that stand alone can be had from here (docs/python.md):

    from azr_population import Bank, Matchmaker, Referee, get_operator, load_config, train

Importing this package is cheap on purpose: it pulls in neither torch, ray, verl nor vllm, so that
the Hydra plugin can be discovered inside any AZR environment without slowing it down. A name is
imported when it is first asked for.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

# An installation has patches/ and recipes/ in this folder; in a checkout they lie beside it.
if not (Path(__file__).parent / "patches").is_dir():
    __path__.append(str(Path(__file__).parents[1]))

_HOMES = {
    "Adapter": "adapters.adapter",
    "all_operators": "evolution.breeding",
    "Bank": "adapters.bank",
    "breed": "evolution.breeding",
    "Factors": "adapters.adapter",
    "get_operator": "evolution.breeding",
    "load_adapter": "adapters.peft_folder",
    "load_config": "conf.load",
    "LoraSpec": "adapters.adapter",
    "Matchmaker": "matchmaking",
    "Program": "referee",
    "Question": "referee",
    "RatingSystem": "members",
    "Referee": "referee",
    "RefereeSettings": "referee",
    "resume": "local_run",
    "Roster": "members",
    "RunDirectory": "runs",
    "save_adapter": "adapters.peft_folder",
    "train": "local_run",
    "UserError": "errors",
}
"""Public name -> the room that has it."""

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
