"""Documents to token rows: branches, loss weights, and several documents to a row."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from azr_population.bases.nano.tokenizer import EOS, vocabulary
from azr_population.domains.code.nano_format import CODE, IN, OUT, PROPOSE, SOLVE
from azr_population.domains.code.task import TaskType

_IDS = vocabulary()
_IN, _OUT, _CODE, _EOS = (_IDS[mark] for mark in (IN, OUT, CODE, EOS))
_O, _I, _F = TaskType.CODE_O, TaskType.CODE_I, TaskType.CODE_F

# mark -> (token that opens a branch, token after which the completion begins, its weight)
_RULES: dict[int, tuple[int | None, int | None, float]] = {
    _IDS[PROPOSE[_O]]: (_IN, None, 1.0),
    _IDS[PROPOSE[_I]]: (_IN, None, 1.0),
    _IDS[PROPOSE[_F]]: (None, None, 1.0),
    _IDS[SOLVE[_O]]: (_IN, _OUT, 3.0),
    _IDS[SOLVE[_I]]: (_OUT, _IN, 2.0),
    _IDS[SOLVE[_F]]: (None, _CODE, 2.0),
}


@dataclass(frozen=True)
class Document:
    """One document. All arrays (length,): token ids, positions, branches (int64), weights.

    `weights[t]` is the weight of predicting token t; the first token of a later branch has 0, since
    the token before it in the row is not what it follows.
    """

    ids: np.ndarray
    positions: np.ndarray
    branches: np.ndarray
    weights: np.ndarray


def read_document(ids: Sequence[int]) -> Document:
    """Branches and weights by the document's mark, its first token."""
    opens, begins, weight = _RULES[ids[0]]
    tokens = np.asarray(ids, dtype=np.int64)
    length = len(tokens)
    starts = np.flatnonzero(tokens == opens) if opens is not None else np.empty(0, dtype=np.int64)
    branches = np.zeros(length, dtype=np.int64)
    positions = np.arange(length)
    for branch, start in enumerate(starts, 1):
        branches[start:] = branch
        positions[start:] = np.arange(length - start) + starts[0]
    weights = np.zeros(length, dtype=np.float32)
    if begins is None:
        weights[1:] = weight
        weights[starts[1:]] = 0.0
    else:
        answering = False
        for place, token in enumerate(ids):
            if answering:
                weights[place] = weight
            if token == begins:
                answering = True
            elif token == _EOS:
                answering = False
    return Document(tokens, positions, branches, weights)


@dataclass(frozen=True)
class Batch:
    """Rows of packed documents; (rows, length) each. Padding has weight 0 and document -1."""

    ids: np.ndarray
    positions: np.ndarray
    documents: np.ndarray
    branches: np.ndarray
    weights: np.ndarray

    @property
    def tokens(self) -> int:
        """Tokens that are not padding."""
        return int((self.documents >= 0).sum())


def pack(documents: Iterable[Document], rows: int, length: int) -> Iterator[Batch]:
    """Batches of `rows` x `length`, filled first-fit; documents longer than a row are dropped."""
    open_rows: list[list[Document]] = [[] for _ in range(rows)]
    room = [length] * rows
    misses = 0
    for document in documents:
        size = len(document.ids)
        if size > length:
            continue
        place = next((row for row in range(rows) if room[row] >= size), None)
        if place is None:
            misses += 1
            if misses < 4:  # a few shorter ones may still fit; these documents are left out
                continue
            yield _batch(open_rows, rows, length)
            open_rows = [[] for _ in range(rows)]
            room = [length] * rows
            misses = 0
            place = 0
        open_rows[place].append(document)
        room[place] -= size


def _batch(contents: list[list[Document]], rows: int, length: int) -> Batch:
    shape = (rows, length)
    ids, positions, branches = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    documents = np.full(shape, -1, dtype=np.int64)
    weights = np.zeros(shape, dtype=np.float32)
    for row, packed in enumerate(contents):
        start = 0
        for number, document in enumerate(packed):
            part = slice(start, start + len(document.ids))
            ids[row, part] = document.ids
            positions[row, part] = document.positions
            branches[row, part] = document.branches
            weights[row, part] = document.weights
            documents[row, part] = number
            start += len(document.ids)
    return Batch(ids, positions, documents, branches, weights)
