"""The embedded base model: its corpus, tokenizer, pre-training, acceptance, eval and weights."""

from pathlib import Path


def nano_base_path() -> Path:
    """The folder with the weights that ship with the package."""
    return Path(__file__).resolve().parent / "weights"
