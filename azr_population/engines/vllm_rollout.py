"""The rollout by vLLM: one engine in this process serves all members in mixed batches.

A member that changes is pushed as a new adapter: new name, number and path, the old version removed
first, the prefix cache reset before the next token. Rows of the bare base are served as an adapter
of zeros: on a CPU vLLM's kernels take the index of "no adapter", -1, for that of the last one.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import torch
from torch import nn

from azr_population.engines import vllm_versions as versions
from azr_population.engines.base_folder import rope_overrides
from azr_population.engines.engine import (
    NO_ADAPTER,
    Completion,
    EngineSettings,
    Finished,
    Ids,
    PromptBatch,
    Rollout,
    Sampling,
)
from azr_population.errors import UserError, first_line
from azr_population.weights.adapter import Adapter
from azr_population.weights.bank import Bank
from azr_population.weights.peft_folder import save_adapter

_SHARED_MEMORY = Path("/dev/shm")
_NUMBERS = count()
"""Numbers of requests: vLLM takes no name twice, also after a call that was abandoned."""


class VllmRollout(Rollout):
    """Serves the members of an engine with these settings, whose base is a folder.

    Adapters are handed over as PEFT folders, which vLLM reads once. Raises UserError for what vLLM
    cannot serve.
    """

    own_weights = True

    def __init__(self, settings: EngineSettings, stop_ids: frozenset[int]) -> None:
        from transformers import AutoConfig

        on_gpu = settings.device.startswith("cuda")
        versions.set_environment(on_gpu)
        self._base = settings.base
        self._stop_ids = sorted(stop_ids)
        self._requests: dict[int, Any] = {}
        self._pushed = 0
        self._stale_prefixes = False
        # A member is written there during its push.
        roomy = _SHARED_MEMORY.is_dir() and shutil.disk_usage(_SHARED_MEMORY).free > 2e9
        self._folder = tempfile.TemporaryDirectory(
            prefix="azr_population_", dir=_SHARED_MEMORY if roomy else None
        )
        arguments = {
            "model": self._base,
            "dtype": settings.dtype,
            "skip_tokenizer_init": True,
            "enable_lora": True,
            # One more for the base. With fewer than there are members, adding one drops another.
            "max_loras": settings.slots + 1,
            "max_cpu_loras": settings.slots + 1,
            "max_lora_rank": versions.lora_rank(settings.lora.rank),
            **versions.engine_arguments(on_gpu),
            # vLLM reads the base by itself, with the installed transformers.
            "hf_overrides": rope_overrides(
                AutoConfig.from_pretrained(self._base, trust_remote_code=False), Path(self._base)
            ),
            **settings.vllm,
        }
        self.llm = versions.make_llm(arguments, on_gpu)
        self.longest = int(self.llm.llm_engine.model_config.max_model_len)
        self._sleeps = bool(arguments.get("enable_sleep_mode"))

    @classmethod
    def check(cls, rank: int) -> None:
        """See `Rollout`. Raises UserError: no vLLM, one that is too old, or too high a rank."""
        versions.version()
        versions.warn_untested()
        versions.lora_rank(rank)

    @classmethod
    def make(
        cls, model: nn.Module, bank: Bank, stop_ids: frozenset[int], settings: EngineSettings
    ) -> VllmRollout:
        return cls(settings, stop_ids)

    def stream(self, batch: PromptBatch, sampling: Sampling, seed: int) -> Iterator[list[Finished]]:
        """See `Sampler`. The same seed draws the same, up to rounding, which depends on the batch.
        vLLM's engine before V1 gives log-probabilities after temperature and top-p.
        Raises UserError: a prompt leaves no room for an answer."""
        prompts, slots = batch.prompts, batch.slots
        longest = max((len(prompt) for prompt in prompts), default=0)
        if self.longest and longest >= self.longest:
            raise UserError(
                f"a prompt of {longest} tokens leaves no room in vLLM's max_model_len of "
                f"{self.longest}; raise it, or make prompts shorter"
            )
        if self._stale_prefixes:
            self.llm.reset_prefix_cache()
            self._stale_prefixes = False
        engine, limits = self.llm.llm_engine, sampling.limits(len(prompts))
        if engine.has_unfinished_requests():
            raise RuntimeError("vLLM takes one call after another; read or close the last one")
        rows: dict[str, int] = {}
        try:
            for row, number in enumerate(batch.numbers):
                parameters = versions.sampling_params(
                    n=sampling.n,
                    temperature=sampling.temperature,
                    top_p=sampling.top_p if sampling.temperature else 1.0,
                    max_tokens=limits[row],
                    stop_token_ids=self._stop_ids,
                    # A row's samples count on from its seed.
                    seed=(seed + number * sampling.n) % 2**62,
                )
                prompt, adapter = {"prompt_token_ids": list(prompts[row])}, slots[row]
                name = f"request_{next(_NUMBERS)}"
                engine.add_request(name, prompt, parameters, lora_request=self._requests[adapter])
                rows[name] = row
            while rows and engine.has_unfinished_requests():
                done = (out for out in engine.step() if out.finished)
                ended = {rows.pop(out.request_id): out.outputs for out in done}
                if ended:
                    yield [
                        (
                            row,
                            [self._completion(slots[row], prompts[row], each) for each in samples],
                        )
                        for row, samples in ended.items()
                    ]
        finally:
            # Nobody reads them any more, and the engine would go on with them in the next call.
            if rows:
                engine.abort_request(list(rows))

    def push(self, slot: int, adapter: Adapter) -> None:
        """See `Rollout`. Raises UserError: vLLM refuses the adapter, or has dropped another
        member's for it."""
        if NO_ADAPTER not in self._requests and slot != NO_ADAPTER:
            self.push(NO_ADAPTER, adapter.map(torch.zeros_like))
        self._pushed += 1
        name = f"slot_{slot}_version_{self._pushed}"
        path = Path(self._folder.name) / name
        save_adapter(adapter, path, self._base)
        old = self._requests.pop(slot, None)
        if old is not None:
            self.llm.llm_engine.remove_lora(old.lora_int_id)
        request = versions.lora_request(name, self._pushed, str(path))
        try:
            self.llm.llm_engine.add_lora(request)
        except (ValueError, RuntimeError) as error:
            reason = first_line(error)
            raise UserError(f"vLLM refuses the adapter of slot {slot}: {reason}") from error
        finally:
            # vLLM has a copy of its own; there is room for all, so it reads none twice.
            shutil.rmtree(path)
        self._requests[slot] = request
        self._stale_prefixes = True
        held = set(self.llm.llm_engine.list_loras())
        if lost := [slot for slot, it in self._requests.items() if it.lora_int_id not in held]:
            raise UserError(
                f"vLLM has dropped the adapter of slot {lost[0]}; it needs max_loras and "
                f"max_cpu_loras of at least {len(self._requests)}: leave them to us"
            )

    def close(self) -> None:
        from vllm.distributed import cleanup_dist_env_and_memory

        del self.llm
        cleanup_dist_env_and_memory()
        self._folder.cleanup()

    @contextmanager
    def asleep(self) -> Iterator[None]:
        """See `Rollout`. Sleep level 1: the weights wait in the host's memory, the cache goes."""
        if not self._sleeps:
            yield
            return
        self.llm.sleep(level=1)
        try:
            yield
        finally:
            # What torch keeps for its next tensors is not there for vLLM to map its weights in.
            torch.cuda.empty_cache()
            self.llm.wake_up()
            self._stale_prefixes = True

    def _completion(self, slot: int, prompt: Ids, output: Any) -> Completion:
        ids = tuple(output.token_ids)
        logprobs = zip(ids, output.logprobs, strict=True)
        return Completion(
            slot=slot,
            prompt_ids=tuple(prompt),
            token_ids=ids,
            logprobs=tuple(float(each[token].logprob) for token, each in logprobs),
            finished=bool(ids) and ids[-1] in self._stop_ids,
        )
