"""A new edition of a vocabulary -> the labels of a model that learned with an earlier one.

1. Labels are matched to concepts by URI, or by name if one of the two has no URI, as in an import into a folder.
2. A concept that is owl:deprecated, or that is not but has a dct:isReplacedBy in the file, is merged into the concept
   that replaces it, over several steps; of several replacements, the first by URI counts. Without one, it is retired.
3. New concepts are appended. A label gets the concept's name, unless that stayed the same and the label's did not; the
   name before becomes a synonym. Synonyms from before stay, unless another concept has them now.
4. The links to broader concepts are those of the file; a link from or to a label that is not in use is bypassed.
5. Labels that the file does not have at all stay as they are: nothing says that they are wrong. Labels that were
   retired or merged before stay so too, even if the file has them.

What was learned stays: labels keep their ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from labelspace import store
from labelspace.data.vocabularies.update import Matching, example_note, synonyms_of, usual_language, without_cycles
from labelspace.data.vocabularies.vocabulary import Naming, Note, Vocabulary, last_part
from labelspace.errors import DataError
from labelspace.models.capabilities import PartialFit
from labelspace.tagger import learning
from labelspace.tagger.label_edits import next_version
from labelspace.tagger.lineage import UNKNOWN, Origin, labels_version
from labelspace.tagger.tagger import Tagger
from labelspace.tagger.versions import open_versioned
from labelspace.types import Concept, Hierarchy, LabelSpace, Longs

MEANINGS = {
    "added": "added",
    "renamed": "renamed, the name before is a synonym",
    "described": "with other synonyms, another description, or other names in other languages",
    "merged": "deprecated, merged into the replacement",
    "retired": "deprecated without a replacement, retired",
    "moved": "below other labels of the hierarchy",
    "gone": "not in the file, kept",
}


@dataclass(frozen=True)
class VocabularyUpdate:
    """The labels of a model before and after a new edition of its vocabulary."""

    before: LabelSpace
    after: LabelSpace
    language: str
    changes: dict[str, list[int]]  # the labels of each kind of change
    notes: list[Note]

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        return not any(labels for kind, labels in self.changes.items() if kind != "gone")

    def examples(self, kind: str, n: int) -> list[str]:
        """Return the first labels of a kind of change, by name; of two names, with the other one."""
        return [self._shown(kind, label) for label in self.changes[kind][:n]]

    def _shown(self, kind: str, label: int) -> str:
        if kind == "renamed":
            return f"{self.before.names[label]} -> {self.after.names[label]}"
        if kind == "merged":
            return f"{self.before.names[label]} -> {self.after.names[int(self.after.answered_as[label])]}"
        if kind == "moved":
            return f"{self.after.names[label]} (below {self._above(label)})"
        return self.after.names[label]

    def _above(self, label: int) -> str:
        parents = _parents(self.after, label)
        return ", ".join(self.after.names[parent] for parent in sorted(parents)) or "no label"


def plan_vocabulary_update(
    vocabulary: Vocabulary, before: LabelSpace, language: str | None = None, can_add: bool = True
) -> VocabularyUpdate:
    """Return what a new edition makes of the labels of a model; ``can_add`` says whether it can get new ones.

    By default, names are in the language of the labels, else in the language with the most names.
    """
    language = (usual_language(vocabulary, before) if language is None else language).lower()
    replacement = _Replacements(vocabulary)
    current_rows = [row for row, uri in enumerate(vocabulary.uris) if uri is None or replacement.of(uri) is None]
    vocabulary = vocabulary.only(np.array(current_rows, np.int64))
    n_not_added = 0
    if not can_add:
        known = np.flatnonzero(Matching.of(before, Naming(vocabulary, language)).ids < len(before))
        n_not_added = len(vocabulary) - len(known)
        vocabulary = vocabulary.only(known)
    deprecated = _deprecated(before, replacement)
    released = {*deprecated, *np.flatnonzero(~before.in_use).tolist()}
    matching = Matching.of(before, Naming(vocabulary, language), released)
    if not (matching.rows[: len(before)] >= 0).any() and before.uris.keys().isdisjoint(replacement.replaced):
        rule = (
            f"the vocabulary must have concepts of the model's labels, but has none of {len(before):,}, by URI or name"
        )
        raise DataError(f"{rule}; give an edition of their vocabulary, or name the language of the labels")
    plan = _Plan(matching, deprecated)
    after = plan.labels()
    changes = _changes(before, after, matching, vocabulary)
    several = [before.names[label] for label in changes["merged"] if replacement.has_several(before.concept(label).uri)]
    out = np.flatnonzero(~before.in_use & (matching.rows[: len(before)] >= 0)).tolist()
    notes = [
        *(each for each in vocabulary.notes if each.key != "deprecated"),  # the changes say what becomes of them
        *matching.naming.notes(),
        Note("not_added", n_not_added, "new concepts, left out: the method cannot take new labels"),
        example_note("kept", "deprecated labels that stay: the model cannot take their replacements", plan.kept),
        example_note("several_replacements", "deprecated labels with several replacements; the first counts", several),
        example_note("homonyms", "names of several concepts, made unique by the notation or the end of the URI",
                     matching.homonyms),
        example_note("still_out", "labels that were retired or merged before, and are in use in the file",
                     [before.names[label] for label in out]),
    ]  # fmt: skip
    return VocabularyUpdate(before, after, language, changes, [note for note in notes if note.count])


class _Replacements:
    """The concept in use by which each concept that is not in use any more is replaced."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.replaced = vocabulary.replaced
        self._concepts = {uri for uri in vocabulary.uris if uri is not None}
        self._found: dict[str, str | None] = {}

    def of(self, uri: str) -> str | None:
        """Return the URI of the first replacement that is in use, over several steps; None if there is none."""
        if uri not in self.replaced:
            return None
        if uri not in self._found:
            self._found[uri] = next(self._in_use(uri), None)
        return self._found[uri]

    def is_in_use(self, uri: str) -> bool:
        """Return whether the file has the concept, and not as a deprecated one."""
        return uri in self._concepts

    def has_several(self, uri: str | None) -> bool:
        """Return whether a concept names several replacements."""
        return uri is not None and len(self.replaced.get(uri, ())) > 1

    def _in_use(self, uri: str) -> Iterator[str]:
        seen = {uri}
        waiting = list(reversed(self.replaced[uri]))
        while waiting:
            found = waiting.pop()
            if found in seen:  # some files have circles
                continue
            seen.add(found)
            if found in self.replaced:
                waiting += reversed(self.replaced[found])
            elif found in self._concepts:
                yield found


