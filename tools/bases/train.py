"""Supervised training of all of a base's weights, by transformers' Trainer. It needs accelerate."""

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import torch
from torch.utils.data import IterableDataset
from transformers import DataCollatorForSeq2Seq, Trainer, TrainingArguments

from azr_population.engines import text
from azr_population.engines.base_model import fast_cpu_dtype, write_sample
from azr_population.errors import UserError

Draw = Callable[[int], Iterable[tuple[str, str]]]
"""(prompt, completion) pairs of a chunk; the same for the same number."""


class Demonstrations(IterableDataset[dict[str, list[int]]]):
    """Tokens without end, in the order of batches of `rows` about equally long rows.

    Prompts carry no loss. Pairs of more than `longest` tokens are left out. Raises UserError: all
    pairs of a chunk are longer.
    """

    def __init__(self, draw: Draw, tokenizer: Any, chat: bool, rows: int, longest: int) -> None:
        self.draw, self.tokenizer, self.chat = draw, tokenizer, chat
        self.rows, self.longest = rows, longest

    def __iter__(self) -> Iterator[dict[str, list[int]]]:
        for chunk in count():
            encoded = sorted(self._encoded(chunk), key=lambda row: len(row["input_ids"]))
            if not encoded:
                raise UserError(
                    f"no example fits into {self.longest} tokens; use --prompt-format short, or a "
                    "base with a shorter chat template",
                    key="--prompt-format",
                )
            starts = list(range(0, len(encoded) - self.rows + 1, self.rows)) or [0]
            Random(chunk).shuffle(starts)
            for start in starts:
                yield from encoded[start : start + self.rows]

    def _encoded(self, chunk: int) -> Iterator[dict[str, list[int]]]:
        prompts, completions = zip(*self.draw(chunk), strict=True)
        asked = text.encode(self.tokenizer, list(prompts), self.chat)
        answers = self.tokenizer(list(completions), add_special_tokens=False)["input_ids"]
        for prompt, answer in zip(asked, answers, strict=True):
            ids = [*prompt, *answer, self.tokenizer.eos_token_id]
            labels = [-100] * len(prompt) + ids[len(prompt) :]
            if len(ids) <= self.longest:
                yield {"input_ids": ids, "attention_mask": [1] * len(ids), "labels": labels}


def train(
    model: Any,
    examples: Demonstrations,
    out: Path,
    steps: int,
    learning_rate: float,
    **options: Any,
) -> list[dict[str, float]]:
    """Trains `steps` batches, on a GPU where there is one, and returns the Trainer's log. `options`
    are TrainingArguments."""
    cpu = not torch.cuda.is_available()
    arguments = TrainingArguments(
        output_dir=str(out),
        max_steps=steps,
        per_device_train_batch_size=examples.rows,
        learning_rate=learning_rate,
        adam_beta2=0.95,
        lr_scheduler_type="linear",
        use_cpu=cpu,
        bf16=not cpu or fast_cpu_dtype() == torch.bfloat16,
        logging_steps=max(1, steps // 50),
        save_strategy="no",
        report_to=[],
        dataloader_num_workers=1,  # the next examples are made in a process of their own
        dataloader_pin_memory=not cpu,
        remove_unused_columns=False,
        **options,
    )
    collator = DataCollatorForSeq2Seq(examples.tokenizer)
    trainer: Any = Trainer(model, arguments, data_collator=collator, train_dataset=examples)
    trainer.train()
    log: list[dict[str, float]] = trainer.state.log_history
    return log


def save_base(
    model: Any, tokenizer: Any, out: Path, sample: str, log: str, facts: dict[str, Any]
) -> None:
    """Writes bfloat16 weights, the tokenizer, a sample of text to check them by, and the facts."""
    half = model.to("cpu", torch.bfloat16).eval()
    half.save_pretrained(out)
    tokenizer.save_pretrained(out)
    write_sample(out, half, tokenizer, sample)
    (out / log).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
