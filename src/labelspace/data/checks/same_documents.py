"""Which documents are the same: equal texts but for white space and case, or equal rows of features."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from labelspace.data.document_sketch import document_hashes
from labelspace.kernels.minhash import folded_hashes
from labelspace.kernels.threads import run_blocks
from labelspace.kernels.tokenize import Bytes, Offsets
from labelspace.types import Bools, Csr, Longs

BLOCK = 2**20  # characters encoded at a time, about


def fold(text: str) -> str:
    r"""A text without differences of white space and case.

    >>> fold(" Bake\n BREAD ")
    'bake bread'
    """
    return " ".join(text.lower().split())


def encode(texts: Sequence[str]) -> tuple[Bytes, Offsets]:
    """The texts in lower case as UTF-8, one after the other, and where each ends."""
    parts = [text.encode() if text.isascii() else text.lower().encode("utf-8", "surrogatepass") for text in texts]
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    return np.frombuffer(bytearray().join(parts).lower(), np.uint8), ends


def text_blocks(sizes: Iterable[int]) -> list[tuple[int, int]]:
    """Spans of texts of these sizes, each of about ``BLOCK`` characters or one text.

    >>> text_blocks([5, 5, 2**20, 5])
    [(0, 2), (2, 4)]
    """
    total = np.cumsum([size + 1 for size in sizes])
    cuts = np.flatnonzero(np.diff(total // BLOCK)) + 1 if len(total) else np.zeros(0, np.int64)
    bounds = [0, *cuts.tolist(), len(total)]
    return list(zip(bounds[:-1], bounds[1:], strict=True))


def same_documents(texts: Sequence[str] | None, X: Sequence[Csr], empty: Bools) -> Longs:
    """The number of the first document that is the same as each one; an empty one is only the same as itself."""
    first = np.arange(len(empty), dtype=np.int64)
    if texts is None:
        hashes = np.zeros(len(empty), np.uint64)
        hashes[~empty] = np.concatenate([document_hashes(rows) for rows in X])
    else:
        hashes = _text_hashes(texts)
    for numbers in _groups(hashes, empty):
        seen: dict[object, int] = {}
        for number in numbers.tolist():  # of texts with one hash, those that are the same
            first[number] = seen.setdefault(None if texts is None else fold(texts[number]), number)
    return first


def _text_hashes(texts: Sequence[str]) -> npt.NDArray[np.uint64]:
    hashes, blocks = np.zeros(len(texts), np.uint64), text_blocks(map(len, texts))

    def hash_block(start: int, stop: int) -> None:
        for first, last in blocks[start:stop]:
            hashes[first:last] = folded_hashes(*encode(texts[first:last]))

    run_blocks(hash_block, len(blocks), 1)
    return hashes


def _groups(hashes: npt.NDArray[np.uint64], empty: Bools) -> Iterator[Longs]:
    """The documents of each hash that several have, in order."""
    numbers = np.flatnonzero(~empty)
    order = numbers[np.argsort(hashes[numbers], kind="stable")]
    starts = np.flatnonzero(np.diff(hashes[order], prepend=hashes[order[:1]] + np.uint64(1)))
    sizes = np.diff(starts, append=len(order))
    for start, size in zip(starts[sizes > 1].tolist(), sizes[sizes > 1].tolist(), strict=True):
        yield order[start : start + size]
