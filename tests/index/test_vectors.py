"""The vectors that an index gives back."""

import numpy as np
import pytest

from labelspace.errors import DataError, ModelError
from labelspace.index import Approximate, Exact, PointIndex, Quantized
from tests.checks import needs_faiss

INDEXES = {
    "float32": lambda v, ids: Exact(v, ids),
    "int8": lambda v, ids: Exact(v, ids, "int8"),
    "int8+float32": lambda v, ids: Exact(v, ids, "int8+float32"),
    "quantized": lambda v, ids: Quantized(v, ids),
    "points": lambda v, ids: PointIndex(v, ids, "euclidean"),
    "clusters": lambda v, ids: PointIndex(v, ids, "euclidean", clusters=7),
    "ivf": lambda v, ids: Approximate(v, ids),
    "ivf int8": lambda v, ids: Approximate(v, ids, "ivf", "int8"),
    "hnsw": lambda v, ids: Approximate(v, ids, "hnsw", "float32"),
}
SMALL = {"float32": 1e-7, "int8": 0.02, "int8+float32": 1e-7, "quantized": 1e-3, "points": 1e-7, "clusters": 1e-7}
kinds = pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[needs_faiss] * (kind[:3] in ("ivf", "hns"))) for kind in INDEXES]
)


@kinds
def test_vectors_are_those_of_their_ids(kind, clustered):
    vectors, ids, queries = (part[:500] for part in clustered)
    index = INDEXES[kind](vectors, ids)
    asked = np.array([499, 0, 250])
    found = index.vectors(ids[asked])
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, vectors[asked], atol=SMALL.get(kind, 0.03))
    if not isinstance(index, PointIndex):
        top = index.search(queries[:5], 3)
        for query, labels, scores in zip(queries, top.labels, top.scores, strict=False):
            np.testing.assert_allclose(index.vectors(labels) @ query, scores, rtol=2e-3)
    assert index.vectors([]).shape == (0, 16)


@kinds
def test_vectors_after_labels_come_and_go(kind, clustered):
    vectors, ids, _ = (part[:300] for part in clustered)
    index = INDEXES[kind](vectors[:290], ids[:290])
    index.vectors(ids[:1])
    index.remove(ids[[3, 200]])
    index.add(ids[290:], vectors[290:])
    kept = np.delete(np.arange(300), [3, 200])
    np.testing.assert_allclose(index.vectors(ids[kept]), vectors[kept], atol=SMALL.get(kind, 0.1))
    with pytest.raises(DataError, match=f"ids must be in the index, but {ids[3]} is not; leave it out"):
        index.vectors(ids[:5])


@needs_faiss
def test_a_faiss_index_without_a_number_is_refused(clustered):
    vectors, ids, _ = (part[:300] for part in clustered)
    index = Approximate(vectors, ids)
    index.ids_ = index.ids_[:-1]  # as if the file had one more
    index._set_active(np.ones(299, bool))
    with pytest.raises(ModelError, match="must hold 299 vectors, but found number 299"):
        index.vectors(ids[:1])
