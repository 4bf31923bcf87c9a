"""Serve a model: load it, load it again when its folder is replaced, describe its labels, and tag batches of texts."""

import logging
import os
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from math import isinf
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from labelspace import store
from labelspace.errors import ClusterError, ParameterError
from labelspace.labels.keep_rule import Omitted
from labelspace.labels.selection import label_of
from labelspace.labels.tag_options import TagOptions
from labelspace.models.capabilities import Calibrated, Explains, HasLabelPoints, HasMembers, LearnsPrecision
from labelspace.server.label_search import LabelSearch
from labelspace.tagger import Tagger
from labelspace.tagger.answers import DocumentAnswer
from labelspace.training.precision_thresholds import TARGETS
from labelspace.types import PATH_SEPARATOR, Csr, Floats, LabelSpace

CACHED = 20_000  # labels whose fields are kept; more save time for large vocabularies, and take memory
SAMPLED = 1000  # labels whose languages are read: reading all takes long in a large vocabulary
MAX_PATH = 50  # steps that are shown; it also ends a hierarchy with a cycle
URI_SCHEMES = ("http://", "https://", "urn:")


class LabelDetails:
    """The labels of a model, as answers show them.

    >>> details = LabelDetails(LabelSpace(["food > bread", "food > fish", "food"]).with_paths())
    >>> details[0]["name"], details[0]["path"]
    ('bread', ['food'])
    """

    def __init__(self, labels: LabelSpace) -> None:
        self.labels = labels
        self._children: Csr | None = None if labels.hierarchy is None else labels.hierarchy.parents.T.tocsr()
        self._details = lru_cache(CACHED)(self._make)

    def __getitem__(self, label: int) -> dict[str, Any]:
        """Return the fields of a label, which must not be changed."""
        return self._details(label)

    def named(self, label: int, language: str | None) -> dict[str, Any]:
        """Return the fields of a label, with its name in a language if it has one there."""
        shown = self[label]
        name = self.labels.concept(label).name_in(language, shown["name"]) if language else shown["name"]
        return shown if name == shown["name"] else {**shown, "name": name}

    @cached_property
    def languages(self) -> list[str]:
        """The languages of names, taken from the first labels: most labels of a vocabulary have the same."""
        sample = range(min(len(self.labels), SAMPLED))
        return sorted({language for label in sample for language in self.labels.concept(label).names})

    def find(self, label: str) -> int | None:
        """Return the label with a name, an id as text, or a URI, or None."""
        found = label_of(label, self.labels)
        return self.labels.find(label) if found is None and _is_uri(label.removeprefix("<")) else found

    def unique_name(self, label: str) -> str:
        """Return the unique name of a label that is given by name or id; raise ParameterError for an unknown label."""
        found = self.find(label)
        if found is None:
            rule = f"a label must be one of the model's {len(self.labels):,} names, or an id"
            raise ParameterError(f"{rule}, but {label[:80]!r} is none; search /labels?q=")
        return str(self.labels.names[found])

    def description(self, label: int) -> str | None:
        """Return the description of a label. Answers for many texts leave it out: it may be long."""
        return self.labels.concept(label).description

    def broader(self, label: int) -> list[int]:
        """Return the parents of a label."""
        if self.labels.hierarchy is None:
            return []
        parents = self.labels.hierarchy.parents
        return [int(at) for at in parents.indices[parents.indptr[label] : parents.indptr[label + 1]]]

    def narrower(self, label: int) -> list[int]:
        """Return the children of a label, the most frequent first."""
        if self._children is None:
            return []
        found = self._children.indices[self._children.indptr[label] : self._children.indptr[label + 1]]
        return self._by_count(found)

    def roots(self) -> list[int]:
        """Return the labels in use without a parent, the most frequent first; without a hierarchy, all in use."""
        if self.labels.hierarchy is None:
            return self._by_count(np.flatnonzero(self.labels.in_use))
        is_root = np.diff(self.labels.hierarchy.parents.indptr) == 0
        return self._by_count(np.flatnonzero(is_root & self.labels.in_use))

    def n_below(self, label: int) -> int:
        """Return the number of labels below a label, on all levels."""
        if self._children is None:
            return 0
        found = np.zeros(len(self.labels), bool)
        frontier = np.array([label])
        while len(frontier):
            below = np.unique(self._children[frontier].indices)
            frontier = below[~found[below]]
            found[frontier] = True
        return int(found.sum())

    def shown_name(self, label: int) -> str:
        """Return the name to show: the last step of a path; for a URI, its first synonym that is a name."""
        name = self.labels.names[label]
        if _is_uri(name):
            return next((other for other in self.labels.shown_synonyms(label) if not _is_uri(other)), name)
        return name.rsplit(PATH_SEPARATOR, 1)[-1] if self.labels.hierarchy is not None else name

    def _make(self, label: int) -> dict[str, Any]:
        name = self.labels.names[label]
        shown = self.shown_name(label)
        synonyms = self.labels.shown_synonyms(label)
        concept = self.labels.concept(label)
        synonym = next((other for other in synonyms if other.lower() not in shown.lower() and not _is_uri(other)), None)
        return {
            "id": label,
            "label": name,
            "name": shown,
            "path": self.steps(label)[:-1],
            "synonym": synonym,
            "uri": concept.uri or next(filter(_is_uri, [name, *synonyms]), None),
            "notation": concept.notation,
            "count": 0 if self.labels.counts is None else int(self.labels.counts[label]),
        }

    def steps(self, label: int, unique: bool = False) -> list[str]:
        """Return the path from the root to a label (by the first parent), by names to show or by unique names."""
        found = [label]
        while len(found) <= MAX_PATH and (above := self.broader(found[-1])):
            found.append(above[0])
        return [self.labels.names[at] if unique else self.shown_name(at) for at in reversed(found)]

    def _by_count(self, labels: npt.ArrayLike) -> list[int]:
        at = np.asarray(labels, np.int64)
        counts = np.zeros(len(at), np.int64) if self.labels.counts is None else self.labels.counts[at]
        found: list[int] = at[np.argsort(-counts, kind="stable")].tolist()
        return found


