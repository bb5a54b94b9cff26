"""What `gpu.py` measures of single layers at a base's widths: one token's attention and a member's
update of a layer, in the ways there are. Microseconds of a call: `us` with the device's work,
`cpu us` until it is handed over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as attend

from azr_population.weights.adapter import LoraSpec
from azr_population.weights.bank import Bank

CALLS = 50


def timed(run: Callable[[], object], wait: Callable[[], None], calls: int = CALLS) -> Any:
    """Of one call; or why there is none."""
    try:
        with torch.inference_mode():
            run()
            wait()
            start = time.perf_counter()
            for _ in range(calls):
                run()
            handed = time.perf_counter() - start
            wait()
            took = time.perf_counter() - start
    except (RuntimeError, AttributeError) as error:  # no such kernel here
        return str(error)[:120]
    return {"us": 1e6 * took / calls, "cpu us": 1e6 * handed / calls}


@contextmanager
def by(backend: SDPBackend) -> Iterator[None]:
    with sdpa_kernel(backend):
        yield


def attention(
    note: Any, shape: tuple[int, int, int, int], width: int, make: Any, wait: Callable[[], None]
) -> None:
    """`shape` is rows, heads, key-value heads, dim. `new us`: each call has another width, as steps
    do. Ours is `efficient` with a mask, `flash` without."""
    rows, heads, kv_heads, dim = shape
    query = make(rows, heads, 1, dim)
    asked = query.view(rows, kv_heads, -1, dim)
    cache = [make(rows, kv_heads, width + CALLS + 16, dim) for _ in "kv"]
    hidden = make(rows, 1, 1, (width + CALLS) // 16 * 16 + 32).zero_()
    hidden[: rows // 2, ..., :9] = -torch.inf

    def products(keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
        scores = (asked * dim**-0.5) @ keys.mT
        scores = scores if mask is None else scores + mask
        return scores.softmax(-1, dtype=torch.float32).to(values.dtype) @ values

    def fused(backend: SDPBackend, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
        with by(backend):
            return attend(asked, keys, values, attn_mask=mask)

    def grouped(keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
        with by(SDPBackend.CUDNN_ATTENTION):
            return attend(query, keys, values, attn_mask=mask, enable_gqa=True)

    ways: dict[str, Any] = {
        "efficient": partial(fused, SDPBackend.EFFICIENT_ATTENTION),
        "flash": partial(fused, SDPBackend.FLASH_ATTENTION),
        "cudnn": partial(fused, SDPBackend.CUDNN_ATTENTION),
        "cudnn, enable_gqa": grouped,
        "products": products,
    }
    for name, way in ways.items():
        for masked in (True, False):

            def call(end: int, way: Any = way, masked: bool = masked) -> None:
                keys, values = (t[:, :, :end] for t in cache)
                way(keys, values, hidden[..., :end] if masked else None)

            figure = timed(partial(call, width), wait)
            if isinstance(figure, dict):
                ends = iter(range(width, width + CALLS))
                slow = timed(lambda ends=ends: call(next(ends)), wait, 9)
                figure["new us"] = slow["us"] if isinstance(slow, dict) else slow
            note(f"attention of a token, {name}, {'mask' if masked else 'no mask'}", figure)


def lora(
    note: Any, widths: tuple[int, int], rows: int, make: Any, wait: Callable[[], None]
) -> None:
    """Rows of one token on a layer of `widths` (in, out) with 8 members of rank 32."""
    members, rank = 8, 32
    each = rows // members
    weight = nn.Parameter(make(widths[1], widths[0]), False)
    layer = nn.Linear(1, 1, bias=False)
    layer.weight, layer.in_features, layer.out_features = weight, *widths
    model = nn.ModuleDict({"layer": layer})
    x, out = make(rows, widths[0]), make(rows, widths[1])
    A, B = make(members, rank, widths[0]), make(members, rank, widths[1])
    flat_A, flat_B = A.flatten(0, 1), B.flatten(0, 1)
    own = torch.eye(members, device=x.device).repeat_interleave(each, 0)
    own = own.repeat_interleave(rank, 1).to(x.dtype)
    ends = torch.arange(1, members + 1, device=x.device, dtype=torch.int32) * each
    slots = torch.arange(rows, device=x.device) // each

    def loop() -> None:
        for member in range(members):
            part = slice(member * each, (member + 1) * each)
            out[part].addmm_(x[part] @ A[member].t(), B[member])

    def grouped() -> None:
        hidden = torch._grouped_mm(x, A.mT, offs=ends)
        out.add_(torch._grouped_mm(hidden, B, offs=ends))

    def batched() -> None:
        hidden = x.view(members, each, -1) @ A.mT
        out.view(members, each, -1).baddbmm_(hidden, B)

    def gathered() -> None:
        hidden = A[slots] @ x.unsqueeze(2)
        out.unsqueeze(1).baddbmm_(hidden.mT, B[slots])

    ways: dict[str, Callable[[], object]] = {
        "base": lambda: x @ weight.t(),
        "one member": lambda: out.addmm_(x @ A[0].t(), B[0]),
        "masked product": lambda: out.addmm_((x @ flat_A.t()).mul_(own), flat_B),
        "loop": loop,
        "bmm, rows in equal parts": batched,
        "grouped_mm": grouped,
        "gathered factors": gathered,
    }
    for name, way in ways.items():
        note(f"lora {widths}, {name}", timed(way, wait))
    bank = Bank(model, LoraSpec(rank, 2.0 * rank, ("layer",)), members)
    once = x.unsqueeze(1)
    for count in (0, 1, 8):
        assigned = [row * count // rows for row in range(rows)] if count else [-1] * rows
        with bank.routed(bank.route(assigned, x.dtype, one_token=True)):
            note(f"lora {widths}, layer with hook, {count}", timed(lambda: layer(once), wait))
