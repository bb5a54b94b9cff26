"""`with refuses("population.teachers"):` for what a user is told, without its wording."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from azr_population.errors import UserError


@contextmanager
def refuses(thing: object) -> Iterator[None]:
    """A UserError in one line about `thing`: its key, or a value that the message names."""
    with pytest.raises(UserError) as refusal:
        yield
    message = str(refusal.value)
    assert "\n" not in message
    assert refusal.value.key == str(thing) or str(thing) in message, (refusal.value.key, message)
