"""The parser of every command: options are written out, and a mistake is one line."""

import argparse
from typing import Any, NoReturn

from azr_population.errors import UserError, did_you_mean


class Help(argparse.RawDescriptionHelpFormatter):
    """Descriptions as they are written, and behind every option its default, unless its help tells
    it or there is none."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        told = action.help
        none = action.default in (None, False, "", argparse.SUPPRESS) or action.default == []
        if not told or not action.option_strings or none or "default" in told:
            return told
        return f"{told} (default %(default)s)"


class Parser(argparse.ArgumentParser):
    """`argparse.ArgumentParser` without abbreviations, which change meaning when an option is
    added, and with mistakes told as all others: in one line, exit code 2, and with the word that
    was meant."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"allow_abbrev": False, "formatter_class": Help, **settings})

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        known = list(map(str, action.choices or ()))
        if action.choices is not None and value not in action.choices:
            near = did_you_mean(value, known).strip(" ()")
            hint = near or f"choose from {', '.join(known)}"
            name = (
                action.option_strings[0] if action.option_strings else action.metavar or action.dest
            )
            self.error(f"{name} {value} is unknown; {hint}")

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