def _deprecated(labels: LabelSpace, replacement: _Replacements) -> dict[int, str | None]:
    """Return the labels in use whose concept is not in use any more, each with the URI of its replacement, if any."""
    found: dict[int, str | None] = {}
    for uri in replacement.replaced:
        label = labels.uris.get(uri)
        if label is None or not labels.in_use[label]:
            continue
        by = replacement.of(uri)
        if by is not None or not replacement.is_in_use(uri):
            found[label] = by
    return found


class _Plan:
    """The labels after an update."""

    def __init__(self, matching: Matching, deprecated: dict[int, str | None]) -> None:
        self.before, self.matching = matching.before, matching
        self.n = len(matching.rows)
        self.kept: list[str] = []  # deprecated ones that stay
        uris = {uri: int(matching.ids[row]) for row, uri in enumerate(matching.naming.vocabulary.uris) if uri}
        self.current = np.arange(self.n)
        if self.before.current is not None:
            self.current[: len(self.before)] = self.before.current
        for label, uri in deprecated.items():
            self._put_out(label, uri, uris)

    def _put_out(self, label: int, uri: str | None, uris: dict[str, int]) -> None:
        """Merge a deprecated label into the label of its replacement, or retire it."""
        by = -1 if uri is None else uris.get(uri)
        if by is None:
            self.kept.append(self.before.names[label])
            return
        into = by if by < 0 else int(self.current[by])
        if into == label:  # the replacement was merged into it before
            into = by
        self.current[self.current == label] = into

    def labels(self) -> LabelSpace:
        """Return the labels with names, synonyms, concepts, counts and hierarchy."""
        names = self._names()
        synonyms, hidden = self._synonyms(names)
        concepts = [replace(self.matching.concept(label), hidden=tuple(also)) for label, also in enumerate(hidden)]
        counts = self.before.counts
        if counts is not None:
            counts = np.append(counts, np.zeros(self.n - len(self.before), np.int64))
        current = None if (self.current == np.arange(self.n)).all() else self.current.astype(np.int32)
        listed = [[*shown, *also] for shown, also in zip(synonyms, hidden, strict=True)]
        edges, _ = without_cycles(self._edges(), self.n)
        hierarchy = Hierarchy.from_edges(edges, self.n, names) if len(edges) else None
        return LabelSpace(names, listed, counts, self.before.n_documents, hierarchy, concepts, current)

    def _names(self) -> list[str]:
        """Return unique names; a label that is not in use gives way to a concept of its name."""
        rows = self.matching.rows
        names = [self.before.names[label] if row < 0 else self.matching.names[row] for label, row in enumerate(rows)]
        used = {names[label] for label in np.flatnonzero((rows >= 0) | (self.current == np.arange(self.n))).tolist()}
        for label in np.flatnonzero((rows < 0) & (self.current != np.arange(self.n))).tolist():
            name = names[label]
            ending = last_part(self.before.concept(label).uri or "") or str(label)
            while name in used:
                name = f"{name} ({ending})"
            used.add(name)
            names[label] = name
        return names

    def _synonyms(self, names: Sequence[str]) -> tuple[list[list[str]], list[list[str]]]:
        """Return the synonyms that are shown, and the hidden ones, of each label."""
        own = [self._own_synonyms(label, name) for label, name in enumerate(names)]
        owner: dict[str, int] = {}
        for label in np.flatnonzero(self.matching.rows >= 0).tolist():
            for text in (names[label], *own[label]):
                owner.setdefault(text, int(self.current[label]))
        before = self._given_before()
        shown, hidden = list[list[str]](), list[list[str]]()
        for label, name in enumerate(names):
            also = [text for text in before[label] if owner.get(text, label) in (label, -1)]
            every = [text for text in dict.fromkeys([*own[label], *also]) if text != name]
            secret = self._hidden(label)
            shown.append([text for text in every if text not in secret])
            hidden.append([text for text in every if text in secret])
        return shown, hidden

    def _own_synonyms(self, label: int, name: str) -> list[str]:
        row = int(self.matching.rows[label])
        return [] if row < 0 else self.matching.naming.synonyms(row, name)

    def _given_before(self) -> list[list[str]]:
        """Return the names that each label had, and those of labels that are merged into it now."""
        known = range(len(self.before))
        before = [[self.before.names[label], *synonyms_of(self.before, label)] for label in known]
        before += [[] for _ in range(self.n - len(self.before))]
        was_in_use = self.before.in_use
        for label in known:
            now = int(self.current[label])
            if was_in_use[label] and now not in (label, -1):
                before[now] = [*before[now], *before[label]]
        return before

    def _hidden(self, label: int) -> set[str]:
        """Return the names that must not be shown: by the file, or before and not shown by the file."""
        row = int(self.matching.rows[label])
        by_file = set(self.matching.concept(label).hidden)
        before = set(self.before.concept(label).hidden) if label < len(self.before) else set()
        shown = set() if row < 0 else set(self.matching.naming.synonyms(row, "")) - by_file
        return by_file | (before - shown)

    def _edges(self) -> Longs:
        """Return the edges between labels in use; those that are not in use are bypassed or replaced."""
        edges, _ = self.matching.edges()
        parents: dict[int, set[int]] = {}
        for child, parent in edges.tolist():
            parents.setdefault(child, set()).add(parent)
        found: dict[int, set[int]] = {}
        pairs = []
        for child in sorted(parents):
            if self.current[child] == child:
                above = {each for parent in parents[child] for each in self._in_use_above(parent, parents, found)}
                pairs += [(child, parent) for parent in sorted(above - {child})]
        return np.array(pairs, np.int64).reshape(-1, 2)

    def _in_use_above(self, label: int, parents: dict[int, set[int]], found: dict[int, set[int]]) -> set[int]:
        """Return the label itself or the one in its place, or the nearest ones in use above a retired label."""
        now = int(self.current[label])
        if now >= 0:
            return {now}
        if label not in found:
            seen, waiting, above = {label}, [label], set[int]()
            while waiting:
                for parent in parents.get(waiting.pop(), set()) - seen:
                    seen.add(parent)
                    if self.current[parent] >= 0:
                        above.add(int(self.current[parent]))
                    else:
                        waiting.append(parent)
            found[label] = above
        return found[label]