def _is_uri(name: str) -> bool:
    return name.startswith(URI_SCHEMES)


logger = logging.getLogger("labelspace.server")
WARM_UP = "How long does a text have to be before every kernel has run once? Long enough for a few words and pairs."
UNHEARD_OF = "qzxjqzxj"  # a name that no label has, so that every way of searching runs once
DIGITS = 6  # of probabilities


class Options(NamedTuple):
    """``TagOptions`` that can be compared: requests with equal ones are answered together."""

    given: tuple[tuple[str, Any], ...] = ()  # names and values; labels are tuples

    def tag_options(self) -> TagOptions:
        """Return the options as keywords of a Tagger."""
        return cast(TagOptions, dict(self.given))

    def of_known_labels(self, labels: LabelDetails) -> "Options":
        """Return the options with the unique names of labels; an unknown label is an error."""
        named = dict(self.given)
        for name, value in self.given:
            if isinstance(value, tuple):
                named[name] = tuple(map(labels.unique_name, value))
        return Options(tuple(named.items()))

    @property
    def by_probability(self) -> bool:
        """Return True if labels are kept by their probability, which is then their score."""
        return any(name in ("min_probability", "precision") for name, _ in self.given)


class Tagged(NamedTuple):
    """The answer for one document."""

    labels: list[int]
    scores: list[float]
    probabilities: list[float] | None
    left_out: list[Omitted]
    note: str | None


