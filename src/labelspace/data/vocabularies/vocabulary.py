"""The concepts of a vocabulary in columns, since millions of objects are too many; labels of concepts.

1. The name is the preferred one in the language, also with a region (``en-GB`` for ``en``); else rdfs:label in the
   language; else a name without language; else one in the most frequent other language; else the end of the URI.
2. If several concepts have one name, each gets its notation or the end of its URI in parentheses.
3. A name must not start with ``#``, which begins a comment in ``hierarchy.tsv``: such a name is put in quotes.
4. Synonyms are those in the language or without one. Names in all languages are kept too.
5. The language of a description is chosen as that of a name.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from labelspace.data.vocabularies.concept_texts import Texts, texts_by_language
from labelspace.errors import DataError
from labelspace.types import Concept, Longs
from labelspace.types.concept import one_line

Item = TypeVar("Item")


@dataclass(frozen=True)
class Note:
    """Something a user should know of an import: a key for programs, how often, and what it is.

    >>> str(Note("deprecated", 1200, "deprecated concepts, left out"))
    'deprecated concepts, left out: 1,200'
    """

    key: str
    count: int
    text: str

    def __str__(self) -> str:
        return f"{self.text}: {self.count:,}"


@dataclass(frozen=True)
class Vocabulary:
    """Concepts: URIs, names, synonyms, notations, and which is broader than which."""

    uris: Sequence[str | None]
    names: Texts  # preferred ones
    other_names: Texts  # rdfs:label, used if a language has no preferred name
    synonyms: Texts
    hidden: Texts
    notations: Texts
    broader: Longs | None  # (n, 2) rows of narrower and broader concept; None where the file says nothing of it
    notes: list[Note] = field(default_factory=list)
    # URIs of what is not in use any more, or has a replacement; with the URIs of its replacements, if any.
    replaced: Mapping[str, Sequence[str]] = field(default_factory=dict)
    descriptions: Sequence[Texts] = ()  # of several kinds, the preferred one first

    def __len__(self) -> int:
        return len(self.uris)

    def only(self, rows: Longs) -> "Vocabulary":
        """Return some concepts, in the order of ``rows``, and the links between them."""
        broader = self.broader
        if broader is not None:
            number = np.full(len(self), -1, np.int64)
            number[rows] = np.arange(len(rows))
            broader = number[broader]
            broader = broader[(broader >= 0).all(axis=1)]
        return replace(
            self,
            uris=[self.uris[row] for row in rows.tolist()],
            names=self.names.only(rows),
            other_names=self.other_names.only(rows),
            synonyms=self.synonyms.only(rows),
            hidden=self.hidden.only(rows),
            notations=self.notations.only(rows),
            broader=broader,
            descriptions=[texts.only(rows) for texts in self.descriptions],
        )

    def check_descriptions(self) -> None:
        """Raise DataError for a description that a label cannot have."""
        for texts in self.descriptions:
            for at, text in enumerate(texts.values):
                try:
                    one_line(text)
                except ValueError as error:
                    row = int(np.searchsorted(texts.begins, at, side="right")) - 1
                    shown = self.uris[row] or self.names.of(row)[0][1]
                    problem = f"{shown[:80]!r} has {text[:40] + '...'!r}"
                    raise DataError(f"a concept must have {error}, but {problem}; correct it") from None

    def languages(self) -> list[str]:
        """Return the languages of the names, the one with the most names first; of equal ones in alphabetical order."""
        counts = Counter(self.names.languages) + Counter(self.other_names.languages)
        return sorted(counts, key=lambda language: (-counts[language], language))

    def notation(self, row: int) -> str | None:
        """Return the notation of a concept; of several, the first in alphabetical order."""
        found = self.notations.of(row)
        return found[0][1] if found else None

    def endings(self, row: int) -> list[str]:
        """Return what may be appended to the name of a concept that is not unique."""
        uri = self.uris[row]
        return [choice for choice in (self.notation(row), last_part(uri or ""), uri) if choice]


class Computed(Sequence[Item]):
    """A sequence whose items are computed on access, and not kept.

    >>> list(Computed(3, lambda at: at * at))
    [0, 1, 4]
    """

    def __init__(self, n: int, make: Callable[[int], Item]) -> None:
        self._n, self._make = n, make

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 - as a list has it: a number or a slice
        at = range(self._n)[index]
        return [self._make(each) for each in at] if isinstance(at, range) else self._make(at)

    def __iter__(self) -> Iterator[Item]:
        return map(self._make, range(self._n))


NO_LANGUAGE = ""


class Naming:
    """Names, synonyms and concepts of the rows of a vocabulary in a language."""

    def __init__(self, vocabulary: Vocabulary, language: str) -> None:
        self.vocabulary, self.language = vocabulary, language
        others = [each for each in vocabulary.languages() if each not in (language, NO_LANGUAGE)]
        regions = [each for each in others if language and each.startswith(f"{language}-")]
        described = sorted({each for texts in vocabulary.descriptions for each in texts.languages})
        self._preference = list(dict.fromkeys([language, *regions, NO_LANGUAGE, *others, *described]))
        self._own = {language, NO_LANGUAGE, *regions}
        self.counts = Counter[str]()

    def bases(self) -> list[str]:
        """Return the name of each concept, which several may have; substitutes for missing names are counted."""
        self.counts.clear()
        return [self._base(row) for row in range(len(self.vocabulary))]

    def _base(self, row: int) -> str:
        names = self._names(row)
        language = self._best(names)
        if language is None:
            self.counts["unnamed"] += 1
        elif language not in self._own:
            self.counts["other_language"] += 1
        name = last_part(self.vocabulary.uris[row] or "") if language is None else names[language]
        self.counts["quoted"] += name.startswith("#")
        return f'"{name}"' if name.startswith("#") else name

    def _names(self, row: int) -> dict[str, str]:
        return texts_by_language((self.vocabulary.names, self.vocabulary.other_names), row)

    def _best(self, texts: Container[str]) -> str | None:
        """Return the preferred one of some languages."""
        return next((each for each in self._preference if each in texts), None)

    def description(self, row: int) -> str | None:
        """Return the description of a concept."""
        found = texts_by_language(self.vocabulary.descriptions, row)
        language = self._best(found)
        return None if language is None else found[language]

    def synonyms(self, row: int, name: str) -> list[str]:
        """Return the synonyms, among them a preferred name that is not the label's; hidden ones last."""
        shown = self._shown(row, name)
        return [*shown, *self._hidden(row, name, shown)]

    def _shown(self, row: int, name: str) -> dict[str, None]:
        voc = self.vocabulary
        columns = (voc.synonyms, voc.names, voc.other_names)
        shown = dict.fromkeys(text for texts in columns for text in self._in_language(texts, row))
        shown.pop(name, None)
        return shown

    def _hidden(self, row: int, name: str, shown: Container[str]) -> tuple[str, ...]:
        hidden = dict.fromkeys(self._in_language(self.vocabulary.hidden, row))
        return tuple(text for text in hidden if text != name and text not in shown)

    def _in_language(self, texts: Texts, row: int) -> Iterable[str]:
        return (text for language, text in texts.of(row) if language in self._own)

    def concept(self, row: int, name: str) -> Concept:
        """Return URI, notation, names by language, hidden names and description of a row."""
        voc = self.vocabulary
        names = self._names(row)
        names.pop(NO_LANGUAGE, None)
        hidden = self._hidden(row, name, self._shown(row, name))
        return Concept(voc.uris[row], voc.notation(row), names, hidden, self.description(row))

    def notes(self) -> list[Note]:
        """Return notes on what ``bases`` found, and on what the labels lack of the vocabulary."""
        voc = self.vocabulary
        shown = self.language or "no language"
        left_out = sum(each not in self._own for texts in (voc.synonyms, voc.hidden) for each in texts.languages)
        several = int(((voc.notations.begins[1:] - voc.notations.begins[:-1]) > 1).sum())
        return [
            Note("other_language", self.counts["other_language"], f"concepts named in a language other than {shown}"),
            Note("unnamed", self.counts["unnamed"], "concepts without any name, named by the end of their URI"),
            Note("quoted", self.counts["quoted"], "names that start with '#', put in quotes"),
            Note("synonyms_left_out", left_out, f"synonyms in languages other than {shown}, left out"),
            Note("several_notations", several, "concepts with several notations; the first is kept"),
            Note("descriptions_left_out", self._n_other_descriptions(), "further descriptions of concepts, left out"),
        ]

    def _n_other_descriptions(self) -> int:
        """Return the number of descriptions besides the one that each concept keeps."""
        sizes = [np.diff(texts.begins) for texts in self.vocabulary.descriptions]
        return int(np.maximum(np.sum(sizes, axis=0) - 1, 0).sum()) if sizes else 0


