"""What TensorBoard itself reads back from the event files."""

import needs
import pytest

from azr_population.config.schema import LoggerConfig
from azr_population.hosts.loggers import Loggers, TensorBoardLogger
from azr_population.runs import RunDirectory

needs.module("tensorboard", "tensorboard")


def opened(path, step=0):
    return TensorBoardLogger(LoggerConfig(), RunDirectory(path), step)


def read(folder):
    """name -> [(step, value)], as the TensorBoard server has it."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return {
        name: [(event.step, event.value) for event in events.Scalars(name)]
        for name in events.Tags()["scalars"]
    }


def test_figures_are_scalars_by_step(tmp_path):
    logger = opened(tmp_path)
    logger.log(1, {"time/step": 2.0, "eval/greedy": 0.25})
    logger.log(2, {"time/step": 3.0})
    logger.close()
    assert read(tmp_path / "tensorboard") == {
        "time/step": [(1, 2.0), (2, 3.0)],
        "eval/greedy": [(1, 0.25)],
    }


def test_a_resumed_run_goes_on_in_the_same_folder_without_a_step_twice(tmp_path):
    first = opened(tmp_path)
    for step in (1, 2, 3, 4):
        first.log(step, {"time/step": float(step)})
    first.close()
    # Killed after step 4, resumed from the checkpoint of step 2.
    second = opened(tmp_path, 2)
    for step in (3, 4, 5):
        second.log(step, {"time/step": 10.0 * step})
    second.close()
    assert read(tmp_path / "tensorboard")["time/step"] == [
        (1, 1.0),
        (2, 2.0),
        (3, 30.0),
        (4, 40.0),
        (5, 50.0),
    ]


def test_a_folder_that_cannot_be_written_stops_nothing(tmp_path):
    from azr_population.config.load import load_config
    from azr_population.hosts.loggers import open_loggers

    (tmp_path / "tensorboard").write_text("in the way")
    notes = []
    config = load_config(["logger=tensorboard"])
    open_loggers(config.logger, RunDirectory(tmp_path), 0, notes.append).close()
    assert len(notes) == 1 and notes[0].startswith("logger tensorboard failed (")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_disk_that_fills_up_is_told_of_once(tmp_path, monkeypatch):
    logger = opened(tmp_path)

    def full(*_):
        raise OSError(28, "No space left on device")

    writer = logger._writer._get_file_writer().event_writer._async_writer
    monkeypatch.setattr(writer._writer, "write", full)
    monkeypatch.setattr(writer._writer, "flush", full)
    notes = []
    loggers = Loggers({"tensorboard": logger}, notes.append)
    for step in range(1, 5):
        loggers.log(step, {"time/step": 1.0})
    writer._worker.join()
    assert len(notes) == 1 and "No space left on device" in notes[0]
