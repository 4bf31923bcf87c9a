"""Checks of documents: alone (empty, long, garbled, oddly labeled), and compared (duplicates, what train shares)."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import islice

import numpy as np

from labelspace.data.checks.base import TEST, Documents, Example, Found, shown
from labelspace.data.text_repair import has_control, is_garbled
from labelspace.types import Bools, Dataset, Doubles, Ints, Longs

# A document is reported if it exceeds a multiple of the median and an absolute size. The first rule without the second
# would report ordinary documents among very short ones, the second every document of a collection of long texts.
LONG_TIMES, LONG = 30, 50_000  # times the median; characters
MANY_TIMES, MANY = 10, 50  # times the median; labels
_SEARCHED = 100_000  # characters of a text in which the bad piece for an example is looked for


def _largest(documents: Documents, sizes: Longs, times: int, least: int, unit: str) -> Found:
    """Report documents that exceed ``times`` the median size and ``least``; the largest are the examples."""
    median = float(np.median(sizes)) if len(sizes) else 0.0
    numbers = np.flatnonzero(sizes > max(times * median, least))
    numbers = numbers[np.argsort(-sizes[numbers], kind="stable")]

    def example(number: int) -> Example:
        return documents.example(number, what=f"{sizes[number]:,} {unit}")

    return documents.found(numbers, len(documents), example, f"the median is {median:,.0f}")


def find_empty_documents(documents: Documents) -> Found:
    """Find documents without text, or without features."""
    return documents.found(np.flatnonzero(documents.empty), len(documents), documents.example)


def find_long_documents(documents: Documents) -> Found:
    """Find documents that are very much longer than the others."""
    sizes = np.array([len(text) for text in documents.texts or ()], np.int64)
    return _largest(documents, sizes, LONG_TIMES, LONG, "characters")


def find_documents_without_labels(documents: Documents) -> Found:
    """Find documents without labels."""
    return documents.found(np.flatnonzero(documents.Y.getnnz(axis=1) == 0), len(documents), documents.example)


def find_documents_with_many_labels(documents: Documents) -> Found:
    """Find documents with very many more labels than the others."""
    return _largest(documents, documents.Y.getnnz(axis=1).astype(np.int64), MANY_TIMES, MANY, "labels")


def _in_texts_and_names(documents: Documents, is_bad: Callable[[str], bool]) -> Found:
    """Report the texts and label names that ``is_bad`` accepts; up to half of the examples are names."""
    texts, names, n = documents.texts or [], documents.labels.names, documents.n_examples
    numbers = [number for number, text in enumerate(texts) if is_bad(text)]
    bad_names = [name for name in names if is_bad(name)]
    examples = [Example(f"label {_around(name, is_bad)}") for name in bad_names[: n // 2]]
    examples += [documents.example(number, what=_around(texts[number], is_bad)) for number in numbers[:n]]
    note = f"label names among them: {len(bad_names):,}" if bad_names else ""
    return Found(len(numbers) + len(bad_names), len(texts) + len(names), tuple(examples[:n]), note)


def _around(text: str, is_bad: Callable[[str], bool]) -> str:
    """Return a piece of the text that is bad by itself, else the beginning of the text."""
    words = text[:_SEARCHED].split(" ")
    at = next((i for i, word in enumerate(words) if is_bad(word)), 0)
    return shown(" ".join(words[max(at - 3, 0) : at + 6]))


find_wrong_encoding = partial(_in_texts_and_names, is_bad=is_garbled)
find_control_characters = partial(_in_texts_and_names, is_bad=has_control)


def first_in_split(documents: Documents) -> Longs:
    """Return the first document of the same split that equals each one. Shape (n,)."""
    keys = documents.first_same * len(documents.parts) + documents.part_of
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return np.asarray(first[inverse], np.int64)


def label_sets(documents: Documents, numbers: Longs) -> list[bytes]:
    """Return the labels of documents as bytes that can be compared."""
    Y = documents.Y
    return [np.sort(Y.indices[Y.indptr[number] : Y.indptr[number + 1]]).tobytes() for number in numbers.tolist()]


def repeated(documents: Documents) -> Bools:
    """Mark documents with the text and the labels of an earlier one of the same split. Shape (n,)."""
    first = first_in_split(documents)
    several = np.flatnonzero(np.bincount(first, minlength=len(first))[first] > 1)
    seen: set[tuple[int, bytes]] = set()
    found = np.zeros(len(first), bool)
    for number, labels in zip(several.tolist(), label_sets(documents, several), strict=True):
        key = int(first[number]), labels
        found[number] = key in seen
        seen.add(key)
    return found


def find_duplicate_documents(documents: Documents) -> Found:
    """Find documents of train and dev with the text and the labels of an earlier one."""
    numbers = np.flatnonzero(repeated(documents))
    n = documents.starts.get(TEST, len(documents))  # train and dev come first
    return _pairs(documents, numbers[numbers < n], first_in_split(documents), n)


def find_conflicting_labels(documents: Documents) -> Found:
    """Find documents with the text of an earlier one and different labels."""
    first = first_in_split(documents)
    numbers = np.flatnonzero(first != np.arange(len(first)))
    same = [a == b for a, b in zip(label_sets(documents, numbers), label_sets(documents, first[numbers]), strict=True)]

    def example(number: int) -> Example:
        return documents.example(first[number], number, what=_both_labels(documents, int(first[number]), number))

    return documents.found(numbers[~np.array(same, bool)], len(documents), example)


def _both_labels(documents: Documents, a: int, b: int) -> str:
    """Return the text, and the labels that only one of two documents has."""
    labels = documents.labels_of(a), documents.labels_of(b)
    parts = [] if documents.texts is None else [shown(documents.texts[b], 50)]
    for i, place in enumerate(("first", "second")):
        if own := sorted(set(labels[i]) - set(labels[1 - i])):
            parts.append(f"only {place}: {documents.names_of(own)}")
    return "; ".join(parts)


def _pairs(documents: Documents, numbers: Longs, other: Longs | Ints, total: int) -> Found:
    """Report documents, each with another document that is (nearly) the same."""
    return documents.found(numbers, total, lambda number: documents.example(other[number], number))


def leaked(documents: Documents) -> Bools:
    """Mark documents that equal one of a later split: train of dev and test, dev of test. Shape (n,)."""
    last = np.zeros(len(documents), np.int64)
    np.maximum.at(last, documents.first_same, documents.part_of)
    return np.asarray(last[documents.first_same] > documents.part_of)


def find_leaked_documents(documents: Documents) -> Found:
    """Find test and dev documents that equal a document of train, or test documents that equal one of dev."""
    first = documents.first_same
    numbers = np.flatnonzero(documents.part_of[first] < documents.part_of)
    return _pairs(documents, numbers, first, int((documents.part_of > 0).sum()))


def find_near_duplicate_documents(documents: Documents) -> Found | None:
    """Find training documents that are nearly the same as an earlier one."""
    near = documents.neighbors
    return None if near is None else _near_pairs(documents, near.within, near.similarity, len(documents.train))


def find_near_leaked_documents(documents: Documents) -> Found | None:
    """Find test and dev documents that are nearly the same as a document of train."""
    near = documents.neighbors
    n_held_out = int((documents.part_of > 0).sum())
    return None if near is None else _near_pairs(documents, near.across, near.similarity, n_held_out)


def _near_pairs(documents: Documents, other: Ints, similarity: Doubles, total: int) -> Found:
    """Report near duplicates, the least similar first: a reader who agrees with these agrees with all."""
    numbers = np.flatnonzero(other >= 0)
    return _pairs(documents, numbers[np.argsort(similarity[numbers], kind="stable")], other, total)


def has_own_ids(part: Dataset) -> bool:
    """Return whether documents have ids of their own, not only the row numbers that stand for missing ids."""
    return part.ids is not None and any(id_ != str(row) for row, id_ in enumerate(part.ids))


def find_repeated_ids(documents: Documents) -> Found:
    """Find documents with the id of an earlier one, of any split; row numbers for missing ids do not count."""
    ids: list[str | None] = []
    for part in documents.parts.values():
        ids += part.ids if part.ids is not None and has_own_ids(part) else [None] * len(part)
    counts = Counter(id_ for id_ in ids if id_ is not None)
    several = islice((id_ for id_, n in counts.items() if n > 1), documents.n_examples)
    places: dict[str, list[int]] = {id_: [] for id_ in several}
    for number, id_ in enumerate(ids) if places else ():
        if id_ in places:
            places[id_].append(number)
    cases = [Example(f"id {shown(id_)}", tuple(map(documents.at, numbers[:2]))) for id_, numbers in places.items()]
    return Found(counts.total() - len(counts), len(documents), tuple(cases))
