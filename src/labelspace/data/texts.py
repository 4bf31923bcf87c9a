"""Texts as Python gives them: checked, and with lists of label names as a data set."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelspace.errors import DataError
from labelspace.types import Dataset, LabelSpace


def check_texts(texts: Iterable[str]) -> Sequence[str]:
    """The texts as a list; anything but texts is an error that names its row."""
    if isinstance(texts, (str, bytes)):
        raise DataError(f"texts must be a list of texts, but are one {type(texts).__name__}; give a list of texts")
    listed = texts if isinstance(texts, (list, tuple)) else list(texts)
    for row, text in enumerate(listed):
        if not isinstance(text, str):
            raise DataError(
                f"a text must be a str, but the one of row {row} is of type {type(text).__name__}; "
                "give a str, an empty one for no text"
            )
    return listed


def without_lone_surrogates(text: str) -> str:
    """The text with ``?`` for what is no valid Unicode: tokenizers of other packages refuse that."""
    return text.encode("utf-8", "replace").decode("utf-8")


def check_training_texts(texts: Iterable[str]) -> Sequence[str]:
    """The same, with at least one text."""
    listed = check_texts(texts)
    if not listed:
        raise DataError("features must be fitted on at least one text, but there are 0; give more texts")
    return listed


def _checked_names(row: int, names: Any) -> list[str]:  # noqa: ANN401 - whatever the caller gave
    """The names of one text as a list; an iterator is read once, here."""
    listed = None if isinstance(names, (str, bytes)) or not isinstance(names, Iterable) else list(names)
    if listed is None or not all(isinstance(name, str) for name in listed):
        raise DataError(f"the labels of a text must be a list of names, but row {row} has {names!r}; write ['name']")
    return listed


def dataset_from_names(texts: Sequence[str], labels: Sequence[Sequence[str]]) -> Dataset:
    """Texts and lists of names as a Dataset; labels are numbered in alphabetical order."""
    texts = check_texts(texts)
    if len(texts) != len(labels):
        raise DataError(
            f"there must be one list of labels per text, but there are {len(labels)} for {len(texts)} texts; give all"
        )
    labels = [_checked_names(row, names) for row, names in enumerate(labels)]
    space = LabelSpace(sorted(set(chain.from_iterable(labels))))
    space = space.with_paths() if space.are_paths else space
    rows = [sorted({space.index[name] for name in names}) for names in labels]
    indptr = np.cumsum([0, *map(len, rows)])
    indices = np.fromiter(chain.from_iterable(rows), np.int32, int(indptr[-1]))
    Y = sp.csr_matrix((np.ones(len(indices), np.float32), indices, indptr), shape=(len(rows), len(space)))
    return Dataset(Y, space, texts=texts)
