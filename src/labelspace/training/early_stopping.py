"""Early stopping: documents held out to stop by, how well they are ranked, and when there is no more improvement."""

from collections.abc import Sequence

import numpy as np

from labelspace.errors import DataError
from labelspace.types import Csr, Ints, TopK

VALIDATION_K = 5  # labels per document that count in the validation score
HELD_OUT_SHARE, MAX_HELD_OUT = 0.1, 2_000  # documents cut from train, where no validation documents are given


def hold_out_rows(Y: Csr, share: float, at_most: int, random_state: int) -> tuple[Ints, Ints] | None:
    """Rows to train on, and rows held out, drawn at random; None where either would be without a label.

    A document with a label that no training document has is not held out: its label could not be learned.
    """
    order = np.random.default_rng(random_state).permutation(Y.shape[0])
    n = min(round(share * Y.shape[0]), at_most)
    held_out, train = np.sort(order[:n]), np.sort(order[n:])
    unseen = np.bincount(Y[train].indices, minlength=Y.shape[1]) == 0
    needed = Y[held_out] @ unseen.astype(np.float32) > 0
    train, held_out = np.sort(np.concatenate([train, held_out[needed]])), held_out[~needed]
    return (train, held_out) if Y[held_out].nnz and Y[train].nnz else None


def early_stopping_rows(Y: Csr, random_state: int) -> tuple[Ints, Ints]:
    """Rows to train on, and rows to stop by, where no validation documents are given."""
    split = hold_out_rows(Y, HELD_OUT_SHARE, MAX_HELD_OUT, random_state)
    if split is None:
        raise too_few_to_stop_by(Y.shape[0])
    return split


def too_few_to_stop_by(n: int) -> DataError:
    """The error where no documents can be held out."""
    return DataError(
        f"early stopping needs some documents with labels to stop by, but there are {n} in all; "
        "give validation documents, or leave patience out"
    )


def should_stop(scores: Sequence[float], patience: int | None) -> bool:
    """Whether the best epoch is ``patience`` epochs ago.

    >>> should_stop([0.1, 0.5, 0.4], patience=1), should_stop([0.1, 0.5, 0.4], patience=2), should_stop([0.1], None)
    (True, False, False)
    """
    return patience is not None and len(scores) - 1 - int(np.argmax([*scores, -1])) >= patience


def r_precision(top: TopK, Y: Csr) -> float:
    """R-precision at ``VALIDATION_K``: hits over min(VALIDATION_K, labels of the document); 0 where there are none."""
    hits = top.to_csr(Y.shape[1]).multiply(Y).sum(axis=1).A1
    relevant = np.minimum(np.diff(Y.indptr), VALIDATION_K)
    return float((hits[relevant > 0] / relevant[relevant > 0]).mean()) if relevant.any() else 0.0
