"""vLLM inside AZR is set up by the user's command, but for what only stock AZR's actor needs."""

import pytest
from omegaconf import OmegaConf

from azr_population.config.inside_azr import PopulationSettings
from azr_population.hosts.azr.settings import as_typed, engine_settings, vllm_options

ROLLOUT = {
    "name": "vllm", "dtype": "bfloat16", "load_format": "dummy_dtensor", "max_model_len": None,
    "gpu_memory_utilization": 0.4, "enforce_eager": False, "enable_chunked_prefill": True,
    "max_num_batched_tokens": 16_384, "max_num_seqs": 256, "tensor_model_parallel_size": 2,
    "free_cache_engine": True,
    "engine_kwargs": {
        "vllm": {"swap_space": None, "disable_mm_preprocessor_cache": False, "block_size": 32}
    },
}  # fmt: skip
TAKEN = {
    "enforce_eager": False, "max_num_batched_tokens": 16_384, "max_num_seqs": 256,
    "max_model_len": 14_240, "block_size": 32,
}  # fmt: skip


def command(device, **rollout):
    return OmegaConf.create({
        "trainer": {"device": device},
        "data": {"max_prompt_length": 6144, "max_response_length": 8096},
        "actor_rollout_ref": {"rollout": ROLLOUT | rollout, "model": {"path": "base"}, "actor": {}},
    })  # fmt: skip


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_commands_settings_are_taken(device):
    on_gpus = {
        "gpu_memory_utilization": 0.4,
        "enable_chunked_prefill": True,
        "tensor_parallel_size": 2,
    }
    assert vllm_options(command(device), device) == TAKEN | (on_gpus if device == "cuda" else {})


def test_a_length_that_was_given_is_the_context_and_engine_kwargs_are_the_last():
    config = command("cpu", max_model_len=2048, engine_kwargs={"vllm": {"max_num_seqs": 8}})
    options = vllm_options(config, "cpu")
    assert options["max_model_len"] == 2048 and options["max_num_seqs"] == 8


def test_the_learner_has_the_actors_limits():
    config = command("cpu")
    config.actor_rollout_ref.actor = {"grad_clip": 0.3, "optim": {"weight_decay": 0.1}}
    learner = engine_settings(config, PopulationSettings()).learner
    assert (learner.max_grad_norm, learner.weight_decay) == (0.3, 0.1)


def test_azrs_tensor_parallelism_is_ours_on_gpus():
    settings = PopulationSettings(rollout="vllm")
    assert engine_settings(command("cuda"), settings).tensor_parallel_size == 2
    assert (
        engine_settings(
            command("cuda", tensor_model_parallel_size=1), settings
        ).tensor_parallel_size
        == 1
    )
    config = command("cuda", engine_kwargs={"vllm": {"tensor_parallel_size": 4}})
    assert engine_settings(config, settings).tensor_parallel_size == 4
    assert engine_settings(command("cpu"), settings).tensor_parallel_size == 1


def test_auto_is_vllm_on_gpus_and_torch_on_cpus():
    names = {device: engine_settings(command(device), PopulationSettings()).rollout
             for device in ("cpu", "cuda")}  # fmt: skip
    assert names == {"cpu": "torch", "cuda": "vllm"}


@pytest.mark.parametrize(
    ("local", "typed"),
    [
        ("engine.rollout=vlm is unknown", "population.rollout=vlm is unknown"),
        ("engine.optimizer=adam", "population.optimizer=adam"),
        ("raise base.lora.rank to 8", "raise population.lora.rank to 8"),
        ("base.path=x has no", "actor_rollout_ref.model.path=x has no"),
        ("evolution.interval=0", "population.evolution.interval=0"),
        ("run.dir=x is not empty", "population.run_dir=x is not empty"),
        ("my.base.path and engine.rollouts", "my.base.path and engine.rollouts"),
    ],
)
def test_messages_name_the_keys_that_azrs_command_takes(local, typed):
    assert as_typed(local) == typed
