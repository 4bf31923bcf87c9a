"""Serve a model: load it, load it again when its folder is replaced, and tag batches of texts."""

import logging
import os
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from math import isinf
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from labelspace import store
from labelspace.errors import ClusterError, ParameterError
from labelspace.labels.keep_rule import Omitted
from labelspace.labels.tag_options import TagOptions
from labelspace.models.capabilities import Calibrated, Explains, HasLabelPoints, HasMembers, LearnsPrecision
from labelspace.server.label_details import LabelDetails
from labelspace.server.label_search import LabelSearch
from labelspace.tagger import Tagger
from labelspace.tagger.answers import DocumentAnswer
from labelspace.training.precision_thresholds import TARGETS
from labelspace.types import Floats

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
        named = [
            (name, tuple(map(labels.unique_name, value)) if isinstance(value, tuple) else value)
            for name, value in self.given
        ]
        return Options(tuple(named))

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

    folder: Path
    tagger: Tagger
    version: str
    created: str
    size_bytes: int
    labelspace_version: str
    loaded_at: float = field(default_factory=time.time)

    @classmethod
    def load(cls, folder: Path, read_tagger: Callable[[Path], Tagger] = Tagger.load) -> "LoadedModel":
        """Read a model, and warm it up: kernels are compiled and pages read before the first request."""
        manifest: dict[str, Any] = {}

        def read() -> Tagger:
            manifest.update(store.read_manifest(folder))
            return read_tagger(folder)

        tagger = store.read_unreplaced(folder, read)
        if tagger.ready_made:
            raise ParameterError(
                f"a served model must read texts, but {folder} was trained on ready-made features; train one on texts"
            )
        changed = datetime.fromtimestamp((folder / "model.json").stat().st_mtime, UTC)
        loaded = cls(
            folder,
            tagger,
            version_of(manifest),
            created=changed.isoformat(timespec="seconds"),
            size_bytes=store.folder_bytes(folder),
            labelspace_version=str(manifest.get("versions", {}).get("labelspace", "?")),
        )
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


class ServedModel:
    """A model by its name; the version that was loaded last answers."""

    def __init__(self, name: str, folder: str, read_tagger: Callable[[Path], Tagger] = Tagger.load) -> None:
        self.name = name
        self.folder = Path(folder)
        self._read_tagger = read_tagger
        self.current: LoadedModel | None = None
        self.error: str | None = None  # of the last load, if it failed
        self._seen: Hashable = None  # the folder at the last load; None if that is to be tried again

    def load(self) -> LoadedModel:
        """Load the model in the folder; if that fails, the old one stays, and a failed cluster is tried again later."""
        seen = identity(self.folder)
        try:
            loaded = LoadedModel.load(self.folder, self._read_tagger)
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
