"""The contract every method keeps: ``fit(X, Y)``, ``predict_topk(X, k)``, ``save(folder)``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace import store
from labelspace.errors import DataError, ModelError, ParameterError
from labelspace.estimator import Estimator
from labelspace.features.base import check_texts
from labelspace.labels.codes import Codes
from labelspace.labels.tree import Nodes
from labelspace.types import Csr, Floats, LabelSpace, Progress, TopK

Inputs = Csr | npt.NDArray[Any] | Sequence[str]


def silent(step: str, done: int, total: int) -> None:
    """The progress of someone who does not want to know."""


@dataclass(frozen=True)
class Aids:
    """What ``fit`` may use beside the documents; most methods use little of it."""

    labels: LabelSpace | None = None
    validation: tuple[Csr, Csr] | None = None  # (X, Y), checked
    progress: Progress = silent
    label_features: Csr | None = None  # (n_labels, n_features): the labels' own texts as documents
    checkpoint: Path | None = None  # a folder to keep the state of the training in


class Model(Estimator):
    """A method. A subclass declares what stands below and writes ``_fit`` and ``_predict``; the rest is here.

    ``_fit`` gets checked inputs: X csr float32 with sorted indices (or texts where ``reads_text``), Y csr 0/1.
    ``_predict`` gets the same kind of X and at most as many places k as there are labels.
    """

    title: ClassVar[str]
    """The paper or the well-known name, for the table of methods."""
    choose_when: ClassVar[str]
    """One line: when to choose it."""
    reads_text: ClassVar[bool] = False
    reads_features: ClassVar[bool] = False
    """Whether a method that reads text takes ready-made features as well."""
    gives_probabilities: ClassVar[bool] = False
    """Whether scores are chances of being right, fitted on documents that were held out."""
    answers_none: ClassVar[bool] = False
    """Whether scores of the labels of a table's column are chances that, with that of no label, add up to 1."""
    holds_out: ClassVar[bool] = False
    """Whether a method that uses validation documents parts some from train itself where it is given none."""
    needs_names: ClassVar[bool] = False
    """Whether ``fit`` must be given ``labels``."""
    uses_validation: ClassVar[bool] = False
    takes_checkpoints: ClassVar[bool] = False
    """Whether a training that was cut off can go on."""
    label_text: float = 0.0
    """A method with a parameter of this name is given ``label_features`` where it is not 0."""
    text_features: ClassVar[Mapping[str, Any]] = {}
    """Settings of the tf-idf features that suit the method better than their own defaults."""

    labels_: LabelSpace | None
    n_features_: int
    n_labels_: int

    @abstractmethod
    def _fit(self, X: Csr, Y: Csr, aids: Aids) -> None:
        """Learn: set every attribute that ``state`` names."""

    @abstractmethod
    def _predict(self, X: Csr, k: int) -> TopK:
        """The k best labels of each row."""

    def fit(
        self,
        X: Inputs,
        Y: Csr | npt.NDArray[Any],
        labels: LabelSpace | None = None,
        validation: tuple[Inputs, Csr] | None = None,
        progress: Progress | None = None,
        label_features: Inputs | None = None,
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Learn from documents X (n, n_features) and labels Y (n, n_labels); what was learned before is forgotten.

        ``validation`` holds documents for early stopping and calibration, ``label_features`` (n_labels, n_features) the
        texts of the labels made into features as the documents were; methods without a use for them ignore them.
        ``checkpoint`` is a folder: a training that was cut off goes on from what it left there, to the same result.
        """
        self.check_params()
        self.check_checkpoint(checkpoint)
        X, Y = self._checked_inputs(X), checked_labels(Y)
        if _n_rows(X) != Y.shape[0]:
            raise DataError(
                f"X and Y must have one row a document, but have {_n_rows(X)} and {Y.shape[0]} rows; "
                "give the labels of the same documents"
            )
        if Y.shape[0] == 0:
            raise DataError("fit needs at least one document, but got 0; give some training data")
        if Y.nnz == 0:
            raise DataError("fit needs at least one label on a document, but Y has none; give labeled documents")
        if labels is not None and not isinstance(labels, LabelSpace):
            raise DataError(f"labels must be a LabelSpace, but are {type(labels).__name__}; write LabelSpace(names)")
        if labels is None and self.needs_names:
            raise DataError(
                f"{self.name} must know the names of the labels, but labels is None; "
                "give fit(..., labels=LabelSpace(names))"
            )
        if labels is not None and len(labels) != Y.shape[1]:
            raise DataError(
                f"labels must name every column of Y, but there are {len(labels)} names for {Y.shape[1]} columns; "
                "give the LabelSpace that Y was built with"
            )
        if validation is not None:
            validation = self._checked_validation(*validation, X)
        of_labels = None if label_features is None else checked_features(label_features)
        expected = (Y.shape[1], X.shape[1] if sp.issparse(X) else 0)
        if of_labels is not None and of_labels.shape != expected:
            raise DataError(
                f"label_features must have a row a label and the columns of X, so {expected}, but "
                f"have {of_labels.shape}; make them of the labels' texts as the documents' features were made"
            )
        kept = None if checkpoint is None else Path(checkpoint)
        self._forget()
        self.n_features_ = X.shape[1] if sp.issparse(X) else 0
        self.n_labels_ = Y.shape[1]
        self.labels_ = None if labels is None else labels.counted(Y)
        try:
            self._fit(X, Y, Aids(self.labels_, validation, progress or silent, of_labels, kept))
        except BaseException:  # an interrupt too: half a model must not answer
            self._forget()
            raise
        return self

    def check_checkpoint(self, folder: str | Path | None) -> None:
        """Refuse a folder for checkpoints where the method keeps none."""
        if folder is not None and not self.takes_checkpoints:
            raise ParameterError(f"{self.name} keeps no checkpoints, but was given {str(folder)!r}; leave it out")

    def fit_labels(self, labels: LabelSpace) -> Self:
        """Make ready from the names and synonyms of the labels alone, for methods that can: zero-shot tagging."""
        self.check_params()
        if not self.needs_names:
            raise DataError(f"{self.name} must be trained on documents, but there are only labels; use method lexical")
        if not len(labels):
            raise DataError("there must be at least one label, but there are 0; give some labels")
        self._forget()
        self.n_features_, self.n_labels_ = 0, len(labels)
        self.labels_ = replace(labels, counts=np.zeros(len(labels), np.int64), n_documents=0)
        self._fit_labels(self.labels_)
        return self

    def report(self) -> dict[str, Any]:
        """What the training found, in plain values, for methods that have something to tell."""
        return {}

    def add_label(self, name: str, examples: Inputs, share: float = 0.0) -> int:
        """Place a label by documents that carry it, without training again; its id is returned.

        A name that was removed before comes back. For methods with label vectors only, which know what to take for
        the ``share`` of all documents that carry it.
        """
        raise ParameterError(f"{self.name} cannot take labels in once it is trained; use glas, or train again")

    def remove_label(self, name: str) -> None:
        """Suggest a label no more, without training again. For methods with label vectors only."""
        raise ParameterError(f"{self.name} cannot give labels up once it is trained; use glas, or train again")

    def label_points(self) -> Floats:
        """Where the labels lie in the Poincaré ball: (n_labels, dimension), of norm below 1.

        The row of a label that has no training document may be NaN. For methods of hyperbolic label points only.
        """
        raise ParameterError(
            f"a map needs a point in the Poincaré ball for each label, but {self.name} has none; "
            "train with --method poincare"
        )

    def label_trees(self) -> list[Nodes]:
        """The trees of labels that were learned, each over label ids. For methods with a tree only."""
        raise ParameterError(
            f"a tree needs a method that puts its labels into one, but {self.name} has none; "
            "train with --method hierarchicalxc, label_tree, secseq or treespace"
        )

    def label_codes(self) -> list[Codes]:
        """The codes that labels are written as, a set of them a tree. For methods of codes only."""
        raise ParameterError(
            f"codes need a method that writes labels as codes, but {self.name} has none; train with --method secseq"
        )

    def _fit_labels(self, labels: LabelSpace) -> None:
        """What ``fit_labels`` does for a method that needs names."""
        raise NotImplementedError

    def _forget(self) -> None:
        for key in (*self.state, "n_features_", "n_labels_", "labels_"):
            self.__dict__.pop(key, None)

    def predict_topk(self, X: Inputs, k: int = 5, *, calibrated: bool = False) -> TopK:
        """The k best labels of each document, best first, padded with -1 / -inf where there are fewer."""
        self.check_fitted()
        check_places(k)
        if calibrated and not self.gives_probabilities:
            raise ParameterError(f"calibrated=True needs a fitted calibration, but {self.name} has none; leave it out")
        X = self._checked_inputs(X)
        if not sp.issparse(X) and not self.takes_texts:
            raise DataError(
                f"X must hold the {self.n_features_} features the model was trained on, but holds texts; "
                "give features made in the same way"
            )
        self._check_columns(X)
        if _n_rows(X) == 0:
            return TopK.empty(0, k)
        return self._predict(X, min(k, self.n_labels_)).padded(k)

    def _check_columns(self, X: Any) -> None:  # noqa: ANN401 - csr or texts
        if sp.issparse(X) and X.shape[1] != self.n_features_:
            raise DataError(
                f"X must have the {self.n_features_} features the model was trained on, but has {X.shape[1]}; "
                "give features made in the same way"
            )

    def predict(self, X: Inputs, k: int = 5) -> Csr:
        """The k best labels of each document as a 0/1 matrix (n, n_labels): scikit-learn's shape of an answer."""
        return self.predict_topk(X, k).to_csr(self.n_labels_)

    @property
    def takes_texts(self) -> bool:
        """Whether the fitted model is to be given texts; else rows of features."""
        return self.reads_text and self.n_features_ == 0

    @property
    def is_fitted(self) -> bool:
        """Whether ``fit`` has been through."""
        return hasattr(self, "n_labels_") and super().is_fitted

    def save(self, folder: str | Path) -> None:
        """Write the model to a folder; ``labelspace.load`` reads it."""
        parts = self.to_store()
        files: dict[str, store.Arrays | store.Writer] = {"model.safetensors": parts.arrays, **parts.files}
        store.write(folder, {"kind": "model", **parts.values}, files, self.labels_)

    def to_store(self) -> store.Parts:
        """The parts that this model is saved as."""
        packed, arrays = store.pack(self)
        sizes = {"n_features": self.n_features_, "n_labels": self.n_labels_}
        return store.Parts({"method": self.name, **sizes, "model": packed}, arrays)

    @classmethod
    def from_store(cls, found: store.Found, labels: LabelSpace | None) -> Self:
        """The fitted model that ``to_store`` took apart."""
        packed = found.values["model"]
        try:
            cls.reject_unknown(packed["params"])
            model = cls(**packed["params"])
            store.unpack(model, packed, found.arrays)
            model.n_features_, model.n_labels_ = found.values["n_features"], found.values["n_labels"]
        except (KeyError, ParameterError) as error:
            raise ModelError(
                f"the saved {cls.name} must have the fields of this version, but has not ({error}); train it again"
            ) from error
        model.labels_ = labels
        return model

    def _checked_validation(self, X: Inputs, Y: Csr, train: Any) -> tuple[Any, Csr]:  # noqa: ANN401 - csr or texts
        held, truth = self._checked_inputs(X), checked_labels(Y)
        if _n_rows(held) != truth.shape[0]:
            raise DataError(
                f"validation must have one row a document, but has {_n_rows(held)} and {truth.shape[0]} rows; "
                "give the labels of the same documents"
            )
        if sp.issparse(train) and sp.issparse(held) and held.shape[1] != train.shape[1]:
            raise DataError(
                f"validation documents must have the {train.shape[1]} features of X, but have {held.shape[1]}; "
                "give features made in the same way"
            )
        return held, truth

    def _checked_inputs(self, X: Inputs) -> Any:  # noqa: ANN401 - csr for most, texts for a method that reads text
        ready_made = sp.issparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2)
        return (
            list(check_texts(X))
            if self.reads_text and not (self.reads_features and ready_made)
            else checked_features(X)
        )


