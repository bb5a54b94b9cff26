"""A referee for the tests here. They need Linux, as the sandbox does."""

import sys

import pytest

from azr_population.referee import Referee, RefereeSettings

collect_ignore_glob = [] if sys.platform == "linux" else ["test_*.py"]


@pytest.fixture(scope="session")
def referee():
    with Referee(RefereeSettings(workers=2, timeout=10.0, cpu_seconds=0.6)) as referee:
        yield referee
