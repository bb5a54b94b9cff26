"""Micro-batches: which rows go through the model together and on which rank, and their layout.

By default each sample of an update has a row, padded on the right. If the base allows it
(`shared_prefix.py`), the completions of one prompt follow it in a group, and a row has several
groups, so that a prompt is computed once and there is little padding:

    prompt without its last token | its last token, completion | its last token, completion | ...

A completion attends to its prompt and itself, at the same positions as in a separate row.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from azr_population.engines.engine import NO_ADAPTER, Completion, Ids, TrainingSample

PromptGroup = Sequence[TrainingSample]
"""Samples of one prompt, which stand behind it once."""

_WIDTH = 96
"""Tokens of a row that takes several groups: attention costs more in longer ones, padding is more
in shorter ones."""


@dataclass(frozen=True)
class MicroBatch:
    """Rows that go through the model at once."""

    input_ids: Tensor
    """[rows, width], padded on the right."""
    mask: Tensor | None
    """bool [rows, 1, width, width]: whether a token (third) sees another; None: each sees those
    before it. Padding comes last, so that no token sees it, and kernels without a mask are faster
    and keep less."""
    completion: Tensor
    """bool [rows, width]: whether `input_ids` is a token of a completion."""
    old_logprobs: Tensor
    """The sampler's log-probabilities of the completions' tokens [tokens], row by row; `advantages`
    likewise."""
    advantages: Tensor
    positions: Tensor | None = None
    """[rows, width]; None: a row's tokens count from its start."""


def length(sample: TrainingSample) -> int:
    """Tokens of prompt and completion."""
    return len(sample.completion.prompt_ids) + len(sample.completion.token_ids)


def tokens_of(group: PromptGroup) -> int:
    """Tokens of a group as it is laid out."""
    return len(group[0].completion.prompt_ids) - 1 + sum(map(_own_tokens, group))


def _own_tokens(sample: TrainingSample) -> int:
    return 1 + len(sample.completion.token_ids)


def spans(count: int, fits: Callable[[int, int], bool]) -> Iterator[slice]:
    """`count` things cut into spans of neighbours, each as long as `fits(start, end)` says; what
    does not fit alone is a span too."""
    start = 0
    for end in range(2, count + 1):
        if not fits(start, end):
            yield slice(start, end - 1)
            start = end - 1
    if count:
        yield slice(start, count)


def pieces(
    samples: Sequence[TrainingSample], max_tokens: int, share: bool = False
) -> Iterator[list[PromptGroup]]:
    """Groups of like size together, at most `max_tokens` (at least one group): with padding where
    nothing is shared, without what little there is of it where prompts are.

    A subset of the pieces, joined and cut again, gives the same pieces.
    """
    groups: list[PromptGroup] = [[sample] for sample in sorted(samples, key=length)]
    if share:
        groups = sorted(
            _prompt_groups(samples, max_tokens),
            key=lambda group: (tokens_of(group), group[0].completion.prompt_ids),
        )
    sizes = list(map(tokens_of, groups))

    def fits(start: int, end: int) -> bool:
        tokens = sum(sizes[start:end]) if share else (end - start) * sizes[end - 1]
        return tokens <= max_tokens

    for span in spans(len(groups), fits):
        yield groups[span]


def _prompt_groups(samples: Sequence[TrainingSample], max_tokens: int) -> Iterator[PromptGroup]:
    """The samples by prompt, cut where a group would have more than `max_tokens`, or be so much
    longer than its prompt that what attention costs more exceeds what is shared."""
    by_prompt: dict[Ids, list[TrainingSample]] = {}
    # Ties by content, so that what was cut before is cut alike again.
    for sample in sorted(samples, key=lambda each: (_own_tokens(each), each.completion.token_ids)):
        by_prompt.setdefault(sample.completion.prompt_ids, []).append(sample)
    for prompt, copies in by_prompt.items():
        most = min(max_tokens, max(_WIDTH, 3 * len(prompt)))
        group: list[TrainingSample] = []
        for sample in copies:
            if group and tokens_of([*group, sample]) > most:
                yield group
                group = []
            group.append(sample)
        yield group


