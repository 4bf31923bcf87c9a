import json

import numpy as np
import pytest

from labelspace.errors import DataError, ParameterError
from labelspace.index import Approximate, Exact, Quantized, choice, choose
from tests.checks import needs_faiss, same_topk


@pytest.fixture
def large(monkeypatch):
    """Every table is too large for exact search."""
    monkeypatch.setattr(choice, "MAX_FLOAT32_SIZE", 0)
    monkeypatch.setattr(choice, "MAX_INT8_SIZE", 0)


def test_few_labels_get_exact_search_and_nothing_is_measured(clustered):
    index = choose(*clustered)
    assert isinstance(index, Exact)
    assert index.report == {
        "kind": "exact", "storage": "float32", "recall": 1.0, "recall_at": 5, "recall_target": 0.99,
    }  # fmt: skip


def test_more_labels_get_int8_where_its_recall_suffices_and_nothing_is_timed(clustered, monkeypatch):
    vectors, ids, queries = clustered
    monkeypatch.setattr(choice, "MAX_FLOAT32_SIZE", 0)
    index = choose(vectors, ids, queries, recall_target=0.9)
    assert (index.kind, index.storage) == ("exact", "int8")
    assert index.report["recall"] >= 0.9
    assert "one_row_ms" not in index.report
    index = choose(vectors, ids, queries, recall_target=1.0)
    assert (index.kind, index.storage) == ("exact", "int8+float32")
    assert index.report["tried"][0]["storage"] == "int8"


@needs_faiss
@pytest.mark.parametrize("kind", ["ivf", "hnsw"])
@pytest.mark.parametrize("target", [0.5, 0.97])
def test_effort_is_raised_until_the_target_is_reached(clustered, kind, target):
    vectors, ids, queries = clustered
    index = choose(vectors, ids, queries, recall_target=target, kind=kind)
    assert isinstance(index, Approximate)
    truth = Exact(vectors, ids).search(queries, 5)
    assert choice.recall(index.search(queries, 5), truth) == pytest.approx(index.report["recall"], abs=1e-4)
    assert index.report["recall"] >= target
    assert index.report["kind"] == kind
    assert index.report["effort"] == index.effort
    assert index.report["one_row_ms"] > 0
    assert json.loads(json.dumps(index.report)) == index.report
    easier = [e for e in choice._efforts(choice.MAX_GRAPH_EFFORT) if e < index.effort]
    if easier:
        index.effort = easier[-1]
        assert choice.recall(index.search(queries, 5), truth) < target


@pytest.fixture
def without_quantized(monkeypatch):
    """No quantized index reaches the recall target."""
    monkeypatch.setattr(choice, "SHORTLISTS", ())


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("target", [0.5, 0.99])
def test_many_labels_get_the_cheapest_quantized_index_that_reaches_the_target(clustered, target):
    vectors, ids, queries = clustered
    index = choose(vectors, ids, queries[:50], recall_target=target, more_queries=queries[50:])
    assert isinstance(index, Quantized)
    report = index.report
    assert report["recall"] >= target > max([other["recall"] for other in report["tried"]], default=0)
    assert (report["storage"], report["shortlist"]) == (f"{index.bits}bit+int16", index.shortlist)
    assert "one_row_ms" not in report
    costs = [choice.RERANKING_COST * r["shortlist"] + 750 * int(r["storage"][0]) for r in [*report["tried"], report]]
    assert costs == sorted(costs)
    again = Quantized(vectors, ids, index.bits, index.shortlist, queries[50:])
    assert same_topk(again.search(queries, 5), index.search(queries, 5))
    assert choose(vectors, ids, queries, recall_target=target, kind="quantized").kind == "quantized"


@pytest.mark.usefixtures("large", "without_quantized")
def test_else_it_is_exact_in_int8_and_float32_and_nothing_is_timed(clustered):
    index = choose(*clustered, recall_target=0.9)
    assert (index.kind, index.storage) == ("exact", "int8+float32")
    assert index.report["recall"] >= 0.9
    assert index.report["tried"] == []
    assert "one_row_ms" not in index.report


@needs_faiss
@pytest.mark.usefixtures("large")
def test_where_none_reaches_the_target_it_is_exact_and_says_so(monkeypatch):
    rng = np.random.default_rng(0)
    vectors, queries = rng.standard_normal((2, 2000, 64))
    monkeypatch.setattr(choice, "MAX_LISTS_DIVISOR", 40)
    index = choose(vectors, np.arange(2000), queries, kind="ivf")
    assert (index.kind, index.storage) == ("exact", "float32")
    assert index.report["why"] == "no faster index reached the recall target"
    (other,) = index.report["tried"]
    assert other["kind"] == "ivf"
    assert other["recall"] < 0.99


@pytest.mark.usefixtures("large")
def test_exact_on_request_stays_exact(clustered):
    assert choose(*clustered, kind="exact").kind == "exact"


@needs_faiss
@pytest.mark.usefixtures("large")
def test_progress_is_reported_by_step(clustered):
    calls = []
    choose(*clustered, recall_target=0.9, kind="ivf", progress=lambda *step: calls.append(step))
    assert calls == [("exact search", 100, 100), ("building the index (ivf)", 3000, 3000)]


def test_invalid_input_is_rejected(clustered):
    vectors, ids, queries = clustered
    with pytest.raises(ParameterError, match="kind must be one of auto, exact, quantized, ivf, hnsw, but is 'best'"):
        choose(vectors, ids, queries, kind="best")
    with pytest.raises(ParameterError, match="recall_target must be above 0 and at most 1, but is 99"):
        choose(vectors, ids, queries, recall_target=99)
    with pytest.raises(DataError, match="measured on labels and queries, but there are 3000 and 0"):
        choose(vectors, ids, queries[:0], kind="quantized")
    with pytest.raises(DataError, match="queries must have rows of 16 numbers"):
        choose(vectors, ids, queries[:, :3])
