"""Checks of single documents: empty, very long, without labels, with very many labels, in a wrong encoding."""

from collections.abc import Callable

import numpy as np

from labelspace.data.checks.base import Example, Found, shown
from labelspace.data.checks.documents import Documents
from labelspace.data.text_repair import has_control, is_garbled
from labelspace.types import Bools, Longs

# A document is reported if it exceeds a multiple of the median and an absolute size. The first rule without the second
# would report ordinary documents among very short ones, the second every document of a collection of long texts.
LONG_TIMES, LONG = 30, 50_000  # times the median; characters
MANY_TIMES, MANY = 10, 50  # times the median; labels
_SEARCHED = 100_000  # characters of a text in which the bad piece for an example is looked for


def marked(documents: Documents, where: Bools, note: str = "") -> Found | None:
    """Report the marked documents; the first of them are the examples."""
    numbers = np.flatnonzero(where)
    examples = tuple(documents.example(number) for number in numbers[: documents.n_examples].tolist())
    return Found(len(numbers), len(documents), examples, note) if len(numbers) else None


def largest(documents: Documents, sizes: Longs, times: int, least: int, unit: str) -> Found | None:
    """Report documents that exceed ``times`` the median size and ``least``; the largest are the examples."""
    median = float(np.median(sizes)) if len(sizes) else 0.0
    numbers = np.flatnonzero(sizes > max(times * median, least))
    numbers = numbers[np.argsort(-sizes[numbers], kind="stable")]
    examples = tuple(
        documents.example(number, what=f"{sizes[number]:,} {unit}")
        for number in numbers[: documents.n_examples].tolist()
    )
    return Found(len(numbers), len(documents), examples, f"the median is {median:,.0f}") if len(numbers) else None


def find_empty(documents: Documents) -> Found | None:
    """Find documents without text, or without features."""
    return marked(documents, documents.empty)


def find_long(documents: Documents) -> Found | None:
    """Find documents that are very much longer than the others."""
    if documents.texts is None:
        return None
    sizes = np.array([len(text) for text in documents.texts], np.int64)
    return largest(documents, sizes, LONG_TIMES, LONG, "characters")


def find_unlabeled(documents: Documents) -> Found | None:
    """Find documents without labels."""
    return marked(documents, documents.Y.getnnz(axis=1) == 0)


def find_many_labels(documents: Documents) -> Found | None:
    """Find documents with very many more labels than the others."""
    return largest(documents, documents.Y.getnnz(axis=1).astype(np.int64), MANY_TIMES, MANY, "labels")


def _in_texts_and_names(documents: Documents, is_bad: Callable[[str], bool]) -> Found | None:
    """Report the texts and label names that ``is_bad`` accepts."""
    texts, names = documents.texts or [], documents.labels.names
    numbers = [number for number, text in enumerate(texts) if is_bad(text)]
    bad_names = [name for name in names if is_bad(name)]
    examples = [
        documents.example(number, what=_around(texts[number], is_bad)) for number in numbers[: documents.n_examples]
    ]
    examples = [
        *(Example(f"label {_around(name, is_bad)}") for name in bad_names[: documents.n_examples // 2]),
        *examples,
    ][: documents.n_examples]
    count = len(numbers) + len(bad_names)
    note = f"label names among them: {len(bad_names):,}" if bad_names else ""
    return Found(count, len(texts) + len(names), tuple(examples), note) if count else None


def _around(text: str, is_bad: Callable[[str], bool]) -> str:
    """Return a piece of the text that is bad by itself, else the beginning of the text."""
    words = text[:_SEARCHED].split(" ")
    at = next((i for i, word in enumerate(words) if is_bad(word)), 0)
    return shown(" ".join(words[max(at - 3, 0) : at + 6]))


def find_garbled(documents: Documents) -> Found | None:
    """Find texts and label names that were decoded by the wrong encoding."""
    return _in_texts_and_names(documents, is_garbled)


def find_control(documents: Documents) -> Found | None:
    """Find texts and label names with control characters."""
    return _in_texts_and_names(documents, has_control)


FINDERS = {
    "empty_documents": find_empty,
    "documents_without_labels": find_unlabeled,
    "wrong_encoding": find_garbled,
    "control_characters": find_control,
    "long_documents": find_long,
    "documents_with_many_labels": find_many_labels,
}
