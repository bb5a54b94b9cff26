"""trackio itself, where it is installed: figures in its database, each step once."""

import pytest

from azr_population.config.load import load_config, to_yaml
from azr_population.hosts.loggers import open_loggers
from azr_population.runs import RunDirectory


def test_a_resumed_run_is_one_run_with_every_step_once(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    pytest.importorskip("trackio", reason="trackio is not installed (extra: trackio)")
    from trackio import utils
    from trackio.sqlite_storage import SQLiteStorage

    for module in (utils, *_with_folder()):
        monkeypatch.setattr(module, "TRACKIO_DIR", tmp_path / "trackio")
    config = load_config(["logger=trackio", "logger.project=p", "population=1t1s"])
    directory = RunDirectory(tmp_path / "run")
    directory.create(to_yaml(config), {})
    notes = []
    for steps in ((1, 2), (2, 3)):
        loggers = open_loggers(config.logger, directory, steps[0] - 1, notes.append)
        for step in steps:
            loggers.log(step, {"student/solve_rate": float(step)})
        loggers.close()
    assert notes == []
    (name,) = SQLiteStorage.get_runs("p")
    assert name.startswith("1t1s-seed-1-")
    rows = SQLiteStorage.get_logs("p", name)
    assert [(row["step"], row["student/solve_rate"]) for row in rows] == [
        (1, 1.0),
        (2, 2.0),
        (3, 3.0),
    ]


def _with_folder():
    """trackio's modules that took the folder when they were imported, maybe by another test."""
    import sys

    return [
        module
        for name, module in list(sys.modules.items())
        if name.startswith("trackio.") and hasattr(module, "TRACKIO_DIR")
    ]
