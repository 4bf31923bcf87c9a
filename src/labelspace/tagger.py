"""Text in, label names out: features, model and labels as one thing, saved and loaded as one folder."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from labelspace import store
from labelspace.data.table import row_text
from labelspace.errors import DataError, LabelspaceError, ModelError, NotFittedError, ParameterError
from labelspace.features import FEATURES, Features, create_features
from labelspace.features.base import check_texts
from labelspace.labels.hierarchy import consistent as closed_upwards
from labelspace.models.base import Inputs, Model, check_places, silent
from labelspace.models.registry import DEFAULT, create, method
from labelspace.types import Columns, Csr, Dataset, Hierarchy, LabelSpace, Progress, TopK

Tags = list[tuple[str, float]]
Text = str | Mapping[str, Any]
"""A text, or the row of a table for a tagger that learned from one."""
CLOSED_PLACES = 50  # at least so many answers are closed upwards before the cut at k
LOAD_TRIES = 3
LOAD_PAUSE = 0.03  # seconds


class Tagger:
    """Tags texts with names.

    ``method`` is a registry name (``labelspace methods`` lists them) or a model; further parameters are the method's.
    ``features`` is a registry name or a Features object; it stays unused where features come ready-made.

    >>> texts = ["bake the bread", "knead bread dough", "grill the fish", "smoke a fish"]
    >>> tagger = Tagger(method="neighbors").fit(texts, [["baking"], ["baking", "dough"], ["fish"], ["fish"]])
    >>> tagger.tag("how to bake bread", k=1)
    [('baking', 1.0)]
    """

    model: Model
    features: Features | None  # None once fitted on ready-made features, or with a method that reads text itself
    labels_: LabelSpace
    columns_: Columns | None = None  # of the table that it learned from

    def __init__(
        self,
        method: str | Model = DEFAULT,
        features: str | Features = "tfidf",
        **params: Any,  # noqa: ANN401 - parameters are of any type
    ) -> None:
        self.model = create(method, **params) if isinstance(method, str) else method.set_params(**params)
        self.features = features_for(self.model, features) if isinstance(features, str) else features

    def fit(self, texts: Sequence[str], labels: Sequence[Sequence[str]], progress: Progress | None = None) -> Self:
        """Learn from texts and, for each, the names of its labels."""
        return self.fit_dataset(_as_dataset(texts, labels), progress=progress)

    def fit_dataset(
        self,
        train: Dataset,
        validation: Dataset | None = None,
        progress: Progress | None = None,
        X: Csr | None = None,
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Learn from a Dataset. ``X``, where given, is what the features, fitted before, made of the training texts.

        ``checkpoint`` is a folder where a training that is cut off leaves what it needs to go on.
        """
        progress = progress or silent
        if train.X is not None or self.model.reads_text:
            self.features, inputs = None, train.inputs
        else:
            inputs = self._fit_features(train.texts or [], progress) if X is None else X
        held = None if validation is None else (self._inputs(validation.inputs), validation.Y)
        of_labels = None
        if self.model.label_text and self.features is not None:
            of_labels = self.features.transform(train.labels.texts())
        self.model.fit(
            inputs, train.Y, labels=train.labels, validation=held, progress=progress, label_features=of_labels,
            checkpoint=checkpoint,
        )  # fmt: skip
        self.labels_, self.columns_ = train.labels.counted(train.Y), train.columns
        return self

    def fit_labels(self, labels: LabelSpace) -> Self:
        """Make ready from the names and synonyms of the labels alone, for a method that can: zero-shot tagging.

        >>> Tagger("lexical").fit_labels(LabelSpace(["sourdough", "fish"])).tag("A sourdough starter")[0][0]
        'sourdough'
        """
        self.model.fit_labels(labels)
        self.features, self.labels_, self.columns_ = None, self.model.labels_ or labels, None
        return self

    def add_label(self, name: str, texts: Inputs, **how: float) -> None:
        """Take in a label by documents that carry it, without training again, where the method can.

        ``share`` says on what part of all documents it is expected, where that is known.

        >>> texts = ["bake the bread", "knead bread dough", "grill the fish", "smoke a fish"] * 10
        >>> tagger = Tagger("glas", dimension=32).fit(texts, [["baking"], ["baking"], ["fish"], ["fish"]] * 10)
        >>> tagger.add_label("grilling", ["grill the fish", "grill bread"])
        >>> "grilling" in [name for name, _ in tagger.tag("grill it", k=3)]
        True
        """
        self._check_fitted()
        self.model.add_label(name, self._inputs(texts), **how)
        self.labels_ = self.model.labels_ or self.labels_

    def remove_label(self, name: str) -> None:
        """Suggest a label no more, without training again, where the method can."""
        self._check_fitted()
        self.model.remove_label(name)
        self.labels_ = self.model.labels_ or self.labels_

    def predict_topk(
        self, inputs: Inputs | Sequence[Text], k: int = 5, *, calibrated: bool = False, consistent: bool = False
    ) -> TopK:
        """The k best label ids of each document; texts, or rows of features where the model was trained on those.

        ``consistent=True`` closes the answers upwards in the hierarchy of the labels: no label before its ancestors.
        """
        self._check_fitted()
        if not consistent:
            return self.model.predict_topk(self._inputs(inputs), k, calibrated=calibrated)
        check_places(k)
        hierarchy = self._hierarchy()
        deep = min(max(2 * k, CLOSED_PLACES), len(self.labels_))  # labels of one score may stand beyond k
        return closed_upwards(self.model.predict_topk(self._inputs(inputs), deep, calibrated=calibrated), hierarchy, k)

    def confident(
        self,
        inputs: Inputs | Sequence[Text],
        k: int = 5,
        min_probability: float | None = None,
        consistent: bool = False,
    ) -> TopK:
        """The k best label ids of each document, of those only that are right with this probability or more."""
        if min_probability is None:
            return self.predict_topk(inputs, k, consistent=consistent)
        if not 0 <= min_probability <= 1:
            raise ParameterError(
                f"a probability must lie between 0 and 1, but min_probability is {min_probability}; give such a number"
            )
        if not self.model.gives_probabilities:
            raise ParameterError(
                f"min_probability needs a method that gives probabilities, but {self.model.name} does not; train blend"
            )
        return self.predict_topk(inputs, k, calibrated=True, consistent=consistent).at_least(min_probability)

    def tag(self, text: Text, k: int = 5, min_probability: float | None = None, consistent: bool = False) -> Tags:
        """The k best labels of one text as (name, score), best first; none of a lower probability than asked.

        ``consistent=True`` gives no label before, nor without, those above it in the hierarchy of the labels. A tagger
        that learned from a table takes a row of it too: ``tagger.tag({"title": "Green tea", "price": 119})``.

        >>> texts = ["bake rye bread", "rye bread dough", "grill the fish", "smoke a fish"]
        >>> tagger = Tagger("neighbors").fit(texts, [["food > bread"], ["food > bread"], ["food > fish"], ["food"]])
        >>> [name for name, _ in tagger.tag("a rye bread", k=2, consistent=True)]
        ['food', 'food > bread']
        """
        return self.tag_batch([text], k, min_probability, consistent)[0]

    def tag_batch(
        self, texts: Sequence[Text], k: int = 5, min_probability: float | None = None, consistent: bool = False
    ) -> list[Tags]:
        """The k best labels of each text."""
        return self.named(self.confident(texts, k, min_probability, consistent))

    def named(self, top: TopK) -> list[Tags]:
        """Label ids as (name, score), padding left out."""
        names = self.labels_.names
        return [
            [(names[label], float(score)) for label, score in zip(row, scores, strict=True) if label >= 0]
            for row, scores in zip(top.labels.tolist(), top.scores.tolist(), strict=True)
        ]

    def save(self, folder: str | Path) -> None:
        """Write everything to one folder; ``Tagger.load`` or ``labelspace.load`` reads it."""
        self._check_fitted()
        parts = self.model.to_store()
        files: dict[str, store.Arrays | store.Writer] = {"model.safetensors": parts.arrays, **parts.files}
        if self.features is not None:
            parts.values["features"], files["features.safetensors"] = store.pack(self.features)
        if self.columns_ is not None:
            parts.values["columns"] = asdict(self.columns_)
        store.write(folder, {"kind": "tagger", **parts.values}, files, self.labels_)

    @classmethod
    def load(cls, folder: str | Path, verify: bool | None = None) -> Tagger:
        """Read what ``save`` wrote; arrays are memory-mapped. ``verify=True`` checks every byte of large files too."""
        loaded = load(folder, verify)
        if not isinstance(loaded, Tagger):
            raise ModelError(f"{folder} must hold a tagger, but holds a bare model; read it with labelspace.load")
        return loaded

    @property
    def takes_texts(self) -> bool:
        """Whether the fitted tagger reads texts; else it takes rows of features."""
        return self.features is not None or self.model.takes_texts

    def _fit_features(self, texts: Sequence[str], progress: Progress) -> Csr:
        assert self.features is not None
        progress("features", 0, len(texts))
        X = self.features.fit_transform(texts)
        progress("features", len(texts), len(texts))
        return X

    def _inputs(self, inputs: Inputs | Sequence[Text]) -> Inputs:
        """What the model takes: texts as they are, features as they are, or features made of texts."""
        of_texts = isinstance(inputs, np.ndarray) and inputs.ndim == 1 and inputs.dtype.kind in "UO"
        if sp.issparse(inputs) or (isinstance(inputs, np.ndarray) and not of_texts):
            return inputs
        texts = check_texts(_row_texts(inputs, self.columns_))
        if self.model.reads_text and (not self.model.is_fitted or self.model.takes_texts):
            return texts
        if self.features is None:
            raise DataError(
                f"this model was trained on {self.model.n_features_} ready-made features, but was given texts; "
                "give a feature matrix, or a file with features"
            )
        return self.features.transform(texts)

    def _hierarchy(self) -> Hierarchy:
        if self.labels_.hierarchy is None:
            remedy = "put a hierarchy.tsv beside the data, or name labels as paths ('a > b')"
            if self.columns_ is not None:
                remedy = "name columns that are levels: --outputs 'department>aisle>shelf'"
            raise ParameterError(
                "consistent answers need a hierarchy of the labels, but the model was trained without one; "
                f"{remedy}, and train again"
            )
        return self.labels_.hierarchy

    def _check_fitted(self) -> None:
        if not hasattr(self, "labels_"):
            raise NotFittedError("the tagger must be fitted first, but has not been; call fit(texts, labels)")


