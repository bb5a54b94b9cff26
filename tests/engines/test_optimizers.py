import pytest
import torch

from azr_population.engines.optimizers import OPTIMIZERS, moments


def test_lion_steps_by_the_sign_of_its_mean_and_decays_weights():
    weight = torch.nn.Parameter(torch.tensor([1.0, -1.0, 2.0]))
    optimizer = OPTIMIZERS.find("lion").function([weight], lr=0.0, weight_decay=0.5)
    optimizer.param_groups[0]["lr"] = 0.1
    weight.grad = torch.tensor([3.0, -1e-6, 0.0])
    optimizer.step()
    assert weight.tolist() == pytest.approx([0.95 - 0.1, -0.95 + 0.1, 1.9])
    weight.grad = torch.tensor([-0.01, 0.0, 0.0])  # against a mean of .03: the mean decides
    optimizer.step()
    assert weight[0].item() == pytest.approx(0.85 * 0.95 - 0.1)


def test_moments_are_counted_not_known():
    assert moments("adamw") == ("AdamW", 2)
    assert moments("lion") == ("Lion", 1)
