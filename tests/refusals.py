"""Assertions on refusals: `with refuses("population.teachers"):`, or the one line of a command."""

from contextlib import contextmanager

import pytest

from azr_population.cli import main
from azr_population.errors import UserError


@contextmanager
def refuses(thing):
    """A UserError in one line about `thing`: its key, or a value that the message names."""
    with pytest.raises(UserError) as refusal:
        yield
    message = str(refusal.value)
    assert "\n" not in message
    assert refusal.value.key == str(thing) or str(thing) in message, (refusal.value.key, message)


def refused(capsys, *words):
    """The one line with which a command is refused."""
    capsys.readouterr()
    assert main([str(word) for word in words]) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1 and len(line) < 2100
    return line
