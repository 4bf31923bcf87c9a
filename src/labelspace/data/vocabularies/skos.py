"""SKOS: statements of a file -> the concepts of a vocabulary.

1. A concept has the type skos:Concept and an IRI, and is not owl:deprecated.
2. Its names are skos:prefLabel; if there is none in a language, rdfs:label. Its synonyms are skos:altLabel, and
   skos:hiddenLabel those that are never shown. Labels of SKOS-XL, which are nodes with a literal form, count too.
3. The hierarchy is skos:broader, and skos:narrower turned round. Links to resources that are no concepts here are left
   out.
4. Its description is skos:definition, or else skos:scopeNote; those that are nodes have their text as rdf:value.
5. Concepts are sorted by IRI, so that files with equal content give equal labels, whatever their order.
6. What is owl:deprecated, or has a dct:isReplacedBy, is kept by its IRI with that of its replacements: a model may have
   a label of it.
"""

from array import array
from collections.abc import Iterable

import numpy as np

from labelspace.data.vocabularies.concept_texts import TextColumn, Texts
from labelspace.data.vocabularies.vocabulary import Note, Vocabulary
from labelspace.errors import DataError
from labelspace.types import Bools, Longs

_SKOS = "http://www.w3.org/2004/02/skos/core#"
_XL = "http://www.w3.org/2008/05/skos-xl#"
_RDFS_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
_FORM = f"{_XL}literalForm"
_VALUE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#value"
_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_DEPRECATED = "http://www.w3.org/2002/07/owl#deprecated"
_REPLACED = "http://purl.org/dc/terms/isReplacedBy"
_NAMES, _SYNONYMS, _HIDDEN, _NOTATION, _BROADER, _NARROWER = (
    _SKOS + name for name in ("prefLabel", "altLabel", "hiddenLabel", "notation", "broader", "narrower")
)
_DESCRIPTIONS = (f"{_SKOS}definition", f"{_SKOS}scopeNote")  # the preferred one first
# Links to nodes with a text: the property of that text, and what it is of the concept.
_NODE_LINKS = {
    **{_XL + name: (_FORM, _SKOS + name) for name in ("prefLabel", "altLabel", "hiddenLabel")},
    **{name: (_VALUE, name) for name in _DESCRIPTIONS},
}
_TEXTS = (_NAMES, _SYNONYMS, _HIDDEN, _NOTATION, _RDFS_LABEL, _FORM, _VALUE, *_DESCRIPTIONS)
_LINKS = (_BROADER, _NARROWER, *_NODE_LINKS)
PROPERTIES = frozenset((*_TEXTS, *_LINKS, _TYPE, _DEPRECATED, _REPLACED))
_GROUPS = {_SKOS + name for name in ("Collection", "OrderedCollection", "ConceptScheme")}