def check_places(k: object) -> None:
    """Refuse what is no number of places."""
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise ParameterError(f"k must be a whole number of at least 1, but is {k!r}; ask for k=1 or more")


def checked_features(X: Any) -> Csr:  # noqa: ANN401 - whatever the caller gave
    """X as csr float32 with sorted, summed indices and finite values; the caller's matrix is left as it is."""
    if isinstance(X, (str, bytes)) or (isinstance(X, Sequence) and X and isinstance(X[0], str)):
        raise DataError(
            "X must be a feature matrix, but holds texts; use labelspace.Tagger, which makes features of them"
        )
    csr = _owned_csr(_table(X, "X", "n_features", "give a matrix of numbers"))
    if not np.isfinite(csr.data).all():
        raise DataError("X must hold finite numbers, but has NaN or infinity; drop or fill those values")
    return csr


def checked_labels(Y: Any) -> Csr:  # noqa: ANN401 - whatever the caller gave
    """Y as csr float32 of ones; anything but 0 and 1 is an error."""
    csr = _owned_csr(_table(Y, "Y", "n_labels", "Tagger takes lists of names"))
    if csr.nnz != np.count_nonzero(csr.data):
        csr = csr.copy()  # the caller's matrix stays as it is
        csr.eliminate_zeros()
    wrong = csr.data != 1.0
    if wrong.any():
        raise DataError(
            f"Y must hold only 0 and 1, but holds {csr.data[wrong][0]}; mark each label of a document with 1"
        )
    if csr.shape[1] == 0:
        raise DataError("Y must have at least one label, but has 0 columns; give some labels")
    return csr


