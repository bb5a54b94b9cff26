"""trackio: calls like those of W&B on a local database, shown by `trackio show`."""

from collections.abc import Mapping

from azr_population.config.schema import LoggerConfig
from azr_population.hosts.loggers.remembered import Remembered
from azr_population.runs.directory import RunDirectory


class TrackioLogger:
    """One run there per run here, however often it is resumed (`<run>/trackio.json`)."""

    def __init__(self, settings: LoggerConfig, directory: RunDirectory) -> None:
        """trackio keeps its files where TRACKIO_DIR says, by default in the user's cache."""
        import trackio

        config = directory.config()
        arm = config["population"]
        self._known = Remembered(directory.path / "trackio.json")
        seed = arm.get("seed", config.get("seed"))
        # trackio goes by the name alone, so that it has to be another one for every run.
        name = settings.run_name or f"{arm['name']}-seed-{seed}-{self._known.id}"
        self._run = trackio.init(
            settings.project,
            name=name,
            group=settings.group or arm["name"],
            config=config,
            resume="allow",
            embed=False,
            auto_log_gpu=False,
            auto_log_cpu=False,
        )
        self._known.reach(self._known.step)

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        """Logs the step unless the run has it already."""
        if step > self._known.step:
            self._run.log(dict(figures), step=step)
            self._known.reach(step)

    def close(self) -> None:
        """Writes what is left."""
        self._run.finish()
