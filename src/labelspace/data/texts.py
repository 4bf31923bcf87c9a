"""Texts as Python gives them: checked, and with lists of label names as a data set."""

from collections.abc import Iterable, Sequence
from typing import Any

from labelspace.data.cache.texts import StoredTexts
from labelspace.data.objects.labels import read_labels
from labelspace.data.objects.sequences import is_missing, to_list
from labelspace.errors import DataError
from labelspace.types import Dataset


def check_texts(texts: Iterable[Any], one: str = "give a list of texts: [text]") -> Sequence[str]:
    """The texts as a list; anything but texts is an error that names its row, and says what to do with ``one``.

    Those of a cache stay where they are.
    """
    if isinstance(texts, StoredTexts):
        return texts
    listed = to_list(texts, "texts must be a sequence of texts", one)
    for row, text in enumerate(listed):
        if not isinstance(text, str):
            missing = ", which is missing" if is_missing(text) else ""
            raise DataError(
                f"a text must be a str, but the one of row {row} is of type {type(text).__name__}{missing}; "
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


def dataset_from_names(texts: Iterable[str], labels: Any) -> Dataset:  # noqa: ANN401 - see ``read_labels``
    """Texts and lists of names as a Dataset; labels are numbered in alphabetical order."""
    listed = check_texts(texts)
    Y, space = read_labels(labels, len(listed))
    return Dataset(Y, space, texts=listed)
