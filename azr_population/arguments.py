"""The parser of every command: options are written out, and a mistake is one line."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from azr_population.errors import UserError


class Parser(argparse.ArgumentParser):
    """`argparse.ArgumentParser` without abbreviations, which change meaning when an option is
    added, and with mistakes told as all others: in one line, exit code 2."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **settings})

    def error(self, message: str) -> NoReturn:
        """Raises `UserError`, where argparse prints its usage and exits."""
        command = self.prog.removeprefix("azr-population").strip()
        raise UserError(f"{command}: {message}; see {self.prog} --help".removeprefix(": "))


def positive(text: str) -> int:
    """The type of an option that is a whole number from 1 on."""
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is no whole number") from None
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is too small; the least is 1")
    return value
