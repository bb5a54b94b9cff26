import pytest

from azr_population.engines.assembly import importance_sampling_cap


@pytest.mark.parametrize(
    ("setting", "rollout", "dtype", "cap"),
    [
        (None, "torch", "float32", 0.0),
        (None, "torch", "bfloat16", 2.0),
        (None, "vllm", "float32", 2.0),
        (0.0, "vllm", "bfloat16", 0.0),
        (5.0, "torch", "float32", 5.0),
    ],
)
def test_a_sampler_that_is_not_quite_the_learner_is_corrected_for(setting, rollout, dtype, cap):
    assert importance_sampling_cap(setting, rollout, dtype) == cap