def features_for(model: Model, name: str, **params: Any) -> Features:  # noqa: ANN401 - parameters are of any type
    """Features by name, with the settings that suit the model unless others are given."""
    known = FEATURES[name].defaults() if name in FEATURES else {}
    suited = {key: value for key, value in model.text_features.items() if key in known}
    return create_features(name, **{**suited, **params})


def load(folder: str | Path, verify: bool | None = None) -> Any:  # noqa: ANN401 - a Tagger or a Model
    """Read a saved Tagger or model, whichever the folder holds."""
    for tries_left in reversed(range(LOAD_TRIES)):
        try:
            return _assembled(folder, store.read_manifest(folder), verify)
        except (ModelError, OSError):
            if not tries_left:
                raise
            time.sleep(LOAD_PAUSE)  # perhaps it is being replaced just now: look again in a moment
        except LabelspaceError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, AssertionError) as error:
            raise ModelError(
                f"{folder} must hold a whole model, but its files do not fit together "
                f"({type(error).__name__}: {error}); copy it again, or train it again"
            ) from error
    raise AssertionError("the last try returns or raises")


def _assembled(folder: str | Path, manifest: dict[str, Any], verify: bool | None) -> Tagger | Model:
    labels = store.read_labels(folder, manifest, verify)
    arrays = store.read_arrays(folder, manifest, "model.safetensors", verify)
    found = store.Found(manifest, arrays, lambda name: store.checked_path(folder, manifest, name, verify))
    model = method(manifest["method"]).from_store(found, labels)
    if manifest["kind"] == "model":
        return model
    tagger = Tagger(model)
    assert labels is not None  # a tagger is never saved without
    tagger.labels_ = labels
    tagger.features = None
    if "columns" in manifest:
        tagger.columns_ = Columns(**manifest["columns"])
    if "features" in manifest:
        packed = manifest["features"]
        tagger.features = create_features(packed["name"], **packed["params"])
        store.unpack(tagger.features, packed, store.read_arrays(folder, manifest, "features.safetensors", verify))
    return tagger


