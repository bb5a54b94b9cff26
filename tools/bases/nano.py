"""Makes the embedded base from nothing: its tokenizer, its weights.

    python tools/bases/nano.py FOLDER --minutes 60

Documents are made as they are needed, so that every one is new, and packed into rows: a prompt once
with all its answers, each of which sees the prompt and itself. The deeper a program, the rarer:
what is rare is solved seldom, and self-play can teach it. The tokenizer has marks, pieces of the
operations, a digit with the comma before it, and single characters: a list of n digits is n + 2
tokens. Printable ASCII and newline survive encode and decode.
"""

import argparse
import copy
import json
import re
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from documents import Kind, draw_group, falling, prompts_and_completions
from torch import Tensor

from azr_population.domains.code.formats import MARKS, NanoFormat
from azr_population.domains.code.task_types import Task, TaskType
from azr_population.engines.base_model import fast_cpu_dtype, write_sample

SAMPLE = (
    "<SO>def f(x):\n    k = x[::-1]\n    m = [9 - d for d in k]\n    return m<in>[1, 2, 3]<out>"
    "k=[3, 2, 1]\nm=[6, 7, 8]\n[6, 7, 8]<eos>"
)
"""A base proves itself on this text when loaded; see `base_model.check_sample`."""
PAD, EOS, UNKNOWN = "<pad>", "<eos>", "<unk>"
PIECES = (
    "def f(x):", "\n    ", "    return ", "\n    return ", " = ", "[::-1]", "[1:]", "[:1]", "[-1:]",
    "[:-1]", "[1::-1]", "[:-2] + ", "[:-3:-1]", " = [(d + 3) % 10 for d in ", "[2:]", "[1:-1]",
    " + ", " = [(d + 1) % 10 for d in ", " = [(d + 7) % 10 for d in ", " = [9 - d for d in ",
    " = [d * 3 % 10 for d in ", " + [(d + ", "[0]) % 10 for d in ", "]\n    ", "[1:]]", "=[", "]\n",
    *(f", {digit}" for digit in range(10)),
)  # fmt: skip
CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))
FORMAT = NanoFormat()
_O, _I, _F = TaskType

DEPTHS = 14
_PROPOSED, _FEW = falling(0.82, DEPTHS), falling(0.5, 5)
_EASY = falling(0.35, DEPTHS)
EASY = (
    Kind("propose", _O, 4, _PROPOSED), Kind("propose", _I, 2, _PROPOSED),
    Kind("propose", _F, 1, _FEW), Kind("solve", _O, 90, _EASY, 4), Kind("solve", _I, 3, _EASY, 3),
)  # fmt: skip
"""The first documents: the operations are learned on short programs."""
EASY_SHARE = 0.1
_SOLVED = (0.602, 0.26, 0.10, 0.026, *falling(0.85, DEPTHS - 4, 0.012))
MIX = (
    Kind("propose", _O, 16, _PROPOSED), Kind("propose", _I, 5, _PROPOSED),
    Kind("propose", _F, 3, _FEW), Kind("solve", _O, 65, _SOLVED, 4),
    Kind("solve", _I, 8, _SOLVED, 3), Kind("solve", _F, 3, _FEW),
)  # fmt: skip
WEIGHTS = {_O: 3.0, _I: 2.0, _F: 2.0}
"""Of a token of an answer in the loss; 3 of a proposal's."""
STD = 0.06
"""Of the initial weights. With Qwen2's 0.02, which suits wide models, nothing was learned for a
million tokens."""


class Batch(NamedTuple):
    """Packed rows; (rows, length) each. Padding has weight 0 and document -1."""

    ids: Tensor
    positions: Tensor
    documents: Tensor
    answers: Tensor
    """0 in prompts, else the number of the answer in its document."""
    weights: Tensor
    """Of predicting the token."""


Column = tuple[int, int, int, int, float]


def draw_document(rng: Random, tokenizer: Any, mix: tuple[Kind, ...]) -> list[Column]:
    """(id, position, 0, answer, weight) for each token."""
    return encode(*draw_group(rng, mix), tokenizer)


def encode(phase: str, tasks: list[Task], tokenizer: Any) -> list[Column]:
    """What all prompts of the tasks begin with, then the rest of each prompt with its answer."""
    asked, given = zip(*prompts_and_completions(phase, tasks, FORMAT), strict=True)
    weight = 3.0 if phase == "propose" else WEIGHTS[TaskType(tasks[0].type)]
    prompts, answers = (
        tokenizer(list(texts), add_special_tokens=False)["input_ids"] for texts in (asked, given)
    )
    shared = 0
    while all(p[: shared + 1] == prompts[0][: shared + 1] for p in prompts) and shared < min(
        len(p) - 1 for p in prompts
    ):
        shared += 1
    columns: list[Column] = [(id, n, 0, 0, 0.0) for n, id in enumerate(prompts[0][:shared])]
    for number, (prompt, answer) in enumerate(zip(prompts, answers, strict=True), 1):
        ids = [*prompt, *answer, tokenizer.eos_token_id]
        columns += [
            (ids[n], n, 0, number, weight * (n >= len(prompt))) for n in range(shared, len(ids))
        ]
    return columns


def batches(documents: Iterator[list[Column]], rows: int, length: int) -> Iterator[Batch]:
    """Filled first-fit; what does not fit begins the next batch, and a document that is longer than
    a row is left out."""
    packed: list[list[Column]] = [[] for _ in range(rows)]
    waiting: list[list[Column]] = []
    padding = (0, 0, -1, 0, 0.0)
    for number, document in enumerate(documents):
        if len(document) > length:
            continue
        columns = [(id, place, number, answer, w) for id, place, _, answer, w in document]
        row = next((row for row in packed if len(row) + len(columns) <= length), None)
        if row is not None:
            row += columns
            continue
        waiting.append(columns)
        if len(waiting) == rows:
            filled = [row + [padding] * (length - len(row)) for row in packed]
            yield Batch(*(torch.tensor([[c[n] for c in row] for row in filled]) for n in range(5)))
            packed, waiting = waiting, []


