"""Checks of labels: how they are used, how they are named, and their hierarchy.

Two names are spellings of one if they are equal without case, punctuation, hyphens, spaces, accents of Latin letters
and plural endings. Digits always count: names with digits are codes, whose spaces and endings count too.
The reader refuses cycles of the hierarchy, malformed names and too many levels before a check is made.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from labelspace.data.checks.base import Documents, Example, Found, shown_name
from labelspace.types import PATH_SEPARATOR, Bools, Csr, Hierarchy, Ints, Longs, check_ancestors, rows_of

# Share of the documents that have a label of their own, from which labels are ids: some ids repeat by mistake, and a
# smaller share would report vocabularies with a long tail.
ID_LIKE = 0.8
MIN_DOCUMENTS = 20  # among fewer documents, labels are unique by chance


def used_below(documents: Documents) -> Bools:
    """Mark labels that a document of any split has, or has below them in the hierarchy. Shape (n_labels,)."""
    used = np.bincount(documents.Y.indices, minlength=len(documents.labels)) > 0
    hierarchy = documents.labels.hierarchy
    if hierarchy is None:
        return used
    edges = hierarchy.edges
    depth = hierarchy.levels[edges[:, 0]]
    edges = edges[np.argsort(-depth, kind="stable")]  # from the leaves up, level by level
    starts = np.flatnonzero(np.diff(np.sort(-depth))) + 1
    for children, parents in (block.T for block in np.split(edges, starts)):
        used[parents[used[children]]] = True
    return used


def find_unused_labels(documents: Documents) -> Found | None:
    """Find labels that no document has, nor any label below them."""
    if not len(documents):
        return None
    return documents.found(np.flatnonzero(~used_below(documents)), len(documents.labels), documents.label_example)


def find_single_document_labels(documents: Documents) -> Found:
    """Find labels with one training document."""
    labels = np.flatnonzero(documents.counts == 1)
    return documents.found(labels, int((documents.counts > 0).sum()), documents.label_example)


def find_unseen_labels(documents: Documents) -> Found:
    """Find labels that only dev and test documents have."""
    elsewhere = np.bincount(documents.Y.indices, minlength=len(documents.labels)) - documents.counts
    labels = np.flatnonzero((elsewhere > 0) & (documents.counts == 0))
    labels = labels[np.argsort(-elsewhere[labels], kind="stable")]
    times, all_times = int(elsewhere[labels].sum()), max(int(elsewhere.sum()), 1)
    note = f"they make up {100 * times / all_times:.2g} % of the labels to be found there ({times:,} of {all_times:,})"
    return documents.found(labels, int((elsewhere > 0).sum()), documents.label_example, note)


def find_id_like_labels(documents: Documents) -> Found | None:
    """Find labels of one document each, in a column or in all, if most documents have one."""
    Y, names = documents.train.Y, documents.labels.names
    columns = {"": np.ones(len(names), bool)}
    if documents.columns is not None:
        columns = {f"{name}: ": mask for name, mask in documents.columns.masks(names).items()}
    labels, found_in = [], []
    for column, members in columns.items():
        single = members & (documents.counts == 1)
        has_any = Y @ members[: Y.shape[1]].astype(np.float32) > 0
        has_single = Y @ single[: Y.shape[1]].astype(np.float32) > 0
        if has_any.sum() >= MIN_DOCUMENTS and has_single.sum() >= ID_LIKE * has_any.sum():
            labels.append(np.flatnonzero(single))
            found_in += [f"column {column[:-2]}"] if column else []
    if not labels:
        return None
    return documents.found(np.concatenate(labels), len(names), documents.label_example, "; ".join(found_in))


# Characters of a name that may be mistyped: each name is stored once per character that may be missing, so that longer
# names need memory.
MAX_LENGTH = 64
MIN_LENGTH = 8  # letters of a word that may be mistyped: of shorter words, many are one letter apart and both right
TIMES = 20  # how much more often the right spelling is used: two labels used about as often are both meant

_WORDS = re.compile(r"[^\W\d_]+")
_ACCENTED = re.compile("([a-z])[\u0300-\u036f]+")
_SEPARATOR = re.compile(
    r"[\s!\"&()/:;?\[\\\]^_`{|}~¡¿«»·\u2010-\u2027]"
    r"|(?<!\d)[.,]|[.,](?!\d)"  # 1.5 stays, so that it is not 15
    r"|(?<=\w)-|-(?!\d)"  # -1 stays, so that it is not 1
)


def singular(word: str) -> str:
    """Return a word without a plural ending by English rules; it matters only that both numbers give one word.

    >>> [singular(word) for word in ("cherries", "boxes", "eggs", "glass", "gas", "analysis")]
    ['cherry', 'box', 'egg', 'glass', 'gas', 'analysis']
    """
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes", "zes")):
        return word[:-2]
    return word[:-1]


def folded_name(name: str) -> str:
    """Return what the spellings of one name have in common; empty if nothing is left.

    >>> folded_name("T-Shirt"), folded_name("t shirts"), folded_name("Crème brûlée"), folded_name("food > Eggs")
    ('tshirt', 'tshirt', 'cremebrulee', 'food > egg')
    >>> folded_name("E 102"), folded_name("E-1020s"), folded_name("C++"), folded_name("1.5 l")
    ('e 102', 'e 1020s', 'c++', '1.5 l')
    """
    if PATH_SEPARATOR in name:
        steps = [folded_name(step) for step in name.split(PATH_SEPARATOR)]
        return PATH_SEPARATOR.join(steps) if all(steps) else ""
    text = name.casefold()
    if not text.isascii():
        text = unicodedata.normalize("NFC", _ACCENTED.sub(r"\1", unicodedata.normalize("NFKD", text)))
    words = _SEPARATOR.sub(" ", text.replace("'", "").replace("’", "")).split()
    if any(map(str.isdigit, text)):
        return " ".join(words)
    return "".join(map(singular, words))


def spellings(documents: Documents) -> list[list[int]]:
    """Return labels that are spellings of one name, most frequent first; in a table, only within a column.

    If a label and its parent are among them, they differ in meaning, however they are spelled.
    """
    columns = documents.columns
    labels = documents.labels
    groups = dict[tuple[int, str], list[int]]()
    for label, name in enumerate(labels.names):
        column, value = (0, name) if columns is None else columns.split_label(name)
        if key := folded_name(value):
            groups.setdefault((column, key), []).append(label)
    several = [group for group in groups.values() if len(group) > 1]
    group_of = np.full(len(labels), -1)
    for number, group in enumerate(several):
        group_of[group] = number
    related: set[int] = set()
    if labels.hierarchy is not None:
        children, parents = group_of[labels.hierarchy.edges.T]
        related = set(children[children == parents].tolist())
    kept = (group for number, group in enumerate(several) if number not in related)
    return [sorted(group, key=lambda label: (-documents.counts[label], label)) for group in kept]


def find_near_duplicate_labels(documents: Documents) -> Found | None:
    """Find labels that are another spelling of a more frequent one."""
    if not documents.labels.are_named:
        return None
    groups = sorted(spellings(documents), key=lambda labels: -int(documents.counts[labels[1:]].sum()))
    return replace(_with_counts(documents, groups), count=sum(len(labels) - 1 for labels in groups))


def _with_counts(documents: Documents, groups: Sequence[Sequence[int]]) -> Found:
    """Report groups of labels, each with the number of its documents."""
    names, counts = documents.labels.names, documents.counts

    def example(labels: Sequence[int]) -> Example:
        return Example(", ".join(f"{shown_name(names[label], 50)} ({counts[label]:,})" for label in labels))

    return documents.found(groups, len(names), example)


def deletions(name: str) -> Iterator[str]:
    """Return the name, and all names with one character less."""
    yield name
    for at in range(len(name)):
        yield name[:at] + name[at + 1 :]


def one_letter_apart(a: str, b: str) -> bool:
    """Return whether two names differ in one letter of a long word: one added, missing, replaced or swapped.

    >>> one_letter_apart("restaurant guide", "restuarant guide"), one_letter_apart("vitamin a", "vitamin b")
    (True, False)
    >>> one_letter_apart("immigration", "emigration"), one_letter_apart("aluminum", "aluminium")
    (False, True)
    """
    words = _WORDS.findall(a), _WORDS.findall(b)
    differ = [pair for pair in zip(*words, strict=False) if pair[0] != pair[1]]
    if len(words[0]) != len(words[1]) or len(differ) != 1 or min(map(len, differ[0])) < MIN_LENGTH:
        return False
    x, y = sorted(map(str, differ[0]), key=len)
    at = next((i for i, (p, q) in enumerate(zip(x, y, strict=False)) if p != q), len(x))
    if at == 0:  # words with different first letters differ in meaning
        return False
    if len(x) < len(y):
        return x[at:] == y[at + 1 :]
    return x[at + 1 :] == y[at + 1 :] or (x[at + 2 :] == y[at + 2 :] and x[at : at + 2] == y[at : at + 2][::-1])


def find_mistyped_labels(documents: Documents) -> Found | None:
    """Find rare labels that differ in one letter from a much more frequent one."""
    if not documents.labels.are_named:
        return None
    return _with_counts(documents, list(mistyped(documents)))


def mistyped(documents: Documents) -> Iterator[tuple[int, int]]:
    """Return pairs of a rare label and a frequent one that differ in one letter."""
    columns, names, counts = documents.columns, documents.labels.names, documents.counts
    short = {
        label: name.casefold()
        for label, name in enumerate(names)
        if MIN_LENGTH <= len(name) <= MAX_LENGTH and not any(map(str.isdigit, name))
    }
    by_deletion: dict[str, list[int]] = {}
    for label, name in short.items():
        if counts[label] >= TIMES:
            for shorter in deletions(name):
                by_deletion.setdefault(shorter, []).append(label)
    rare = (label for label in np.argsort(-counts, kind="stable").tolist() if label in short and counts[label] > 0)
    for label in rare:
        near = {other for shorter in deletions(short[label]) for other in by_deletion.get(shorter, ())}
        for other in sorted(near - {label}):
            if counts[other] < TIMES * counts[label] or not one_letter_apart(short[label], short[other]):
                continue
            if columns is None or columns.split_label(names[label])[0] == columns.split_label(names[other])[0]:
                yield label, other
                break


def redundant_edges(hierarchy: Hierarchy) -> Ints:
    """Return the edges (child, parent) whose parent is an ancestor of another parent too. Shape (n, 2)."""
    if np.diff(hierarchy.parents.indptr).max(initial=0) < 2:
        return np.zeros((0, 2), np.int32)
    both = hierarchy.parents.multiply(hierarchy.parents @ hierarchy.ancestors > 0).tocoo()
    return np.stack([both.row, both.col], axis=1).astype(np.int32)


def find_redundant_edges(documents: Documents) -> Found | None:
    """Find edges that the others imply."""
    hierarchy = documents.labels.hierarchy
    return None if hierarchy is None else _edges(documents, redundant_edges(hierarchy), hierarchy.parents.nnz)


def _edges(documents: Documents, edges: Ints, total: int) -> Found:
    names = documents.labels.names

    def example(edge: Ints) -> Example:
        return Example(f"{shown_name(names[edge[0]], 40)} -> {shown_name(names[edge[1]], 40)}")

    return documents.found(edges, total, example)


def find_several_roots(documents: Documents) -> Found | None:
    """Find labels below more than one root."""
    hierarchy = documents.labels.hierarchy
    if hierarchy is None or np.diff(hierarchy.parents.indptr).max(initial=0) < 2:
        return None
    n_roots = hierarchy.ancestors @ (hierarchy.levels == 0).astype(np.float32)
    return documents.found(np.flatnonzero(n_roots > 1), len(documents.labels), documents.label_example)


def find_single_children(documents: Documents) -> Found | None:
    """Find only children that no document tells from their parents."""
    hierarchy = documents.labels.hierarchy
    if hierarchy is None or not len(documents.train):
        return None
    edges = hierarchy.edges
    n_children = np.bincount(hierarchy.parents.indices, minlength=len(documents.labels))
    edges = edges[n_children[edges[:, 1]] == 1]
    by_label = documents.Y.tocsc()
    together = by_label[:, edges[:, 0]].multiply(by_label[:, edges[:, 1]]).sum(axis=0).A1
    counts = by_label.getnnz(axis=0)
    edges = edges[(together == counts[edges[:, 1]]) & (counts[edges[:, 0]] > 0)]
    return _edges(documents, edges, len(documents.labels))


def find_uneven_ancestors(documents: Documents) -> Found | None:
    """Find documents that lack parents of their labels where most have them, or have some where most have none."""
    hierarchy, Y = documents.labels.hierarchy, documents.Y
    if hierarchy is None or not Y.nnz:
        return None
    with_parents, n_with_one = parents_present(hierarchy, Y)
    lacks, has = n_with_one < with_parents, n_with_one > 0
    n = int((with_parents > 0).sum())
    mostly_complete = 2 * lacks.sum() <= n  # the habit of the majority is taken as the rule
    numbers = np.flatnonzero(lacks if mostly_complete else has)

    note = "most documents have a parent of each label too; these lack some"
    if not mostly_complete:
        note = "most documents have their most specific labels only; these have a label and its parent"
    return documents.found(numbers, n, lambda at: documents.example(at, what=documents.label_names(at)), note)


def parents_present(hierarchy: Hierarchy, Y: Csr) -> tuple[Longs, Longs]:
    """Count the labels of each document that have parents, and those whose parent it has too. Shape (n,) each."""
    n, n_labels = Y.shape
    n_parents = np.diff(hierarchy.parents.indptr).astype(np.int64)[Y.indices]
    check_ancestors(int(n_parents.sum()), Y.nnz)
    document = np.repeat(np.arange(n), np.diff(Y.indptr))
    entry = np.repeat(np.arange(Y.nnz), n_parents)
    parents = rows_of(hierarchy.parents.indices, hierarchy.parents.indptr[Y.indices], n_parents, n_labels).indices
    wanted, present = document[entry] * n_labels + parents, document * n_labels + Y.indices
    has_one = np.zeros(Y.nnz, bool)
    has_one[entry[np.isin(wanted, present)]] = True
    counts = [np.bincount(document[which], minlength=n) for which in (n_parents > 0, has_one)]
    return counts[0], counts[1]
