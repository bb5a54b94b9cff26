"""Makes the embedded base: its tokenizer, its weights from nothing.

    python tools/bases/nano.py FOLDER [--seed 1] [--scale 1.0]

Needs `pip install accelerate`; two hours or more on two cores. The tokenizer has marks, frequent
pieces of Python, numbers up to 99 and single characters: a word-level model behind one regular
expression, so a text has exactly one reading. The numbers 10-99 are one token each (not inside
longer numbers, which are spelt digit by digit): sums of small numbers are then one step. Printable
ASCII and newline survive encode and decode unchanged; any other character becomes `<unk>`.
"""

import argparse
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import torch
from corpus import demonstrations, draw_groups
from train import Demonstrations, save_base, train

from azr_population.domains.code.formats import MARKS, NanoFormat

SAMPLE = (
    "<PO>def f(n):\n    x = 0\n    for i in range(2):\n        x -= i - 7\n"
    "    x = [i + n for i in range(4)]\n    return [i - n for i in range(4)]<in>5<eos>"
)
"""A base proves itself on this text when loaded; see `base_model.check_sample`."""

PAD, EOS, UNKNOWN = "<pad>", "<eos>", "<unk>"

PIECES = (
    "def f(", "):\n    ", ":\n        ", ":\n            ", "\n    ", "\n        ",
    "\n            ", "return ", "else", "while ", "for ", "if ", " for ", " in ", " if ",
    " else ", " for v in ", " for c in ", " for i in range(", "range(", "len(", "sum(", "max(",
    "min(", "abs(", "str(", "sorted(", "''.join(", ".count(", ".find(", ".replace(", ".append(",
    ".insert(0, ", ".reverse()", ".sort()", ".pop()", ".pop(0)", ".upper()", ", reverse=True",
    "[::-1]", "[::2]", "[1:]", "[2:]", "[:2]", "[:3]", "[:-1]", "[0]", "[-1]", "[-2]", "[1]",
    " = ", " += ", " -= ", " *= ", " + ", " - ", " * ", " % ", " // ", " == ", " != ", " > ",
    " < ", " and ", " or ", "not ", "True", "False", "None", ", ", "''", "pass",
)  # fmt: skip

CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))


def vocabulary() -> dict[str, int]:
    """Token text -> id; specials first."""
    numbers = [str(number) for number in range(10, 100)]
    words = [PAD, EOS, UNKNOWN, *MARKS, *CHARACTERS, *numbers, *PIECES]
    return {word: position for position, word in enumerate(dict.fromkeys(words))}


def build_tokenizer() -> Any:
    """A `PreTrainedTokenizerFast`, ready for `save_pretrained`; ids as in `vocabulary`."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    number = r"(?<![0-9])[1-9][0-9](?![0-9])"
    pieces = [re.escape(word) for word in sorted((*MARKS, *PIECES), key=len, reverse=True)]
    pattern = "|".join([*pieces, number, r"[\s\S]"])
    tokenizer = Tokenizer(models.WordLevel(vocabulary(), unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), behavior="isolated")
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


def save_tokenizer(folder: str | Path) -> None:
    """Build it and write tokenizer.json and its configuration into a folder.

    The model's config.json has to name its class: in the tokenizer's own configuration transformers
    5 would read the name, find the base to be a Qwen2 and take Qwen2's splitting rules instead.
    """
    build_tokenizer().save_pretrained(str(folder))
    file = Path(folder) / "tokenizer_config.json"
    fields = json.loads(file.read_text(encoding="utf-8"))
    del fields["tokenizer_class"]
    file.write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Shape:
    """Of the model."""

    hidden: int = 128
    layers: int = 6
    heads: int = 4
    mlp: int = 384


@dataclass(frozen=True)
class Phase:
    """A part of the training, with a new optimizer; `strict` and `tail` as of `draw_groups`."""

    steps: int
    learning_rate: float
    strict: bool = True
    tail: bool = False


PHASES = (
    Phase(6300, 3e-3, strict=False),
    Phase(1400, 1.2e-3),
    Phase(430, 1.2e-3, tail=True),
)
"""First all kinds of programs; then a shorter phase with strictly valid proposals; then a short one
that adds the long tail."""
ROWS, LONGEST, GROUPS = 96, 192, 1000


def new_model(shape: Shape, seed: int) -> Any:
    """A fresh `Qwen2ForCausalLM`, float32."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    tokenizer = build_tokenizer()
    config = Qwen2Config(
        vocab_size=-(-len(tokenizer) // 16) * 16,
        hidden_size=shape.hidden,
        intermediate_size=shape.mlp,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.heads,
        max_position_embeddings=512,
        rope_theta=10_000.0,  # transformers 4 and 5 keep it in different fields
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        tokenizer_class="PreTrainedTokenizerFast",  # see `save_tokenizer`
    )
    torch.manual_seed(seed)
    model = Qwen2ForCausalLM(config)
    # As in GPT-2: the deeper the model, the smaller the first updates of the residual stream.
    with torch.no_grad():
        for layer in model.model.layers:
            for module in (layer.self_attn.o_proj, layer.mlp.down_proj):
                module.weight.mul_((2 * shape.layers) ** -0.5)
    return model


def draw(seed: int, number: int, phase: Phase, chunk: int) -> list[tuple[str, str]]:
    """A chunk of demonstrations. No phase draws a program stream of another one."""
    rng = Random(f"nano corpus {seed} {number} {chunk}")
    groups = draw_groups(rng, GROUPS, strict=phase.strict, tail=phase.tail)
    return list(demonstrations(groups, NanoFormat()))


def build(
    out: Path, seed: int = 1, shape: Shape | None = None, phases: Sequence[Phase] = PHASES
) -> dict[str, Any]:
    """Makes tokenizer and weights; writes a folder that the Auto classes load, with its log in
    `build.json`, and returns that log."""
    out.mkdir(parents=True, exist_ok=True)
    shape = shape or Shape()
    tokenizer, model = build_tokenizer(), new_model(shape, seed)
    logs = []
    for number, phase in enumerate(phases):
        drawn = partial(draw, seed, number, phase)
        examples = Demonstrations(drawn, tokenizer, False, ROWS, LONGEST)
        warm = min(200, phase.steps // 4)
        logs.append(
            train(
                model, examples, out, phase.steps, phase.learning_rate,
                weight_decay=0.05, warmup_steps=warm, seed=seed,
            )
        )  # fmt: skip
    facts = {
        "seed": seed,
        "shape": asdict(shape),
        "torch": torch.__version__,
        "phases": [{**asdict(phase), "log": log} for phase, log in zip(phases, logs, strict=True)],
    }
    save_base(model, tokenizer, out, SAMPLE, "build.json", facts)
    save_tokenizer(out)
    return facts


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1.0, help="factor of the steps, for a trial")
    arguments = parser.parse_args()
    steps = [max(1, round(phase.steps * arguments.scale)) for phase in PHASES]
    phases = [replace(phase, steps=n) for n, phase in zip(steps, PHASES, strict=True)]
    build(arguments.out, arguments.seed, phases=phases)


if __name__ == "__main__":
    main()
