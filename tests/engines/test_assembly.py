import pytest

from azr_population.config.schema import LearnerConfig
from azr_population.engines.assembly import EngineSettings, importance_sampling_cap
from azr_population.engines.rollouts import RolloutSettings
from azr_population.weights.adapter import LoraSpec


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
    settings = EngineSettings(
        "base",
        ("student_0",),
        LoraSpec(4, 8.0),
        dtype=dtype,
        rollout=RolloutSettings(rollout),
        learner=LearnerConfig(importance_sampling_cap=setting),
    )
    assert importance_sampling_cap(settings) == cap