def loss_of(model: Any, batch: Batch) -> Tensor:
    """The weighted mean cross-entropy, in nats."""
    same = batch.documents[:, :, None] == batch.documents[:, None, :]
    theirs = batch.answers[:, None, :]
    allowed = (same & ((theirs == 0) | (theirs == batch.answers[:, :, None]))).tril()
    dtype = fast_cpu_dtype()
    bias = torch.zeros(allowed.shape, dtype=dtype).masked_fill_(~allowed, torch.finfo(dtype).min)
    weights, trained = batch.weights[:, 1:], batch.weights[:, 1:] > 0
    with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
        hidden = model.base_model(
            input_ids=batch.ids,
            position_ids=batch.positions,
            attention_mask=bias[:, None],
            use_cache=False,
        )[0]
        logits = model.get_output_embeddings()(hidden[:, :-1][trained])
    each = F.cross_entropy(logits.float(), batch.ids[:, 1:][trained], reduction="none")
    return (each * weights[trained]).sum() / weights.sum()


def build_tokenizer() -> Any:
    """A `PreTrainedTokenizerFast`, ready for `save_pretrained`."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = dict.fromkeys([PAD, EOS, UNKNOWN, *MARKS, *CHARACTERS, *PIECES])
    vocabulary = {word: position for position, word in enumerate(words)}
    pieces = [re.escape(word) for word in sorted((*MARKS, *PIECES), key=len, reverse=True)]
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    pattern = Regex("|".join([*pieces, r"[\s\S]"]))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(pattern, behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=EOS,
        unk_token=UNKNOWN,
        clean_up_tokenization_spaces=False,
        padding_side="left",
        model_max_length=512,
        model_input_names=["input_ids", "attention_mask"],
    )


def save_tokenizer(tokenizer: Any, folder: Path) -> None:
    """Without its class, by which transformers 5 would take Qwen2's splitting rules."""
    tokenizer.save_pretrained(str(folder))
    file = folder / "tokenizer_config.json"
    fields = json.loads(file.read_text(encoding="utf-8"))
    del fields["tokenizer_class"]
    file.write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")


def new_model(tokenizer: Any, seed: int) -> Any:
    """A fresh `Qwen2ForCausalLM`, float32."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    layers = 6
    config = Qwen2Config(
        vocab_size=-(-len(tokenizer) // 16) * 16,
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=512,
        rope_theta=10_000.0,
        tie_word_embeddings=True,
        initializer_range=STD,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        tokenizer_class="PreTrainedTokenizerFast",
    )
    torch.manual_seed(seed)
    model = Qwen2ForCausalLM(config)
    with torch.no_grad():
        for layer in model.model.layers:
            for module in (layer.self_attn.o_proj, layer.mlp.down_proj):
                module.weight.mul_((2 * layers) ** -0.5)
    return model


def pretrain(
    out: Path, minutes: float, tokens: int = 0, seed: int = 1, rate: float = 4e-3, rows: int = 64,
    length: int = 256, compile: bool = True,
) -> list[dict[str, float]]:  # fmt: skip
    """Trains until the minutes of processor time or the tokens are used up, when the learning rate
    is at zero; writes a folder that the Auto classes load. Returns the curve."""
    tokenizer = build_tokenizer()
    model = new_model(tokenizer, seed)
    if compile:
        model.base_model.compile(dynamic=False)
    progress = 0.0

    def documents() -> Iterator[list[Column]]:
        for number in count():
            rng = Random(f"chains {seed} {number}")
            yield draw_document(rng, tokenizer, EASY if progress < EASY_SHARE else MIX)

    groups = [
        {"params": [p for p in model.parameters() if (p.ndim == 2) is matrix], "weight_decay": wd}
        for matrix, wd in ((True, 0.05), (False, 0.0))
    ]
    optimizer = torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.95), fused=True)
    start, done, curve, window = time.process_time(), 0, [], []
    model.train()
    for step, batch in enumerate(batches(documents(), rows, length), 1):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(step / 100, 1.0 - progress)
        loss = loss_of(model, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        window.append(float(loss.detach()))
        done += int((batch.documents >= 0).sum())
        seconds = time.process_time() - start
        progress = max(seconds / 60 / minutes, done / tokens if tokens else 0.0)
        if step % 100 == 0 or progress >= 1:
            point = {"step": step, "tokens": done, "loss": round(sum(window) / len(window), 4)}
            curve.append(point | {"seconds": round(seconds)})
            print(curve[-1], flush=True)
            window.clear()
        if progress >= 1:
            break
    out.mkdir(parents=True, exist_ok=True)
    half = copy.deepcopy(model).to(torch.bfloat16).eval()
    half.save_pretrained(out)
    save_tokenizer(tokenizer, out)
    write_sample(out, half, tokenizer, SAMPLE)
    facts = {"seed": seed, "rate": rate, "rows": rows, "length": length, "curve": curve,
             "mix": [kind._asdict() for kind in MIX], "torch": torch.__version__}  # fmt: skip
    (out / "build.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    return curve


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=60.0, help="of processor time")
    parser.add_argument("--tokens", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-compile", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    pretrain(args.out, args.minutes, args.tokens, args.seed, compile=not args.no_compile)


if __name__ == "__main__":
    main()
