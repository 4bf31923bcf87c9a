"""Checks of label names: several spellings of one name, and names that look mistyped.

Two names are spellings of one if they are equal without case, punctuation, hyphens, spaces, accents of Latin letters
and plural endings. Digits always count: names with digits are codes, whose spaces and endings count too.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence

import numpy as np

from labelspace.data.checks.base import Example, Found, shown_name
from labelspace.data.checks.documents import Documents
from labelspace.types import PATH_SEPARATOR

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


def find_spellings(documents: Documents) -> Found | None:
    """Find labels that are another spelling of a more frequent one."""
    if not documents.labels.are_named:
        return None
    groups = sorted(spellings(documents), key=lambda labels: -int(documents.counts[labels[1:]].sum()))
    examples = tuple(Example(_with_counts(documents, labels)) for labels in groups[: documents.n_examples])
    count = sum(len(labels) - 1 for labels in groups)
    return Found(count, len(documents.labels), examples) if count else None


def _with_counts(documents: Documents, labels: Sequence[int]) -> str:
    return ", ".join(
        f"{shown_name(documents.labels.names[label], 50)} ({documents.counts[label]:,})" for label in labels
    )


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


def find_mistyped(documents: Documents) -> Found | None:
    """Find rare labels that differ in one letter from a much more frequent one."""
    if not documents.labels.are_named:
        return None
    pairs = list(mistyped(documents))
    examples = tuple(Example(_with_counts(documents, pair)) for pair in pairs[: documents.n_examples])
    return Found(len(pairs), len(documents.labels), examples) if pairs else None


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


FINDERS = {"near_duplicate_labels": find_spellings, "mistyped_labels": find_mistyped}