class Statements:
    """The statements of a file about concepts, as they are read; properties outside ``PROPERTIES`` are skipped."""

    def __init__(self) -> None:
        self._nodes: dict[str, int] = {}
        self._languages: dict[str, str] = {}
        self._texts = {name: TextColumn() for name in _TEXTS}
        self._links = {name: (array("i"), array("i")) for name in _LINKS}
        self._concepts, self._deprecated, self._groups = array("i"), array("i"), array("i")
        self._replaced: list[tuple[str, str]] = []  # each with one of its replacements
        self._n_unfit = 0  # statements whose value is a literal where a node is due, or the other way round

    def add(self, subject: str, relation: str, value: str, language: str | None) -> None:
        """Take one statement; ``language`` is None unless the value is a literal."""
        if relation in self._texts and language is not None:
            self._texts[relation].add(self._node(subject), value, self._languages.setdefault(language, language))
        elif relation in self._links and language is None:
            for column, node in zip(self._links[relation], (subject, value), strict=True):
                column.append(self._node(node))
        elif relation == _TYPE:
            if value == f"{_SKOS}Concept":
                self._concepts.append(self._node(subject))
            elif value in _GROUPS:
                self._groups.append(self._node(subject))
        elif relation == _DEPRECATED:
            if value in {"true", "1"}:
                self._deprecated.append(self._node(subject))
        elif relation == _REPLACED:  # some files write the IRI as a literal
            self._replaced.append((subject, value))
        elif relation in PROPERTIES:
            self._n_unfit += 1

    def _node(self, name: str) -> int:
        return self._nodes.setdefault(name, len(self._nodes))

    def vocabulary(self, source: str) -> Vocabulary:
        """Return the concepts; ``source`` names the file in the error if there are none."""
        uris = list(self._nodes)
        is_concept, is_deprecated, groups = map(self._marked, (self._concepts, self._deprecated, self._groups))
        is_blank = np.fromiter((uri.startswith("_:") for uri in uris), bool, len(uris))
        kept = np.flatnonzero(is_concept & ~is_deprecated & ~is_blank).tolist()
        if not kept:
            rule = "a vocabulary must have concepts (rdf:type skos:Concept) in use"
            raise DataError(f"{rule}, but {source} has none; check that it is SKOS")
        kept.sort(key=uris.__getitem__)
        rows = np.full(len(uris), -1, np.int64)
        rows[kept] = np.arange(len(kept))
        self._add_texts_of_nodes()
        broader, n_outside = self._broader(rows)
        n_deprecated, n_blank = int((is_concept & is_deprecated).sum()), int((is_concept & is_blank).sum())
        n_untyped = int((self._marked(self._texts[_NAMES].nodes) & ~is_concept & ~groups & ~is_blank).sum())
        notes = [
            Note("deprecated", n_deprecated, "deprecated concepts, left out"),
            Note("blank", n_blank, "concepts that are blank nodes and have no URI, left out"),
            Note("untyped", n_untyped, "named resources that are not of the type skos:Concept, left out"),
            Note("broader_outside", n_outside, "links to broader concepts that are not in use here, left out"),
            Note("unfit", self._n_unfit, "statements with a literal in place of a node, or the reverse, left out"),
        ]
        texts = (self._grouped(name, rows, len(kept)) for name in (_NAMES, _RDFS_LABEL, _SYNONYMS, _HIDDEN, _NOTATION))
        names, others, synonyms, hidden, notations = texts
        described = [self._grouped(name, rows, len(kept)) for name in _DESCRIPTIONS]
        replaced = self._replacements(uris[at] for at in np.flatnonzero(is_deprecated & ~is_blank).tolist())
        return Vocabulary(
            [uris[at] for at in kept], names, others, synonyms, hidden, notations, broader, notes, replaced, described
        )

    def _replacements(self, deprecated: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Return the replacements of what is deprecated or replaced, in alphabetical order."""
        found: dict[str, set[str]] = {uri: set() for uri in deprecated}
        for uri, replacement in self._replaced:
            found.setdefault(uri, set()).add(replacement)
        return {uri: tuple(sorted(replacements)) for uri, replacements in found.items()}

    def _marked(self, nodes: "array[int]") -> Bools:
        marks = np.zeros(len(self._nodes), bool)
        marks[np.asarray(nodes, np.int64)] = True
        return marks

    def _add_texts_of_nodes(self) -> None:
        """Add the texts of nodes, such as labels of SKOS-XL, to the concepts that they belong to."""
        places = {text: {node: at for at, node in enumerate(self._texts[text].nodes)} for text in (_FORM, _VALUE)}
        for link, (text, name) in _NODE_LINKS.items():
            forms = self._texts[text]
            for concept, node in zip(*self._links[link], strict=True):
                at = places[text].get(node)
                if at is not None:
                    self._texts[name].add(concept, forms.values[at], forms.languages[at])

    def _broader(self, rows: Longs) -> tuple[Longs, int]:
        """Return the edges between concepts in use, and how many edges of concepts in use lead elsewhere."""
        up, down = (np.array(self._links[name], np.int64).reshape(2, -1) for name in (_BROADER, _NARROWER))
        edges = rows[np.concatenate([up, down[::-1]], axis=1)].T  # (n, 2)
        inside = (edges >= 0).all(axis=1)
        return np.unique(edges[inside], axis=0), int(((edges >= 0).any(axis=1) & ~inside).sum())

    def _grouped(self, name: str, rows: Longs, n: int) -> Texts:
        column = self._texts[name]
        return Texts.grouped(rows[np.asarray(column.nodes, np.int64)], column.values, column.languages, n)
