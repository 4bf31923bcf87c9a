"""Texts: stored in a file as UTF-8, one after the other, or given as Python objects and checked."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np

from labelspace.data.objects.frames import is_missing, to_list
from labelspace.data.objects.given_labels import read_labels
from labelspace.errors import DataError
from labelspace.kernels import large_arrays
from labelspace.kernels.tokenize import Bytes
from labelspace.types import Dataset, Longs

BLOCK = 1024  # texts that are decoded at a time


class StoredTexts(Sequence[str]):
    """Texts as an array of bytes, which may be memory-mapped; only requested texts become strings.

    >>> texts = StoredTexts.of(["red apple", "naïve", ""])
    >>> texts[1], texts[:2], len(texts), texts.n_characters
    ('naïve', ['red apple', 'naïve'], 3, 14)
    """

    def __init__(self, content: Bytes, ends: Longs, n_characters: int) -> None:
        self.content, self.ends, self.n_characters = content, ends, n_characters

    @classmethod
    def of(cls, texts: Sequence[str]) -> "StoredTexts":
        """Return the texts of a list as stored ones, or the stored ones themselves."""
        if isinstance(texts, StoredTexts):
            return texts
        growing = GrowingTexts()
        for text in texts:
            growing.append(text)
        return growing.finish()

    def __len__(self) -> int:
        return len(self.ends)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        if not isinstance(index, slice):
            row = range(len(self))[index]
            return self._decoded(row, row + 1)[0]
        rows = range(len(self))[index]
        return self._decoded(rows.start, rows.stop) if rows.step == 1 else [self[row] for row in rows]

    def __iter__(self) -> Iterator[str]:
        for part in large_arrays.blocks(len(self), BLOCK):
            yield from self[part]

    def _decoded(self, start: int, stop: int) -> list[str]:
        if stop <= start:
            return []
        first = int(self.ends[start - 1]) if start else 0
        content, ends = self.content[first : self.ends[stop - 1]].tobytes(), (self.ends[start:stop] - first).tolist()
        bounds = list(zip([0, *ends], ends, strict=False))
        if content.isascii():  # one byte is one character: decoded in one go
            text = content.decode("ascii")
            return [text[begin:end] for begin, end in bounds]
        return [content[begin:end].decode("utf-8", "surrogatepass") for begin, end in bounds]


class GrowingTexts:
    """Texts that are added one by one."""

    def __init__(self) -> None:
        self._content, self._ends = large_arrays.growing(np.uint8), large_arrays.growing(np.int64)
        self._pending: list[bytes] = []
        self._n_bytes = self._n_characters = 0

    def append(self, text: str) -> None:
        """Add a text at the end."""
        self._pending.append(text.encode("utf-8", "surrogatepass"))
        self._n_characters += len(text)
        if len(self._pending) == BLOCK:
            self._write()

    def _write(self) -> None:
        ends = self._n_bytes + np.cumsum([len(text) for text in self._pending], dtype=np.int64)
        self._content.append(np.frombuffer(b"".join(self._pending), np.uint8))
        self._ends.append(ends)
        self._n_bytes = int(ends[-1]) if len(ends) else self._n_bytes
        self._pending = []

    def finish(self) -> StoredTexts:
        """Return all texts; nothing can be added afterwards."""
        self._write()
        return StoredTexts(self._content.finish(), self._ends.finish(), self._n_characters)


class TextList:
    """Texts of a file: a list, or stored texts if large arrays live in files.

    >>> texts = TextList()
    >>> texts.append("red apple")
    >>> texts.finish()
    ['red apple']
    """

    def __init__(self) -> None:
        self._texts: list[str] | GrowingTexts = [] if large_arrays.memory() is None else GrowingTexts()
        self.append = self._texts.append

    def finish(self) -> Sequence[str]:
        """Return all texts; nothing can be added afterwards."""
        return self._texts if isinstance(self._texts, list) else self._texts.finish()


def n_characters(texts: Sequence[str]) -> int:
    """Return the number of characters of all texts."""
    return texts.n_characters if isinstance(texts, StoredTexts) else sum(map(len, texts))


def check_texts(texts: Iterable[Any], one: str = "give a list of texts: [text]") -> Sequence[str]:
    """Return the texts as a list; raise DataError for anything but texts, which names the row and says what to do.

    ``one`` is the remedy if a single text is given. Stored texts stay stored.
    """
    if isinstance(texts, StoredTexts):
        return texts
    listed = to_list(texts, "texts must be a sequence of texts", one)
    for row, text in enumerate(listed):
        if not isinstance(text, str):
            missing = ", which is missing" if is_missing(text) else ""
            problem = f"the one of row {row} is of type {type(text).__name__}{missing}"
            raise DataError(f"a text must be a str, but {problem}; give a str, an empty one for no text")
    return listed


def without_lone_surrogates(text: str) -> str:
    """Return the text with ``?`` for invalid Unicode, which tokenizers of other packages refuse."""
    return text.encode("utf-8", "replace").decode("utf-8")


def check_training_texts(texts: Iterable[str]) -> Sequence[str]:
    """Return the texts as a list; raise DataError unless there is at least one text."""
    listed = check_texts(texts)
    if not listed:
        raise DataError("features must be fitted on at least one text, but there are 0; give more texts")
    return listed


def dataset_from_names(texts: Iterable[str], labels: Any) -> Dataset:  # noqa: ANN401 - see ``read_labels``
    """Return texts and lists of names as a Dataset; labels are numbered in alphabetical order."""
    listed = check_texts(texts)
    Y, space = read_labels(labels, len(listed))
    return Dataset(Y, space, texts=listed)
