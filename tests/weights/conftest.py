from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from tiny_models import ARCHITECTURES
from torch import nn


@pytest.fixture(params=sorted(ARCHITECTURES))
def make_model(request: pytest.FixtureRequest) -> Callable[[], nn.Module]:
    """Makes the same tiny random model each time it is called."""

    def make() -> nn.Module:
        torch.manual_seed(0)
        return ARCHITECTURES[request.param]().eval()

    return make
