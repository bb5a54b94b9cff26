"""What samples inside AZR, and how vLLM is set up: by the user's own command, as in stock AZR."""

from typing import Any

from omegaconf import OmegaConf

from azr_population.config.inside_azr import PopulationSettings
from azr_population.engines.assembly import resolve
from azr_population.engines.rollouts import RolloutSettings

TAKEN = ("max_num_batched_tokens", "max_num_seqs", "enforce_eager", "max_model_len")
ON_GPUS = ("gpu_memory_utilization", "enable_chunked_prefill")
"""Of actor_rollout_ref.rollout; on a CPU vLLM knows no share of the GPU, and 0.8.5 no chunks."""


def rollout_settings(config: Any, settings: PopulationSettings) -> RolloutSettings:
    """Of the workers of an AZR run with this configuration."""
    device = OmegaConf.select(config, "trainer.device", default="cuda")
    name = resolve(settings.rollout, device)
    return RolloutSettings(
        name,
        settings.generate_batch_size,
        settings.generate_tokens,
        vllm_options(config, device) if name == "vllm" else {},
    )


def vllm_options(config: Any, device: str) -> dict[str, Any]:
    """Arguments of `vllm.LLM` from `actor_rollout_ref.rollout`, `engine_kwargs.vllm` the last.

    As in veRL, a context is as long as a prompt and a response where nobody gave its length.
    """
    rollout = OmegaConf.to_container(config.actor_rollout_ref.rollout, resolve=True)
    assert isinstance(rollout, dict)
    taken = TAKEN + (ON_GPUS if device == "cuda" else ())
    options = {key: rollout[key] for key in taken if rollout.get(key) is not None}
    if device == "cuda" and (rollout.get("tensor_model_parallel_size") or 1) > 1:
        options["tensor_parallel_size"] = rollout["tensor_model_parallel_size"]
    options.setdefault(
        "max_model_len", config.data.max_prompt_length + config.data.max_response_length
    )
    given = (rollout.get("engine_kwargs") or {}).get("vllm") or {}
    return options | {key: value for key, value in given.items() if value is not None}
