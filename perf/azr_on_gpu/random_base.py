"""A base of one of the shapes of perf/drawn.py with random weights, and a tokenizer trained on
AZR's prompts and seeds: AZR_HOME=... python perf/azr_on_gpu/random_base.py SHAPE FOLDER"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch
from transformers import AutoTokenizer

HERE = Path(__file__).resolve()


def main(shape: str, folder: Path) -> None:
    """Writes the base: 15 GB at 7B's shapes."""
    sys.path[:0] = [str(HERE.parents[1]), str(HERE.parents[2] / "examples")]
    from drawn import described, drawn
    from tiny_base import save_tiny_base

    home = Path(os.environ["AZR_HOME"])
    seeds = [(home / f"data/7b_coder_{kind}seed_io.jsonl").read_text() for kind in ("", "code_f_")]
    prompts = (home / "absolute_zero_reasoner/data_construction/prompts.py").read_text()
    # Its weights are replaced; the tokenizer stays.
    save_tiny_base(folder, [*seeds, *[prompts] * 20], 3000)
    (folder / "model.safetensors").unlink()
    tokenizer, config = AutoTokenizer.from_pretrained(folder), described(shape)
    config.vocab_size = max(config.vocab_size, len(tokenizer))
    config.eos_token_id, config.pad_token_id = tokenizer.eos_token_id, tokenizer.pad_token_id
    on_gpu = torch.cuda.is_available()
    model = drawn(config, torch.bfloat16, "cuda" if on_gpu else "cpu")
    model.save_pretrained(folder, max_shard_size="4GB")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