def collate(piece: Sequence[PromptGroup], device: torch.device, share: bool = False) -> MicroBatch:
    """The piece as a batch; with `share` several groups in a row, each behind its prompt."""
    rows = _rows(piece) if share else [[group] for group in piece]
    laid_out: list[Tensor] = []
    old_logprobs: list[float] = []
    advantages: list[float] = []
    for groups in rows:
        # Of each token: id, position, its segment, the segment before that, is it a completion's?
        tokens: list[tuple[int, int, int, int, bool]] = []
        segment = 0
        for group in groups:
            *prompt, last = group[0].completion.prompt_ids
            segment += 1
            root = segment
            tokens += [(token, place, root, root, False) for place, token in enumerate(prompt)]
            for sample in group:
                segment += 1
                done, start = sample.completion, len(prompt)
                tokens += [
                    (token, start + place, segment, root, place > 0)
                    for place, token in enumerate((last, *done.token_ids))
                ]
                old_logprobs += done.logprobs
                advantages += [sample.advantage] * len(done.token_ids)
        laid_out.append(torch.tensor(tokens))
    padded = pad_sequence(laid_out, batch_first=True).permute(2, 0, 1).contiguous().to(device)
    input_ids, positions, segments, roots, completion = padded
    mask = None
    if share:
        # A token sees its own segment and the one before, up to itself.
        asks, asked = segments[:, :, None], segments[:, None, :]
        mask = ((asks == asked) | (roots[:, :, None] == asked)).tril().unsqueeze(1)
    return MicroBatch(
        input_ids,
        mask,
        completion.bool(),
        torch.tensor(old_logprobs, dtype=torch.float32, device=device),
        torch.tensor(advantages, dtype=torch.float32, device=device),
        positions if share else None,
    )


def empty_batch(device: torch.device) -> MicroBatch:
    """A batch for a rank without rows, so that it has the metrics of the others; nothing is learned
    from it."""
    return collate([[TrainingSample(Completion(0, (0,), (0,), (0.0,), True), 0.0)]], device)


def _rows(piece: Sequence[PromptGroup]) -> list[list[PromptGroup]]:
    """The groups in rows of `_WIDTH` tokens or the longest one's; each in the first with room."""
    width = max(_WIDTH, *map(tokens_of, piece))
    rows: list[list[PromptGroup]] = []
    room: list[int] = []
    for group in sorted(piece, key=tokens_of, reverse=True):
        tokens = tokens_of(group)
        row = next((i for i, left in enumerate(room) if left >= tokens), len(rows))
        if row == len(rows):
            rows.append([])
            room.append(width)
        rows[row].append(group)
        room[row] -= tokens
    return rows


def slot_batches(
    lengths: Sequence[int], slots: Sequence[int], max_tokens: int, max_rows: int | None = None
) -> Iterator[list[int]]:
    """Places of rows to put through the model together: by slot, because the bank routes runs of
    rows; then by length, to pad little.

    A batch has at most `max_tokens` tokens when all its rows are padded to the longest, and at most
    `max_rows` rows; a row that is longer by itself goes alone. Rows of the bare base are never
    beside a member's.
    """
    rows = sorted(range(len(lengths)), key=lambda row: (slots[row], lengths[row]))
    sizes, bare = [lengths[row] for row in rows], [slots[row] == NO_ADAPTER for row in rows]

    def fits(start: int, end: int) -> bool:
        count = end - start
        few = count * max(sizes[start:end]) <= max_tokens and count <= (max_rows or count)
        return few and bare[start] == bare[end - 1]

    for span in spans(len(rows), fits):
        yield rows[span]


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
