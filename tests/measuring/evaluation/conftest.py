"""Where what is right is kept for the tests of a session."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def references(tmp_path_factory):
    """A folder for what is right, shared by the tests."""
    return tmp_path_factory.mktemp("references")
