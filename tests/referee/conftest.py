"""A referee for the tests here, which may import the corpora that lie beside them."""

import sys
from pathlib import Path

import pytest

from azr_population.referee import Referee, RefereeSettings

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="module")
def referee():
    with Referee(RefereeSettings(workers=2, timeout=10.0, cpu_seconds=0.6)) as referee:
        yield referee
