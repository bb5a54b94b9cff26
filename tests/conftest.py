"""Where tests start, and made-up runs as fixtures."""

import needs
import pytest
from made_up_run import make_run
from made_up_run import write_run as write
from small_run import SMALL


def pytest_addoption(parser):
    """The option that writes tests/golden anew."""
    parser.addoption("--update-golden", action="store_true", help="write tests/golden anew")


def pytest_runtest_setup(item):
    """Tests marked `azr` need a checkout of AZR."""
    if item.get_closest_marker("azr") and not needs.AZR_HOME:
        pytest.skip(needs.NO_AZR)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path_factory, monkeypatch):
    """Every test starts in an empty folder: runs that lie in the checkout do not matter."""
    monkeypatch.chdir(tmp_path_factory.mktemp("started_in"))


@pytest.fixture(scope="session")
def small_run(tmp_path_factory):
    """The folder of a finished run of two steps by the settings `small_run.SMALL`; to be copied."""
    from azr_population.cli import main

    path = tmp_path_factory.mktemp("runs") / "small"
    assert main(["train", *SMALL, "run.steps=2", f"run.dir={path}"]) == 0
    return path


@pytest.fixture(scope="session")
def referee():
    """A referee; also where this platform cannot confine programs, which tests/referee looks at."""
    from azr_population.referee import Referee, RefereeSettings

    settings = RefereeSettings(workers=1, timeout=10.0, cpu_seconds=0.4, allow_unsandboxed=True)
    with Referee(settings) as referee:
        yield referee


@pytest.fixture
def made_up_run():
    """The function that makes up a run."""
    return make_run


@pytest.fixture
def write_run(tmp_path):
    """Writes a made-up run directory and returns it."""

    def to_disk(run=None, steps=12):
        return write(tmp_path / "run", run, steps)

    return to_disk
