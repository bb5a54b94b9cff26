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
    "Adapter": "weights.adapter",
    "all_operators": "weights.breeding",
    "Bank": "weights.bank",
    "breed": "weights.breeding",
    "Factors": "weights.adapter",
    "get_operator": "weights.breeding",
    "load_adapter": "weights.peft_folder",
    "load_config": "config.load",
    "LoraSpec": "weights.adapter",
    "Matchmaker": "method.matchmaking",
    "Program": "referee",
    "Question": "referee",
    "RatingSystem": "method.members",
    "Referee": "referee",
    "RefereeSettings": "referee",
    "resume": "hosts.local.run",
    "Roster": "method.members",
    "RunDirectory": "runs",
    "save_adapter": "weights.peft_folder",
    "train": "hosts.local.run",
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
