"""Whether a base's completions can share the computation of their prompt.

They share its keys and values while they are sampled (`attention.py`), and the whole of it in
an update (`micro_batches.py`). On a CPU only: GPUs have kernels of their own for either.
"""

from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from azr_population.engines import attention
from azr_population.engines.attention import is_strided
from azr_population.engines.engine import Completion, TrainingSample
from azr_population.engines.micro_batches import PromptGroup, collate
from azr_population.engines.sharding import is_shared_out

_TOLERANCE = {torch.float32: 1e-3, torch.float16: 0.1, torch.bfloat16: 0.5}
"""Nats by which log-probabilities may differ for rounding; a token unseen changes far more."""

_proved: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()


def shares_prompts(model: Any) -> bool:
    """Whether it does; a base is tried on a few tokens when it is first asked for."""
    if model not in _proved:
        _proved[model] = (
            is_strided(model)
            and attention.has_kernel()
            # Its weights can be gathered for passes that all ranks make, and not in this mode.
            and not is_shared_out(model)
            and attention.attends_to_all(model.config)
            and _agrees(model)
        )
    return _proved[model]


@torch.inference_mode()
def _agrees(model: Any) -> bool:
    """Whether completions that share a prompt get the log-probabilities that they get alone."""
    from azr_population.engines.kv_cache import GrowingCache

    weight = next(model.parameters())
    ids = torch.arange(5, 17) % model.config.get_text_config().vocab_size
    prompt, answers = ids[:6].to(weight.device), ids[6:].view(2, 3).to(weight.device)
    rows = torch.cat([prompt.expand(2, -1), answers], dim=1)
    alone = _log_probs(model, input_ids=rows)[:, 5:]

    samples = tuple(
        TrainingSample(Completion(0, tuple(prompt.tolist()), tuple(answer), (0.0,) * 3, True), 1.0)
        for answer in answers.tolist()
    )
    batch = collate([PromptGroup(samples)], weight.device, share=True)
    laid_out = _log_probs(
        model,
        input_ids=batch.input_ids,
        attention_mask=batch.mask,
        position_ids=batch.positions,
    )
    together = laid_out[0, 5:].view(2, 4, -1)

    prompts, cache = GrowingCache(6), GrowingCache(3)
    first = _log_probs(model, input_ids=prompt[None], past_key_values=prompts, use_cache=True)
    prefix = prompts.as_prefix(torch.ones_like(prompt[None]), 2)
    written = [first[:, -1].expand(2, -1)]
    for column in range(3):
        with prefix.attended():
            logprobs = _log_probs(
                model,
                input_ids=answers[:, column, None],
                position_ids=torch.full_like(answers[:, :1], 6 + column),
                past_key_values=cache,
                use_cache=True,
            )
        written.append(logprobs[:, -1])
    off = max(
        float((other - alone).abs().max()) for other in (together, torch.stack(written, dim=1))
    )
    # NaN is no agreement.
    return off <= _TOLERANCE[weight.dtype]


def _log_probs(model: Any, **arguments: Any) -> Tensor:
    logits: Tensor = model(**arguments).logits
    return torch.log_softmax(logits.float(), dim=-1)
