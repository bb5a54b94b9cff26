import pytest
import torch
from tiny_models import ARCHITECTURES


@pytest.fixture(params=sorted(ARCHITECTURES))
def make_model(request):
    """Makes the same tiny random model each time it is called."""

    def make():
        torch.manual_seed(0)
        return ARCHITECTURES[request.param]().eval()

    return make
