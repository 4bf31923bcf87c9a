"""Checks that compare documents: duplicates, one text with different labels, what train shares with test."""

from collections import Counter
from itertools import islice

import numpy as np

from labelspace.data.checks.base import Example, Found, shown
from labelspace.data.checks.documents import Documents
from labelspace.types import Bools, Dataset, Doubles, Ints, Longs


def first_in_split(documents: Documents) -> Longs:
    """Return the first document of the same split that equals each one. Shape (n,)."""
    keys = documents.first_same * len(documents.parts) + documents.part_of
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    numbers: Longs = first[inverse].astype(np.int64)
    return numbers


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


def find_duplicates(documents: Documents) -> Found | None:
    """Find documents of train and dev with the text and the labels of an earlier one."""
    numbers = np.flatnonzero(repeated(documents))
    return _pairs(
        documents, numbers[numbers < documents.n_learned_from], first_in_split(documents), documents.n_learned_from
    )


def find_conflicts(documents: Documents) -> Found | None:
    """Find documents with the text of an earlier one and different labels."""
    first = first_in_split(documents)
    numbers = np.flatnonzero(first != np.arange(len(first)))
    same = [a == b for a, b in zip(label_sets(documents, numbers), label_sets(documents, first[numbers]), strict=True)]
    numbers = numbers[~np.array(same, bool)]
    examples = tuple(
        documents.example(first[number], number, what=_both_labels(documents, int(first[number]), number))
        for number in numbers[: documents.n_examples].tolist()
    )
    return Found(len(numbers), len(documents), examples) if len(numbers) else None


def _both_labels(documents: Documents, a: int, b: int) -> str:
    """Return the text, and the labels that only one of two documents has."""
    labels = documents.labels_of(a), documents.labels_of(b)
    only = [sorted(set(labels[i]) - set(labels[1 - i])) for i in (0, 1)]
    named = [
        f"only {place}: {documents.names_of(own)}" for place, own in zip(("first", "second"), only, strict=True) if own
    ]
    return "; ".join([*([] if documents.texts is None else [shown(documents.texts[b], 50)]), *named])


def _pairs(documents: Documents, numbers: Longs, other: Longs | Ints, total: int | None = None) -> Found | None:
    """Report documents, each with another document that is (nearly) the same."""
    examples = tuple(
        documents.example(int(other[number]), number) for number in numbers[: documents.n_examples].tolist()
    )
    return Found(len(numbers), len(documents) if total is None else total, examples) if len(numbers) else None


def leaked(documents: Documents) -> Bools:
    """Mark documents that equal one of a later split: train of dev and test, dev of test. Shape (n,)."""
    last = np.zeros(len(documents), np.int64)
    np.maximum.at(last, documents.first_same, documents.part_of)
    found: Bools = last[documents.first_same] > documents.part_of
    return found


def find_leaks(documents: Documents) -> Found | None:
    """Find test and dev documents that equal a document of train, or test documents that equal one of dev."""
    first = documents.first_same
    numbers = np.flatnonzero(documents.part_of[first] < documents.part_of)
    return _pairs(documents, numbers, first, int((documents.part_of > 0).sum()))


def find_near_duplicates(documents: Documents) -> Found | None:
    """Find training documents that are nearly the same as an earlier one."""
    near = documents.neighbors
    return None if near is None else _near_pairs(documents, near.within, near.similarity, len(documents.train))


def find_near_leaks(documents: Documents) -> Found | None:
    """Find test and dev documents that are nearly the same as a document of train."""
    near = documents.neighbors
    n_held_out = int((documents.part_of > 0).sum())
    return None if near is None else _near_pairs(documents, near.across, near.similarity, n_held_out)


def _near_pairs(documents: Documents, other: Ints, similarity: Doubles, total: int) -> Found | None:
    """Report near duplicates, the least similar first: a reader who agrees with these agrees with all."""
    numbers = np.flatnonzero(other >= 0)
    return _pairs(documents, numbers[np.argsort(similarity[numbers], kind="stable")], other, total)


def has_own_ids(part: Dataset) -> bool:
    """Return whether documents have ids of their own, not only the row numbers that stand for missing ids."""
    return part.ids is not None and any(id_ != str(row) for row, id_ in enumerate(part.ids))


def find_repeated_ids(documents: Documents) -> Found | None:
    """Find documents with the id of an earlier one, of any split; row numbers for missing ids do not count."""
    ids: list[str | None] = []
    for part in documents.parts.values():
        ids += part.ids if part.ids is not None and has_own_ids(part) else [None] * len(part)
    counts = Counter(id_ for id_ in ids if id_ is not None)
    count = counts.total() - len(counts)
    places: dict[str, list[int]] = {
        id_: [] for id_ in islice((id_ for id_, n in counts.items() if n > 1), documents.n_examples)
    }
    for number, id_ in enumerate(ids) if places else ():
        if id_ in places:
            places[id_].append(number)
    examples = tuple(
        Example(f"id {shown(id_)}", tuple(map(documents.at, numbers[:2]))) for id_, numbers in places.items()
    )
    return Found(count, len(documents), examples) if count else None


FINDERS = {
    "leaked_documents": find_leaks,
    "near_leaked_documents": find_near_leaks,
    "conflicting_labels": find_conflicts,
    "duplicate_documents": find_duplicates,
    "near_duplicate_documents": find_near_duplicates,
    "repeated_ids": find_repeated_ids,
}
