"""The training forward of a Qwen2 model, written out for packed rows on a CPU.

Same weights and same logits as `Qwen2ForCausalLM` (a test compares them). Written out because the
library's attention is slow on a CPU for short rows in bfloat16, and because in one graph
`torch.compile` fuses the element-wise work, which is most of the time at this size. Not covered:
grouped key/value heads, sliding windows, caches.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def rotary_table(length: int, head_size: int, theta: float) -> tuple[Tensor, Tensor]:
    """cos and sin of the rotary angles, each (length, head_size), float32."""
    frequencies = theta ** (-torch.arange(0, head_size, 2, dtype=torch.float32) / head_size)
    angles = torch.arange(length, dtype=torch.float32)[:, None] * frequencies
    angles = torch.cat([angles, angles], dim=-1)
    return angles.cos(), angles.sin()


def may_attend(documents: Tensor, branches: Tensor) -> Tensor:
    """(B, L, L) bool: position i reads j when j is not later, of the same document, and in branch 0
    or in i's own branch."""
    length = documents.shape[1]
    earlier = torch.ones(length, length, dtype=torch.bool).tril()
    same = documents[:, :, None] == documents[:, None, :]
    theirs = branches[:, None, :]
    return earlier & same & ((theirs == 0) | (theirs == branches[:, :, None]))


def logits(
    model: Any,
    ids: Tensor,
    positions: Tensor,
    allowed: Tensor,
    table: tuple[Tensor, Tensor],
    dtype: torch.dtype,
) -> Tensor:
    """(B, L, vocabulary) float32 for ids and positions (B, L) and allowed (B, L, L) bool.

    Matrix products run in `dtype`; the residual stream, norms and softmax in float32.
    """
    config = model.config
    heads = config.num_attention_heads
    size = config.hidden_size // heads
    batch, length = ids.shape
    cos, sin = (part[positions][:, None] for part in table)
    bias = torch.where(allowed, 0.0, -1e9)[:, None]

    def norm(x: Tensor, weight: Tensor) -> Tensor:
        scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + config.rms_norm_eps)
        return (x * scale * weight).to(dtype)

    def turn(x: Tensor) -> Tensor:
        left, right = x.float().chunk(2, dim=-1)
        x = torch.cat([left, right], dim=-1)
        return (x * cos + torch.cat([-right, left], dim=-1) * sin).to(dtype)

    x = model.model.embed_tokens.weight[ids]
    for layer in model.model.layers:
        attention, mlp = layer.self_attn, layer.mlp
        projections = (attention.q_proj, attention.k_proj, attention.v_proj)
        weight = torch.cat([part.weight for part in projections]).to(dtype)
        offset = torch.cat([part.bias for part in projections]).to(dtype)
        joint = F.linear(norm(x, layer.input_layernorm.weight), weight, offset)
        query, key, value = joint.view(batch, length, 3, heads, size).permute(2, 0, 3, 1, 4)
        scores = (turn(query) @ turn(key).transpose(-1, -2)).float() * size**-0.5 + bias
        mixed = (scores.softmax(-1).to(dtype) @ value).transpose(1, 2).reshape(batch, length, -1)
        x = x + F.linear(mixed, attention.o_proj.weight.to(dtype)).float()
        y = norm(x, layer.post_attention_layernorm.weight)
        gate = F.silu(F.linear(y, mlp.gate_proj.weight.to(dtype)))
        y = gate * F.linear(y, mlp.up_proj.weight.to(dtype))
        x = x + F.linear(y, mlp.down_proj.weight.to(dtype)).float()
    y = norm(x, model.model.norm.weight)
    return F.linear(y, model.lm_head.weight.to(dtype)).float()
