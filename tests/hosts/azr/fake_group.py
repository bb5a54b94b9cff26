"""In the place of workers: groups that write by a script."""

from __future__ import annotations

from contextlib import contextmanager

from azr_population.engines.engine import Completion
from azr_population.hosts.azr.batches import prompt_rows, with_responses


class FakeGroup:
    """In the place of the facade: its rows are written by `write`, `samples` for each prompt."""

    world_size = 1

    def __init__(self, write, samples):
        self.write, self.samples = write, samples
        self.calls = []
        self.routes = []

    def prefetch(self, batches, on_finished, validate):
        """Notes the call, and hands over every batch's rows as they end: the last one first."""
        self.calls.append(batches)
        written = {
            name: [
                Completion(slot, (), tuple(ids), (), True)
                for slot, ids in zip(batch.slots, self.written(batch.prompts), strict=True)
            ]
            for name, batch in batches.items()
        }
        for name, rows in written.items():
            for row in reversed(range(len(rows))):
                on_finished(name, row, rows[row])
        return written

    @contextmanager
    def routed(self, name):
        """Notes what is asked for."""
        self.routes.append(name)
        yield self

    def generate_sequences(self, prompts):
        """The same rows, as AZR takes them; notes how it asks."""
        self.meta = prompts.meta_info
        return self.output(prompts, self.written(prompt_rows(prompts.batch)))

    def written(self, prompts):
        each = max(1, len(prompts) // self.samples)
        return [list(self.write(list(ids), row // each)) for row, ids in enumerate(prompts)]

    def output(self, prompts, written):
        """veRL's DataProto."""
        from verl import DataProto

        tensors = with_responses(prompts.batch, written, max(map(len, written)), 0)
        return DataProto.from_dict(tensors=tensors)
