"""An operator, and a callback with a metric, in a package of their own:

pip install ./examples/plugin
azr-population train evolution.operators.forget_layer=1 'callbacks=[lines]'
"""

import torch

from azr_population import Adapter, Callback, Factors, Metric, operator


@operator(parents=1)
def forget_layer(parents, generator):
    """The parent without its update of one layer, which is drawn."""
    (parent,) = parents
    layers = list(parent.factors)
    drawn = layers[int(torch.randint(len(layers), (), generator=generator))]
    factors = {
        name: Factors(pair.A, pair.B * (name != drawn)) for name, pair in parent.factors.items()
    }
    return Adapter(parent.spec, factors)


class Lines(Callback):
    """Measures how long the programs of a step are."""

    metrics = (Metric("lines", "Lines of a program", "of valid tasks", "lines", roles=(),
                      section="complexity"),)  # fmt: skip

    def recorded(self, population, proposals, records):
        lines = [len(proposal.task.program.splitlines()) for proposal in proposals if proposal.task]
        if lines:
            records.metrics["lines"] = sum(lines) / len(lines)
