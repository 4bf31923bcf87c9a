"""Read ``y``: one class per document, a 0/1 matrix of labels, or lists of label names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from labelspace.data.label_mapping import ones_of_rows
from labelspace.data.objects.frames import is_column, to_list
from labelspace.data.objects.given_labels import read_labels
from labelspace.errors import DataError
from labelspace.models.checks import check_labels
from labelspace.types import Csr, LabelSpace

Kind = Literal["classes", "matrix", "names"]


@dataclass(frozen=True)
class Targets:
    """The form of ``y`` in training, which ``predict`` returns too.

    >>> targets, Y = Targets.read([["baking"], ["baking", "dough"], []])
    >>> targets.kind, targets.classes.tolist(), Y.toarray().tolist()
    ('names', ['baking', 'dough'], [[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    """

    kind: Kind
    classes: npt.NDArray[Any]  # (n_labels,): the classes, the names, or the numbers of the columns
    labels: LabelSpace
    is_sparse: bool = False

    @staticmethod
    def read(y: Any) -> tuple[Targets, Csr]:  # noqa: ANN401 - whatever the caller gave
        """Return the form of y, and y as a 0/1 matrix (n, n_labels)."""
        if y is None:
            raise DataError("TaggerClassifier requires y to be passed, but the target y is None; give the labels")
        if are_names(y):
            return _read_names(y)
        if not sp.issparse(y):
            kind = type_of_target(y, input_name="y")
            if kind != "multilabel-indicator":
                check_classification_targets(y)
                return _read_classes(y, kind)
        Y = check_labels(y if sp.issparse(y) else np.asarray(y))
        n_labels = Y.shape[1]
        return Targets("matrix", np.arange(n_labels), LabelSpace.numbered(n_labels), sp.issparse(y)), Y


def are_names(y: Any) -> bool:  # noqa: ANN401 - whatever the caller gave
    """Return whether y has a list of names for each document; an empty list counts as one.

    >>> are_names([[], ["dough"]]), are_names([[0, 1], [1, 0]]), are_names(["dough", "baking"])
    (True, False, False)
    """
    if sp.issparse(y) or len(getattr(y, "shape", (1,))) != 1 or not hasattr(y, "__iter__"):
        return False
    rows = _rows(y)
    if not rows or any(isinstance(row, (str, bytes, Mapping)) or not _has_items(row) for row in rows):
        return False
    first = next((value for row in rows for value in row), "")
    return isinstance(first, str)


@dataclass(frozen=True)
class TrueLabels:
    """The true labels of documents that are evaluated.

    >>> true = TrueLabels.read([["dough"], ["fish"]], np.array(["baking", "dough"]))
    >>> true.Y.toarray().tolist(), true.columns.tolist()
    ([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], ['baking', 'dough', 'fish'])
    """

    Y: Csr  # (n, n_columns), 0/1
    columns: npt.NDArray[Any]  # the label of each column: the classes, and further names

    @staticmethod
    def read(y: Any, classes: npt.NDArray[Any]) -> TrueLabels:  # noqa: ANN401 - whatever the caller gave
        """Return the labels y of documents under the classes of an estimator."""
        if not are_names(y):
            if sp.issparse(y) or type_of_target(y, input_name="y") == "multilabel-indicator":
                Y = check_labels(y if sp.issparse(y) else np.asarray(y))
                return TrueLabels(Y, np.arange(Y.shape[1]))
            y = [[value] for value in column_or_1d(y).tolist()]
        rows = _rows(y)
        columns = list(dict.fromkeys([*classes.tolist(), *chain.from_iterable(rows)]))
        index = {name: at for at, name in enumerate(columns)}
        Y = ones_of_rows([sorted({index[name] for name in row}) for row in rows], len(columns))
        return TrueLabels(Y, np.array(columns, classes.dtype if classes.dtype.kind in "biuf" else object))


def _rows(y: Any) -> Sequence[Any]:  # noqa: ANN401 - whatever the caller gave
    return to_list(y, "y must be a column", "give a list") if is_column(y) else list(y)


def _has_items(row: object) -> bool:
    return isinstance(row, (Sequence, Set)) or (isinstance(row, np.ndarray) and row.ndim == 1)


def _read_names(y: Any) -> tuple[Targets, Csr]:  # noqa: ANN401 - whatever the caller gave
    Y, labels = read_labels(y, len(y))
    if Y.shape[1] == 0:
        raise DataError(f"y must have at least one label, but none of {len(y)} documents has one; give some labels")
    return Targets("names", np.array(labels.names, object), labels), Y


def _read_classes(y: Any, kind: str) -> tuple[Targets, Csr]:  # noqa: ANN401 - whatever the caller gave
    if kind == "multiclass-multioutput":
        rule = "y must be one class per document, a 0/1 matrix or lists of names, but is a table of several classes"
        raise DataError(f"{rule}; fit a classifier for each column: sklearn.multioutput.MultiOutputClassifier")
    classes, ids = np.unique(column_or_1d(y, warn=True), return_inverse=True)
    names = [str(value) for value in classes.tolist()]
    # Some methods read the names of labels; numbers and blank texts say nothing.
    is_text = all(isinstance(value, str) and value.strip() for value in classes.tolist())
    labels = LabelSpace(names) if is_text else LabelSpace.numbered(len(classes))
    return Targets("classes", classes, labels), ones_of_rows(ids.reshape(-1, 1).tolist(), len(classes))
