import io

import numpy as np
import pytest
import scipy.sparse as sp
from rich.console import Console

from labelspace.report.tables import compare_table, dataset_stats, stats_table
from labelspace.types import Dataset, LabelSpace


def shown(table, **options):
    out = io.StringIO()
    Console(file=out, width=160, **options).print(table)
    return out.getvalue()


@pytest.fixture
def documents():
    Y = sp.csr_matrix(np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0], [1, 0, 0]], np.float32))
    X = sp.csr_matrix(np.eye(4, 7, dtype=np.float32))
    return Dataset(Y, LabelSpace(["a", "b", "c"]), texts=["one two three", "one", " ", "one two"], X=X)


def test_statistics_by_hand(documents):
    assert dataset_stats(documents) == {
        "documents": 4,
        "labels": 3,
        "labels in use": 2,
        "labels a document": 1.0,
        "documents a used label": 2.0,
        "documents without labels": 1,
        "labels with 1 document": 1,
        "labels with 25 or fewer": 2,
        "features": 7,
        "features a document": 1.0,
        "words a document": 2.0,
        "empty texts": 1,
    }
    assert "labels per document" in shown(stats_table("mine", {"parts": {"train": dataset_stats(documents)}}))


def test_the_best_figure_of_each_column_is_bold():
    rows = [
        {"method": "first", "P@1": 70.0, "model_mb": 9.0},
        {"method": "second", "P@1": 60.0, "model_mb": 2.0},
        {"method": "third", "error": "no"},
    ]
    results = {"data": "mine", "n_train": 9, "n_test": 3, "n_labels": 4, "rows": rows}
    text = shown(compare_table(results), force_terminal=True)
    first, second = (next(line for line in text.splitlines() if name in line) for name in ("first", "second"))
    assert "\x1b[1m70" in first
    assert "\x1b[1m9" not in first
    assert "\x1b[1m2" in second
    assert "\x1b[1m60" not in second
    assert "failed, see below" in text
