"""Micro-batches: which rows go through the model together and on which rank, and their layout.

By default each sample of an update has a row, padded on the right. If the base allows it
(`shared_prefix.py`), the completions of one prompt follow it in a unit, and a row has several
units, so that a prompt is computed once and there is little padding:

    prompt without its last token | its last token, completion | its last token, completion | ...

A completion attends to its prompt and itself, at the same positions as in a separate row.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from azr_population.engines.engine import NO_ADAPTER, Ids, TrainingSample

_WIDTH = 96
"""Tokens of a row that takes several units: attention costs more in longer ones, padding is more
in shorter ones."""


@dataclass(frozen=True)
class MicroBatch:
    """Rows that go through the model at once; shapes [rows, width] where no other is given."""

    input_ids: Tensor
    mask: Tensor
    """0 for padding; or bool [rows, 1, width, width]: whether a token (third) sees another."""
    completion: Tensor
    """True where `input_ids` is a token of a completion."""
    old_logprobs: Tensor
    advantages: Tensor
    positions: Tensor | None = None
    """None: a row's tokens count from its start."""


@dataclass(frozen=True)
class PromptGroup:
    """Samples of one prompt, which stand behind it once."""

    samples: tuple[TrainingSample, ...]

    @property
    def prompt(self) -> Ids:
        """Of all its samples."""
        return self.samples[0].completion.prompt_ids

    @property
    def tokens(self) -> int:
        """As it is laid out."""
        return len(self.prompt) - 1 + sum(map(_own_tokens, self.samples))


def length(sample: TrainingSample) -> int:
    """Tokens of prompt and completion."""
    return len(sample.completion.prompt_ids) + len(sample.completion.token_ids)


def pieces(
    samples: Sequence[TrainingSample], max_tokens: int, share: bool = False
) -> Iterator[list[PromptGroup]]:
    """Units of like size together, at most `max_tokens` (at least one unit): with padding where
    nothing is shared, without what little there is of it where prompts are.

    Some of these pieces, put together and cut again, give the same pieces.
    """
    if share:
        units = sorted(_units(samples, max_tokens), key=lambda unit: (unit.tokens, unit.prompt))
    else:
        units = [PromptGroup((sample,)) for sample in sorted(samples, key=length)]
    piece: list[PromptGroup] = []
    taken = 0
    for unit in units:
        taken = taken + unit.tokens if share else (len(piece) + 1) * unit.tokens
        if piece and taken > max_tokens:
            yield piece
            piece, taken = [], unit.tokens
        piece.append(unit)
    if piece:
        yield piece


def collate(piece: Sequence[PromptGroup], device: torch.device, share: bool = False) -> MicroBatch:
    """The piece as a batch; with `share` several units in a row."""
    rows = _rows(piece) if share else [[unit] for unit in piece]
    shape = (len(rows), max(sum(unit.tokens for unit in row) for row in rows))
    input_ids = torch.zeros(shape, dtype=torch.long)
    completion = torch.zeros(shape, dtype=torch.bool)
    old_logprobs, advantages = torch.zeros(shape), torch.zeros(shape)
    positions = torch.zeros(shape, dtype=torch.long)
    # Of each token the segment that it is in, and the one that this one stands behind.
    segment = torch.zeros(shape, dtype=torch.long)
    before = torch.zeros(shape, dtype=torch.long)
    for row, units in enumerate(rows):
        end, segments = 0, 0
        for unit in units:
            shared = len(unit.prompt) - 1
            start, end = end, end + shared
            segments += 1
            root = segments
            input_ids[row, start:end] = torch.tensor(unit.prompt[:-1], dtype=torch.long)
            positions[row, start:end] = torch.arange(shared)
            segment[row, start:end] = before[row, start:end] = root
            for sample in unit.samples:
                start, end = end, end + _own_tokens(sample)
                segments += 1
                done = sample.completion
                input_ids[row, start:end] = torch.tensor([unit.prompt[-1], *done.token_ids])
                positions[row, start:end] = torch.arange(shared, shared + end - start)
                segment[row, start:end], before[row, start:end] = segments, root
                completion[row, start + 1 : end] = True
                old_logprobs[row, start + 1 : end] = torch.tensor(done.logprobs)
                advantages[row, start + 1 : end] = sample.advantage
    mask = _sees(segment, before) if share else (segment > 0).long()
    tensors = (input_ids, mask, completion, old_logprobs, advantages)
    placed = MicroBatch(*(tensor.to(device) for tensor in tensors))
    return replace(placed, positions=positions.to(device)) if share else placed


