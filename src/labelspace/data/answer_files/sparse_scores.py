"""Predictions as a sparse matrix of scores, a row per document and a column per label: .npz of SciPy, or .txt.

Collected as one number and one score per label, and written at the end: both need the number of documents first.
Labels with a score of 0 are left out, as 0 in such a matrix means no label.
"""

from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from labelspace.data.answer_files.prediction import Prediction
from labelspace.data.array_files import write_matrix
from labelspace.data.formats.pair_rows import write_pairs
from labelspace.types import Csr


class ScoreRows:
    """Rows of labels and scores, collected."""

    def __init__(self) -> None:
        self._labels, self._scores, self._ends = array("i"), array("f"), array("q", [0])

    def add(self, prediction: Prediction) -> None:
        """Add the row of the next document."""
        self._labels.extend(prediction.labels)
        self._scores.extend(prediction.scores)
        self._ends.append(len(self._labels))

    def matrix(self, n_labels: int) -> Csr:
        """The scores, float32 (n, n_labels)."""
        parts = np.array(self._scores, np.float32), np.array(self._labels, np.int32), np.array(self._ends)
        matrix = sp.csr_matrix(parts, shape=(len(self._ends) - 1, n_labels))
        matrix.eliminate_zeros()
        matrix.sort_indices()
        return matrix


@contextmanager
def writing_scores(path: str | Path, n_labels: int, as_text: bool) -> Iterator[Callable[[Prediction], None]]:
    """Collect rows, and write the matrix at the end."""
    rows = ScoreRows()
    yield rows.add
    (write_pairs if as_text else write_matrix)(path, rows.matrix(n_labels))