def _changes(before: LabelSpace, after: LabelSpace, matching: Matching, vocabulary: Vocabulary) -> dict[str, list[int]]:
    """Return the labels of each kind of change; a label may have several."""
    known = range(len(before))
    are_in_use = after.in_use[: len(before)] & before.in_use
    rows = matching.rows
    has_uris = any(uri is not None for uri in vocabulary.uris) and bool(before.uris)
    put_out = [label for label in known if before.in_use[label] and not after.in_use[label]]
    current = after.answered_as
    in_use = np.flatnonzero(are_in_use).tolist()
    renamed = [label for label in in_use if before.names[label] != after.names[label]]
    others = sorted(set(in_use) - set(renamed) - {int(current[label]) for label in put_out})
    return {
        "added": list(range(len(before), len(after))),
        "renamed": renamed,
        "described": [label for label in others if _description(before, label) != _description(after, label)],
        "merged": [label for label in put_out if current[label] >= 0],
        "retired": [label for label in put_out if current[label] < 0],
        "moved": [label for label in in_use if _parents(before, label) != _parents(after, label)],
        "gone": [label for label in in_use if rows[label] < 0 and (before.concept(label).uri or not has_uris)],
    }


def _description(labels: LabelSpace, label: int) -> tuple[set[str], Concept]:
    return set(synonyms_of(labels, label)) - {labels.names[label]}, replace(labels.concept(label), hidden=())


