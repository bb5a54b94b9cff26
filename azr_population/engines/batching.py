"""Which rows go through the model together."""

from collections.abc import Hashable, Iterator, Sequence

from azr_population.engines.engine import NO_ADAPTER


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


def deal(
    lengths: Sequence[int], slots: Sequence[int], ranks: int, prompts: Sequence[Hashable]
) -> list[list[int]]:
    """The rows of each rank: copies of a prompt for one member together, because they share its
    cache, unless they are more than a rank's share; of each member as many long rows as any other
    rank's (dealt in snake order by length).

    `prompts` tell the rows' prompts apart.
    """
    copies: dict[tuple[int, Hashable], list[int]] = {}
    for row in range(len(lengths)):
        copies.setdefault((slots[row], prompts[row]), []).append(row)
    share = max(1, -(-len(lengths) // ranks))
    hands = [
        rows[start : start + share]
        for rows in copies.values()
        for start in range(0, len(rows), share)
    ]
    hands.sort(key=lambda rows: (slots[rows[0]], sum(lengths[row] for row in rows)))
    dealt: list[list[int]] = [[] for _ in range(ranks)]
    for number, rows in enumerate(hands):
        turn, place = divmod(number, ranks)
        dealt[ranks - 1 - place if turn % 2 else place] += rows
    return dealt