@dataclass(frozen=True)
class LoadedModel:
    """One version of a model."""

    tagger: Tagger
    version: str
    created: str
    size_bytes: int
    labelspace_version: str

    @classmethod
    def load(cls, folder: Path, read_tagger: Callable[[Path], Tagger] = Tagger.load) -> "LoadedModel":
        """Read a model, and warm it up: kernels are compiled and pages read before the first request."""
        manifest, tagger = store.read_unreplaced(folder, lambda: (store.read_manifest(folder), read_tagger(folder)))
        check_reads_text(tagger, folder)
        changed = datetime.fromtimestamp((folder / "model.json").stat().st_mtime, UTC)
        created = changed.isoformat(timespec="seconds")
        written_by = str(manifest.get("versions", {}).get("labelspace", "?"))
        loaded = cls(tagger, version_of(manifest), created, store.folder_bytes(folder), written_by)
        loaded.warm_up()
        return loaded

    def warm_up(self) -> None:
        """Tag, explain and search once, as requests do."""
        self.tag([WARM_UP], 5, Options())
        self.tag([WARM_UP] * 3, 5, Options())
        if isinstance(self.tagger.model, Explains):
            self.tagger.explain(WARM_UP, k=1)
        self.search.find(UNHEARD_OF, 5)
        self.labels.find(UNHEARD_OF)

    @cached_property
    def labels(self) -> LabelDetails:
        """The fields of the labels."""
        return LabelDetails(self.tagger.labels_)

    @cached_property
    def search(self) -> LabelSearch:
        """The search for labels while their name is typed."""
        return LabelSearch(self.tagger.labels_)

    @property
    def is_calibrated(self) -> bool:
        """Return whether scores are probabilities."""
        return isinstance(self.tagger.model, Calibrated)

    def tag(self, texts: list[str], k: int, options: Options) -> list[Tagged]:
        """Return the k best labels of each text."""
        found = self.tagger.answers(texts, min(k, len(self.tagger.labels_)), **options.tag_options())
        top, model = found.answer, self.tagger.model
        probabilities = top
        if isinstance(model, Calibrated) and not options.by_probability:
            probabilities = model.to_probabilities(top)
        rows = zip(texts, found.documents(self.tagger.labels_), probabilities.scores, strict=True)
        return [self._tagged(text, answer, sure) for text, answer, sure in rows]

    def _tagged(self, text: str, answer: DocumentAnswer, sure: Floats) -> Tagged:
        problem = answer.problem(text)
        scores = np.round(answer.scores, DIGITS).tolist()
        probabilities = None
        if self.is_calibrated:
            probabilities = np.round(sure[: len(scores)].astype(np.float64), DIGITS).tolist()
        note = None if problem is None else f"the text {problem}"
        return Tagged(answer.labels, scores, probabilities, answer.left_out, note)

    def precision_table(self) -> list[dict[str, Any]]:
        """Return the threshold and coverage of each precision; empty if the model did not learn thresholds."""
        model = self.tagger.model
        thresholds = model.precision_thresholds(False) if isinstance(model, LearnsPrecision) else None
        if thresholds is None:
            return []
        rows = (thresholds.at(float(target)) for target in TARGETS)
        return [
            {
                "precision": round(row.precision, 2),
                "threshold": None if isinf(row.threshold) else round(row.threshold, DIGITS),
                "coverage": round(row.coverage, DIGITS),
                "most": row.most,
                "shown": row.confidence is not None,
            }
            for row in rows
        ]

    @cached_property
    def about(self) -> dict[str, Any]:
        """The fields of the model's description that do not change while this version is served."""
        model, labels = self.tagger.model, self.tagger.labels_
        members = getattr(model, "member_views_", []) if isinstance(model, HasMembers) else []
        named = zip(getattr(model, "members_", []), members, strict=True) if members else []
        return {
            "method": model.name,
            "title": model.title,
            "members": [{"method": member.name, "view": view} for member, view in named],
            "n_labels": len(labels),
            "n_documents": labels.n_documents,
            "version": self.version,
            "created": self.created,
            "size_bytes": self.size_bytes,
            "labelspace_version": self.labelspace_version,
            "calibrated": self.is_calibrated,
            "explains": isinstance(model, Explains),
            "has_hierarchy": labels.hierarchy is not None,
            "has_map": isinstance(model, HasLabelPoints),
            "precision": self.precision_table(),
        }


def check_reads_text(tagger: Tagger, folder: str | Path) -> None:
    """Raise ParameterError for a model that reads more than the text, or something else, and so cannot be served."""
    reads = "ready-made features" if tagger.ready_made else ", ".join(tagger.side_columns.names)
    if reads:
        problem = f"{folder} reads {reads}"
        raise ParameterError(f"a served model must read the text and nothing else, but {problem}; train one on texts")


class ServedModel:
    """A model by its name; the version that was loaded last answers."""

    def __init__(self, name: str, folder: str, read_tagger: Callable[[Path], Tagger] = Tagger.load) -> None:
        self.name = name
        self.folder = Path(folder)
        self.read_tagger = read_tagger
        self.current: LoadedModel | None = None
        self.error: str | None = None  # of the last load, if it failed
        self._seen: Hashable = None  # the folder at the last load; None if that is to be tried again

    def load(self) -> LoadedModel:
        """Load the model in the folder; if that fails, the old one stays, and a failed cluster is tried again later."""
        seen = identity(self.folder)
        try:
            loaded = LoadedModel.load(self.folder, self.read_tagger)
        except Exception as error:
            self.error = str(error)
            self._seen = None if isinstance(error, ClusterError) else seen
            raise
        self.current, self.error, self._seen = loaded, None, seen
        return loaded

    def is_replaced(self) -> bool:
        """Return whether the folder was replaced since the last attempt to load it, or is to be tried again."""
        seen = identity(self.folder)
        return seen is not None and seen != self._seen


def version_of(manifest: Mapping[str, Any]) -> str:
    """Return a name for the content of a model, from the checksum of all its files.

    >>> version_of({"checksum": 255})
    '000000ff'
    """
    return f"{manifest['checksum']:08x}"


def identity(folder: Path) -> Hashable:
    """Return values that differ between two models in the same place, or None if there is no model."""
    try:
        of_folder, of_model = os.stat(folder), os.stat(folder / "model.json")
    except OSError:
        return None
    return of_folder.st_ino, of_model.st_ino, of_model.st_mtime_ns, of_model.st_size