def _parents(labels: LabelSpace, label: int) -> set[int]:
    if labels.hierarchy is None:
        return set()
    parents = labels.hierarchy.parents
    return set(parents.indices[parents.indptr[label] : parents.indptr[label + 1]].tolist())


class SavedUpdate(NamedTuple):
    """An update of a saved model, and the version that it is now; None if nothing was written."""

    update: VocabularyUpdate
    number: int | None


def update_saved(
    folder: Path,
    vocabulary: Vocabulary,
    language: str | None = None,
    *,
    origin: Origin = UNKNOWN,
    n_kept: int = store.KEPT,
    dry_run: bool = False,
) -> SavedUpdate:
    """Bring a new edition of a vocabulary into a saved model, as its next version; unless nothing changes."""
    store.read_manifest(folder)
    if not dry_run:
        store.check_writable(folder)
    with open_versioned(folder, is_changed=not dry_run) as versions:
        tagger = Tagger.load(folder)
        found = update_vocabulary(tagger, vocabulary, language)
        if dry_run or found.is_empty:
            return SavedUpdate(found, None)
        made = next_version(tagger, versions, origin)
        versions.add(tagger, made, n_kept)
    return SavedUpdate(found, made.number)


def update_vocabulary(tagger: Tagger, vocabulary: Vocabulary, language: str | None = None) -> VocabularyUpdate:
    """Bring a new edition of a vocabulary into a tagger, without training; return what changed.

    >>> from labelspace.data.vocabularies.concept_texts import Texts
    >>> concepts = Texts.grouped([0, 1], ["bread", "rye"], ["en", "en"], n=2)
    >>> none = Texts.grouped([], [], [], n=2)
    >>> edition = Vocabulary(["x:1", "x:2"], concepts, none, none, none, none, np.array([[1, 0]]))
    >>> tagger = Tagger("neighbors").fit(["bake bread", "grill fish"] * 2, [["bread"], ["fish"]] * 2)
    >>> update_vocabulary(tagger, edition).changes["added"], tagger.labels_.names
    ([2], ['bread', 'fish', 'rye'])
    """
    tagger.check_fitted()
    found = plan_vocabulary_update(vocabulary, tagger.labels_, language, isinstance(tagger.model, PartialFit))
    if not found.is_empty:
        with labels_version(tagger):
            learning.set_labels(tagger, found.after)
    return found
