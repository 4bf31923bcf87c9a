import io

import numpy as np
import pytest
import scipy.sparse as sp
from rich.console import Console

from labelspace.report.comparison.view import compare_table
from labelspace.report.tables import dataset_stats, figures_report, stats_table, tags_table
from labelspace.types import Concept, Dataset, LabelSpace


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


def test_methods_that_are_not_significantly_worse_have_a_star():
    others = {"second": {"significant": False}, "third": {"significant": True}}
    results = {
        "data": "mine", "n_train": 9, "n_test": 3, "n_labels": 4,
        "rows": [{"method": name, "P@1": p} for name, p in (("first", 70.0), ("second", 69.0), ("third", 60.0))],
        "paired_test": {"significance": 0.05, "metrics": {"P@1": {"best": "first", "others": others}}},
    }  # fmt: skip
    text = shown(compare_table(results))
    assert [mark in text for mark in ("70.00*", "69.00*", "60.00*")] == [True, True, False]
    assert "* the best, or not significantly worse (paired bootstrap" in text
    assert "Holm, 5 %" in text
    assert "*" not in shown(compare_table({**results, "paired_test": {"significance": 0.05, "metrics": {}}}))


def test_figures_with_intervals_and_thresholds():
    group = {"n_labels": 3, "recall": 9.0}
    figures = {
        "P@1": 71.25,
        "ECE@1": 1.5,
        "n": 2,
        "n_without_labels": 1,
        "n_labels": 3,
        "by_frequency": {"head": group},
    }
    figures |= {"predict_seconds": 0, "latency_ms_p50": 0, "latency_ms_p99": 0, "model_mb": 1}
    plain = shown(figures_report(figures))
    assert "threshold" not in plain
    assert "2 documents, 1 without labels left out, 3 labels" in plain
    figures |= {"ci": {"P@1": [70.12, 72.34], "micro_f1": [60.0, 63.0]}, "micro_f1": 61.5, "micro_f1_threshold": 0.25}
    figures |= {"coverage_at_precision_90": 0.0, "threshold_at_precision_90": None}
    text = shown(figures_report(figures))
    assert "71.25 (70.1 to 72.3)" in text
    assert "61.50 (60.0 to 63.0)" in text
    assert next(line for line in text.splitlines() if "coverage at 90" in line).split()[-2:] == ["0.00", "none"]
    assert "by the probabilities only" not in text
    assert "by the probabilities only" in shown(figures_report({**figures, "expected_threshold": 0.5}))


def test_tags_of_a_vocabulary_have_notation_and_uri():
    concepts = [Concept("http://example.org/p1", "01"), Concept()]
    space = LabelSpace(["cats", "dogs"], [["felines"], []], concepts=concepts)
    rows = [line.split() for line in shown(tags_table("a text", [1, 0, -1], [0.9, 0.5, 0.0], space)).splitlines()]
    assert ["label", "notation", "URI", "score"] in rows
    assert rows.index(["dogs", "0.900"]) < rows.index(["cats", "01", "http://example.org/p1", "0.500"])
    assert "felines" not in shown(tags_table("a text", [0], [0.5], space))


def test_tags_without_a_vocabulary_have_a_synonym():
    space = LabelSpace(["A00", "B00"], [["Cholera"], []])
    assert ["A00", "Cholera", "0.500"] in [
        line.split() for line in shown(tags_table("a text", [0], [0.5], space)).splitlines()
    ]
    assert "synonym" not in shown(tags_table("a text", [1], [0.5], space))
    assert "(none: no word" in shown(tags_table("a text", [-1], [0.0], space))