def _row_texts(inputs: Iterable[Any], columns: Columns | None) -> Iterable[Any]:
    """Texts as they are, rows of a table as texts; a row with none of the columns is an error."""
    if columns is None:
        return inputs
    texts = []
    for number, given in enumerate(inputs):
        if isinstance(given, Mapping) and not set(columns.inputs).intersection(given):
            raise DataError(
                f"a row must have some of the columns {', '.join(columns.inputs)}, but row {number} has: "
                f"{', '.join(map(str, given))[:80]}; name its fields like them"
            )
        texts.append(row_text(given, columns) if isinstance(given, Mapping) else given)
    return texts


def _checked_names(row: int, names: Any) -> list[str]:  # noqa: ANN401 - whatever the caller gave
    """The names of one text as a list; an iterator is read once, here."""
    listed = None if isinstance(names, (str, bytes)) or not isinstance(names, Iterable) else list(names)
    if listed is None or not all(isinstance(name, str) for name in listed):
        raise DataError(f"the labels of a text must be a list of names, but row {row} has {names!r}; write ['name']")
    return listed


def _as_dataset(texts: Sequence[str], labels: Sequence[Sequence[str]]) -> Dataset:
    """Texts and lists of names as a Dataset; labels are numbered in alphabetical order."""
    texts = check_texts(texts)
    if len(texts) != len(labels):
        raise DataError(f"there must be one list of labels a text, but there are {len(labels)} for {len(texts)} texts")
    labels = [_checked_names(row, names) for row, names in enumerate(labels)]
    space = LabelSpace(sorted(set(chain.from_iterable(labels))))
    space = space.with_paths() if space.are_paths else space
    rows = [sorted({space.index[name] for name in names}) for names in labels]
    indptr = np.cumsum([0, *map(len, rows)])
    indices = np.fromiter(chain.from_iterable(rows), np.int32, int(indptr[-1]))
    Y = sp.csr_matrix((np.ones(len(indices), np.float32), indices, indptr), shape=(len(rows), len(space)))
    return Dataset(Y, space, texts=texts)
