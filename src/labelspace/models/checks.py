"""Checks of the inputs of ``fit`` and ``predict_topk``, made once at these entry points; methods rely on them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace.data.objects.frames import is_column
from labelspace.data.sample_weights import check_weights
from labelspace.data.texts import check_texts
from labelspace.errors import DataError, ParameterError
from labelspace.features.sequences import check_token_ids
from labelspace.features.views import GIVEN, SEQUENCES, TEXT, VIEWS, Table, Views, is_matrix, n_rows
from labelspace.kernels import large_arrays
from labelspace.types import Bools, Csr, Doubles, LabelSpace

BLOCK = 2**20  # values that are checked at a time: the masks of a check stay small, however large the matrix is
MAX_ANSWER = 2**29  # labels that are returned at once, for all documents: 4 GB of ids and scores
Inputs = Csr | npt.NDArray[Any] | Sequence[str] | Views  # documents as a model takes them
Validation = tuple[Inputs, Csr]
GivenValidation = Validation | Callable[[], Validation | None] | None  # a function reads them on first use


def check_k(k: object) -> None:
    """Raise ParameterError unless k is a number of labels to return."""
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise ParameterError(f"k must be an integer of at least 1, but is {k!r}; ask for k=1 or more")


def check_answer(n: int, k: int) -> None:
    """Raise ParameterError if k labels for each of n documents are too many for one answer."""
    if n * k > MAX_ANSWER:
        rule = f"k times the number of documents must be at most {MAX_ANSWER}, but is {k} x {n}"
        raise ParameterError(f"{rule}; ask for a smaller k, or predict fewer documents at a time")


def check_allowed(allowed: object, n_labels: int) -> Bools | None:
    """Return the mask of the labels that may be returned, checked; None if all may be returned."""
    if allowed is None:
        return None
    if not isinstance(allowed, np.ndarray) or allowed.dtype != np.bool_ or allowed.shape != (n_labels,):
        what = f"is of type {type(allowed).__name__}"
        if isinstance(allowed, np.ndarray):
            what = f"has shape {allowed.shape} and type {allowed.dtype}"
        raise ParameterError(
            f"allowed must be an array of booleans, one for each of {n_labels} labels, but {what}; give such a mask"
        )
    if not allowed.any():
        raise ParameterError(f"at least one label must be allowed, but none of {n_labels} is; allow some")
    return None if allowed.all() else np.ascontiguousarray(allowed)


def check_inputs(X: Inputs) -> Views:
    """Return documents as checked views: matrices as csr float32, texts as a list of str; inputs are not changed."""
    if isinstance(X, Views):
        if X.checked:
            return X
        tables = {name: _checked_table(name, table, X.widths[name]) for name, table in X.tables.items()}
        sizes = {name: n_rows(table) for name, table in tables.items()}
        if len(set(sizes.values())) > 1:
            listed = ", ".join(f"{name}: {size}" for name, size in sizes.items())
            raise DataError(f"views must have one row per document, but have {listed}; give the same documents")
        return Views(tables, X.widths)
    if is_matrix(X) or not _holds_texts(X):
        return Views({GIVEN: check_features(X)})
    return Views({TEXT.name: list(check_texts(X))})


def _holds_texts(X: object) -> bool:
    if isinstance(X, (str, bytes)):
        return True
    if isinstance(X, np.ndarray):
        return X.ndim == 1 and X.dtype.kind in "UO"
    if isinstance(X, Iterator) or is_column(X):
        return True
    return isinstance(X, Sequence) and (not X or not isinstance(X[0], (Sequence, np.ndarray)) or isinstance(X[0], str))


def _checked_table(name: str, table: Table, width: int) -> Table:
    if name == TEXT.name:
        return list(check_texts(table))
    if name == SEQUENCES.name:
        return check_token_ids(table, width)
    return check_features(table)


def check_features(X: Any) -> Csr:  # noqa: ANN401 - whatever the caller gave
    """Return X as csr float32 with sorted, summed indices and finite values; the caller's matrix is not changed."""
    csr = _as_csr(_check_matrix(X, "X", "n_features", "give a matrix of numbers"))
    if not all(np.isfinite(csr.data[part]).all() for part in large_arrays.blocks(csr.nnz, BLOCK)):
        raise DataError("X must hold finite numbers, but has NaN or infinity; drop or fill those values")
    return csr


def check_labels(Y: Any) -> Csr:  # noqa: ANN401 - whatever the caller gave
    """Return Y as a csr matrix of ones, float32; raise DataError if it holds anything but 0 and 1."""
    csr = _as_csr(_check_matrix(Y, "Y", "n_labels", "Tagger takes lists of names"))
    if csr.nnz != np.count_nonzero(csr.data):
        csr = csr.copy()  # the caller's matrix is not changed
        csr.eliminate_zeros()
    wrong = csr.data != 1.0
    if wrong.any():
        raise DataError(f"Y must hold only 0 and 1, but holds {csr.data[wrong][0]}; mark each label with 1")
    if csr.shape[1] == 0:
        raise DataError("Y must have at least one label, but has 0 columns; give some labels")
    return csr