def _table(M: Any, name: str, columns: str, remedy: str) -> Any:  # noqa: ANN401 - sparse or dense
    """A two-dimensional table of numbers, or an error that says what it is instead."""
    if not sp.issparse(M):
        try:
            M = np.asarray(M)
        except ValueError:  # rows of different lengths
            raise DataError(f"{name} must be a table (n, {columns}), but its rows differ in length; {remedy}") from None
    if M.ndim != 2:
        raise DataError(f"{name} must be a table (n, {columns}), but has shape {M.shape}; {remedy}")
    if M.dtype.kind not in "biuf":
        raise DataError(f"{name} must be a table (n, {columns}) of numbers, but holds {M.dtype}; {remedy}")
    return M


def _owned_csr(M: Any) -> Csr:  # noqa: ANN401 - sparse or dense
    """As csr float32 with sorted unique indices; copied only where something has to change."""
    ours = isinstance(M, (sp.csr_matrix, sp.csr_array)) and M.dtype == np.float32
    csr = M if ours and isinstance(M, sp.csr_matrix) else sp.csr_matrix(M, dtype=np.float32)
    if csr is M and not csr.has_canonical_format:
        csr = csr.copy()
    if csr.indices.dtype != np.int32 and csr.shape[1] < 2**31:
        csr = sp.csr_matrix((csr.data, csr.indices.astype(np.int32), csr.indptr), shape=csr.shape)
    if csr.nnz and not 0 <= csr.indices.min() <= csr.indices.max() < csr.shape[1]:  # kernels do not look again
        raise DataError(
            f"the indices of a matrix must lie below its width {csr.shape[1]}, but one is {csr.indices.max()}; mend it"
        )
    csr.sum_duplicates()
    return csr


def _n_rows(X: Any) -> int:  # noqa: ANN401 - csr or texts
    return int(X.shape[0]) if sp.issparse(X) else len(X)