def nothing(device: torch.device) -> MicroBatch:
    """A batch to compute along with other ranks' last ones; nothing is learned from it."""
    ids = torch.zeros(1, 2, dtype=torch.long)
    completion = torch.tensor([[False, True]])
    tensors = (ids, torch.ones_like(ids), completion, torch.zeros(1, 2), torch.zeros(1, 2))
    return MicroBatch(*(tensor.to(device) for tensor in tensors))


def _own_tokens(sample: TrainingSample) -> int:
    return 1 + len(sample.completion.token_ids)


def _units(samples: Sequence[TrainingSample], max_tokens: int) -> Iterator[PromptGroup]:
    """The samples by prompt, cut where a unit would have more than `max_tokens`, or be so much
    longer than its prompt that what attention costs more exceeds what is shared."""
    groups: dict[Ids, list[TrainingSample]] = {}
    # Ties by content, so that what was cut before is cut alike again.
    for sample in sorted(samples, key=lambda each: (_own_tokens(each), each.completion.token_ids)):
        groups.setdefault(sample.completion.prompt_ids, []).append(sample)
    for prompt, group in groups.items():
        most = min(max_tokens, max(_WIDTH, 3 * len(prompt)))
        start, tokens = 0, len(prompt) - 1
        for number, sample in enumerate(group):
            if number > start and tokens + _own_tokens(sample) > most:
                yield PromptGroup(tuple(group[start:number]))
                start, tokens = number, len(prompt) - 1
            tokens += _own_tokens(sample)
        yield PromptGroup(tuple(group[start:]))


def _rows(piece: Sequence[PromptGroup]) -> list[list[PromptGroup]]:
    """The units in rows of `_WIDTH` tokens or the longest one's; each in the first with room."""
    width = max(_WIDTH, *(unit.tokens for unit in piece))
    rows: list[list[PromptGroup]] = []
    room: list[int] = []
    for unit in sorted(piece, key=lambda unit: -unit.tokens):
        row = next((i for i, left in enumerate(room) if left >= unit.tokens), len(rows))
        if row == len(rows):
            rows.append([])
            room.append(width)
        rows[row].append(unit)
        room[row] -= unit.tokens
    return rows


def _sees(segment: Tensor, before: Tensor) -> Tensor:
    """[rows, 1, width, width]: a token sees its own segment and the one before, up to itself."""
    asks, asked = segment[:, :, None], segment[:, None, :]
    seen = (asks == asked) | (before[:, :, None] == asked)
    return seen.tril().unsqueeze(1)


def slot_batches(
    lengths: Sequence[int], slots: Sequence[int], max_tokens: int, max_rows: int | None = None
) -> Iterator[list[int]]:
    """Places of rows to put through the model together: by slot, because the bank routes runs of
    rows; then by length, to pad little.

    A batch has at most `max_tokens` tokens when all its rows are padded to the longest, and at most
    `max_rows` rows; a row that is longer by itself goes alone. Rows of the bare base are never
    beside a member's.
    """
    batch: list[int] = []
    longest = 0
    for row in sorted(range(len(lengths)), key=lambda row: (slots[row], lengths[row])):
        longest = max(longest, lengths[row])
        full = len(batch) == max_rows or (len(batch) + 1) * longest > max_tokens
        if batch and (full or (slots[batch[-1]] == NO_ADAPTER) != (slots[row] == NO_ADAPTER)):
            yield batch
            batch, longest = [], lengths[row]
        batch.append(row)
    if batch:
        yield batch


def partition_rows(
    lengths: Sequence[int], slots: Sequence[int], ranks: int, prompts: Sequence[Hashable]
) -> list[list[int]]:
    """The rows of each rank. Copies of a member's prompt stay together, because they share its
    cache, unless they exceed a rank's share. Each rank gets as many long rows of a member as any
    other: sorted by length, rows go to the ranks forwards, then backwards.

    `prompts` identify the rows' prompts.
    """
    copies: dict[tuple[int, Hashable], list[int]] = {}
    for row in range(len(lengths)):
        copies.setdefault((slots[row], prompts[row]), []).append(row)
    most = max(1, -(-len(lengths) // ranks))
    parts = [
        rows[start : start + most]
        for rows in copies.values()
        for start in range(0, len(rows), most)
    ]
    parts.sort(key=lambda rows: (slots[rows[0]], sum(lengths[row] for row in rows)))
    dealt: list[list[int]] = [[] for _ in range(ranks)]
    for number, rows in enumerate(parts):
        turn, place = divmod(number, ranks)
        dealt[ranks - 1 - place if turn % 2 else place] += rows
    return dealt