def check_same_rows(n: int, Y: Csr, what: str = "X and Y") -> None:
    """Raise DataError unless there is a row of labels for each document."""
    if n != Y.shape[0]:
        rule = f"{what} must have one row per document, but have {n} and {Y.shape[0]} rows"
        raise DataError(f"{rule}; give the labels of the same documents")


def check_training(n: int, Y: Csr, labels: object) -> None:
    """Raise DataError unless there is something to learn from, and every label has a name if any has one."""
    check_same_rows(n, Y)
    if Y.shape[0] == 0:
        raise DataError("fit needs at least one document, but got 0; give some training data")
    if Y.nnz == 0:
        raise DataError("fit needs at least one label on a document, but Y has none; give labeled documents")
    if labels is None:
        return
    if not isinstance(labels, LabelSpace):
        raise DataError(f"labels must be a LabelSpace, but are {type(labels).__name__}; write LabelSpace(names)")
    if len(labels) != Y.shape[1]:
        rule = f"labels must name every column of Y, but there are {len(labels)} names for {Y.shape[1]} columns"
        raise DataError(f"{rule}; give the LabelSpace that Y was built with")


def check_sample_weight(given: Any, n: int) -> Doubles | None:  # noqa: ANN401 - whatever the caller gave
    """Return the weights of n documents, checked; None if all are 1."""
    weights = None if given is None else check_weights(given, n)
    return None if weights is None or (weights == 1).all() else weights


def check_label_weight(given: Any, n_labels: int) -> Doubles | None:  # noqa: ANN401 - whatever the caller gave
    """Return the weights of labels, checked; None if all are equal."""
    if given is None:
        return None
    weights = check_weights(given, n_labels, "weights of labels", "labels")
    if not weights.all():
        problem = f"that of label {np.flatnonzero(weights == 0)[0]} is 0"
        raise DataError(f"weights of labels must be above 0, but {problem}; exclude the label from answers instead")
    return None if (weights == weights[0]).all() else weights


def check_widths(views: Views, expected: Mapping[str, int], what: str = "X") -> None:
    """Raise DataError unless the views have the columns that the model was trained on."""
    if views.widths == expected:  # the usual case
        return
    for name, width in views.widths.items():
        for view, trained in expected.items():
            same = name == view or (GIVEN in (name, view) and _may_be_given(name) and _may_be_given(view))
            if same and width != trained:
                rule = f"{what} must have the {trained} features the model was trained on, but has {width}"
                raise DataError(f"{rule}; give features made in the same way")


def validation_loader(
    validation: GivenValidation, trained: Mapping[str, int], n_labels: int, read: Callable[[Views], Any]
) -> Callable[[], tuple[Any, Csr] | None]:
    """Return a function that reads and checks validation documents, once; documents given as data are checked now."""

    @cache
    def load() -> tuple[Any, Csr] | None:
        given = validation() if callable(validation) else validation
        if given is None:
            return None
        views, truth = check_inputs(given[0]), check_labels(given[1])
        check_same_rows(views.n, truth, "validation")
        check_widths(views, trained, "validation")
        return read(views), truth[:, :n_labels]

    if not callable(validation):
        load()  # so that errors are raised before the training
    return load


def _may_be_given(view: str) -> bool:
    """Return whether ready-made features may take the place of a view."""
    return view not in VIEWS or VIEWS[view].is_matrix


def check_label_features(X: Any, shape: tuple[int, int]) -> Csr:  # noqa: ANN401 - whatever the caller gave
    """Return the labels' own texts as features, checked: a row per label and the columns of X."""
    csr = check_features(X)
    if csr.shape != shape:
        rule = f"label_features must have one row per label and the columns of X, so {shape}, but have {csr.shape}"
        raise DataError(f"{rule}; make them of the labels' texts as the documents' features were made")
    return csr


def _check_matrix(M: Any, name: str, columns: str, remedy: str) -> Any:  # noqa: ANN401 - sparse or dense
    """Return M if it is a two-dimensional table of numbers, else raise DataError."""
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


def _as_csr(M: Any) -> Csr:  # noqa: ANN401 - sparse or dense
    """Return M as csr float32 with sorted unique indices; copy only if something has to change."""
    ours = isinstance(M, (sp.csr_matrix, sp.csr_array)) and M.dtype == np.float32
    csr = M if ours and isinstance(M, sp.csr_matrix) else sp.csr_matrix(M, dtype=np.float32)
    if csr is M and not csr.has_canonical_format:
        csr = csr.copy()
    if csr.indices.dtype != np.int32 and max(csr.nnz, csr.shape[1]) < 2**31:  # else SciPy would widen them again
        csr = sp.csr_matrix((csr.data, csr.indices.astype(np.int32), csr.indptr), shape=csr.shape)
    width = csr.shape[1]
    for part in large_arrays.blocks(csr.nnz, BLOCK):  # kernels do not check indices, and would read foreign memory
        if not 0 <= csr.indices[part].min() <= csr.indices[part].max() < width:
            largest = csr.indices.max()
            raise DataError(f"the indices of a matrix must be below its width {width}, but one is {largest}; fix it")
    csr.sum_duplicates()
    return csr