def unique_names(
    bases: Sequence[str], kept: Sequence[str | None], taken: Iterable[str], endings: Callable[[int], list[str]]
) -> tuple[list[str], list[str]]:
    """Return names that no two labels share, and those among them that were changed for it.

    ``kept`` has names that rows have already, or None; ``taken`` are names of other labels. ``endings`` gives what may
    be appended to the name of a row in parentheses, best first.

    >>> unique_names(["bank", "cat", "bank"], [None] * 3, [], lambda row: [f"n{row}"])
    (['bank (n0)', 'cat', 'bank (n2)'], ['bank (n0)', 'bank (n2)'])
    """
    used = {*taken, *(name for name in kept if name is not None)}
    repeated = set[str]()
    for base, name in zip(bases, kept, strict=True):
        if name is None:
            (repeated if base in used else used).add(base)
    names = [base if name is None else name for base, name in zip(bases, kept, strict=True)]
    changed = list[str]()
    for row, base in enumerate(bases):
        if kept[row] is not None or base not in repeated:
            continue
        name = base
        choices = [f"{base} ({ending})" for ending in endings(row)]
        while name in used:
            name = choices.pop(0) if choices else f"{name}'"
        used.add(name)
        names[row] = name
        changed.append(name)
    return names, changed


def last_part(uri: str) -> str:
    """Return the end of a URI, after the last ``#``, ``/`` or ``:``; all of it if that end is empty.

    >>> last_part("http://example.org/animals#p12"), last_part("urn:isbn:1"), last_part("http://example.org/")
    ('p12', '1', 'http://example.org/')
    """
    return max((uri.rpartition(mark) for mark in "#/:"), key=lambda parts: len(parts[0]))[2] or uri
