"""Co-evolving populations of LoRA adapters for reasoning self-play.

The public names (docs/python.md) are imported from here:

    from azr_population import Bank, Matchmaker, Referee, get_operator, load_config, train

Importing this package is cheap on purpose: it does not import torch, ray, verl or vllm, so that
Hydra can discover the plugin in any AZR environment without delay. A name is imported on first use.
"""

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # type checkers and editors read this instead of `__getattr__`
    from azr_population.config.load import load_config as load_config
    from azr_population.domains.metric import Metric as Metric
    from azr_population.errors import UserError as UserError
    from azr_population.hosts.local.run import Run as Run
    from azr_population.hosts.local.run import resume as resume
    from azr_population.hosts.local.run import train as train
    from azr_population.method.callbacks import Callback as Callback
    from azr_population.method.matchmaking import Matchmaker as Matchmaker
    from azr_population.method.members import RatingSystem as RatingSystem
    from azr_population.method.members import Roster as Roster
    from azr_population.referee import Program as Program
    from azr_population.referee import Question as Question
    from azr_population.referee import Referee as Referee
    from azr_population.referee import RefereeSettings as RefereeSettings
    from azr_population.runs import RunDirectory as RunDirectory
    from azr_population.weights.adapter import Adapter as Adapter
    from azr_population.weights.adapter import Factors as Factors
    from azr_population.weights.adapter import LoraSpec as LoraSpec
    from azr_population.weights.bank import Bank as Bank
    from azr_population.weights.breeding import all_operators as all_operators
    from azr_population.weights.breeding import breed as breed
    from azr_population.weights.breeding import get_operator as get_operator
    from azr_population.weights.operator import operator as operator
    from azr_population.weights.peft_folder import load_adapter as load_adapter
    from azr_population.weights.peft_folder import save_adapter as save_adapter

__version__ = "0.3.0"

# An installation has patches/ and recipes/ in this folder; in a checkout they lie beside it.
if not (Path(__file__).parent / "patches").is_dir():
    __path__.append(str(Path(__file__).parents[1]))

# A user without an entry and without HOME, as in containers: libraries ask for a home at import.
if os.path.expanduser("~") == "~":
    os.environ["HOME"] = "/nonexistent"

_NAMES = {
    "config.load": ["load_config"],
    "errors": ["UserError"],
    "hosts.local.run": ["Run", "resume", "train"],
    "domains.metric": ["Metric"],
    "method.callbacks": ["Callback"],
    "method.matchmaking": ["Matchmaker"],
    "method.members": ["RatingSystem", "Roster"],
    "referee": ["Program", "Question", "Referee", "RefereeSettings"],
    "runs": ["RunDirectory"],
    "weights.adapter": ["Adapter", "Factors", "LoraSpec"],
    "weights.bank": ["Bank"],
    "weights.breeding": ["all_operators", "breed", "get_operator"],
    "weights.operator": ["operator"],
    "weights.peft_folder": ["load_adapter", "save_adapter"],
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """The public names, for tab completion."""
    return sorted(__all__)
