"""A worker on a GPU that is not there, to see which one it would get."""

from dataclasses import replace

from azr_population.hosts.azr.azr_worker import PopulationWorker


class PretendingWorker(PopulationWorker):
    """Asks for a GPU and puts its tensors on the CPU."""

    def make_engine(self):
        """See `PopulationWorker.make_engine`."""
        self.settings = replace(self.settings, device="cpu")
        super().make_engine()
