"""Exact search: every query is compared with every vector. The default up to millions of numbers."""

import numpy as np
import numpy.typing as npt

from labelspace.estimator import learned
from labelspace.estimator.parameter_constraints import one_of
from labelspace.estimator.state_constraints import are_sorted_spans, array, arrays, ids, must
from labelspace.index.base import Index, checked_ids, checked_vectors
from labelspace.kernels.inner_products import rerank, topk_int_products, topk_products
from labelspace.kernels.quantize import quantize_int8, quantize_int16
from labelspace.kernels.threads import search_in_blocks
from labelspace.store import Arrays
from labelspace.types import Floats, Ints, Longs, TopK

STORAGES = ("float32", "int8", "int8+float32")
QUERY_BLOCK = 32  # queries per task, which share a block of vectors in the cache
SHORTLIST_FACTOR = 4  # candidates of int8+float32 per label to return; more are slower and miss fewer labels
MIN_SHORTLIST = 32  # candidates, however few labels are to be returned


class Exact(Index):
    """All inner products, in blocks; results do not depend on the batch or the number of threads.

    ``storage`` is float32, or int8 with one scale per vector: a quarter of the memory, several times faster for one
    query, and scores with a rounding error. int8+float32 finds a shortlist in int8 and re-ranks it in float32.

    >>> index = Exact(np.eye(3), ids=[10, 20, 30])
    >>> index.search([[0.1, 0.9, 0.5]], k=2).labels.tolist()
    [[20, 30]]
    >>> index.remove([20])
    >>> index.search([[0.1, 0.9, 0.5]], k=2).labels.tolist()
    [[30, 10]]
    """

    name = "exact"
    copied_in_part = True

    arrays_: Arrays = learned(
        arrays(
            ids=ids("n", below=2**31),
            bytes=array("int8", "n", "dimension"),
            scales=array("float32", "n"),
            vectors=array("float32", "n", "dimension"),
        )
    )

    def check_state(self) -> None:
        """Check that the arrays fit the storage and are in the order of the ids."""
        must(self.storage in STORAGES, f"a storage of {', '.join(STORAGES)}")
        wanted = {"ids"} | ({"bytes", "scales"} if "int8" in self.storage else set())
        wanted |= {"vectors"} if "float32" in self.storage else set()
        must(self.arrays_.keys() == wanted, f"the arrays {', '.join(sorted(wanted))}")
        must(are_sorted_spans(self.ids, np.array([0, len(self.ids)])), "ids in order")

    def __init__(self, vectors: npt.ArrayLike, ids: npt.ArrayLike, storage: str = "float32") -> None:
        one_of(*STORAGES).check("storage", storage)
        rows = checked_vectors(vectors, "vectors")
        super().__init__("exact", storage, rows.shape[1])
        self.arrays_ = _sorted_by_id({"ids": checked_ids(ids, rows), **self._encode(rows)})

    def _encode(self, vectors: Floats) -> Arrays:
        arrays: Arrays = {}
        if "int8" in self.storage:
            arrays["bytes"], arrays["scales"] = quantize_int8(vectors)
        if "float32" in self.storage:
            arrays["vectors"] = vectors
        return arrays

    @property
    def ids(self) -> Ints:
        """Return the ids in the index. Shape (n,)."""
        return self.arrays_["ids"]

    def _search(self, queries: Floats, k: int) -> TopK:
        stored, ids = self.arrays_, self.ids

        def search_block(rows: slice, labels: Ints, scores: Floats) -> None:
            block = queries[rows]
            if self.storage == "float32":
                topk_products(block, stored["vectors"], ids, labels, scores)
                return
            quantized, steps = quantize_int16(block)
            if self.storage == "int8":
                topk_int_products(quantized, steps, stored["bytes"], stored["scales"], ids, labels, scores)
                return
            best = TopK.empty(len(block), max(SHORTLIST_FACTOR * k, MIN_SHORTLIST))  # the shortlist
            topk_int_products(quantized, steps, stored["bytes"], stored["scales"], ids, best.labels, best.scores)
            at = np.where(best.labels >= 0, np.searchsorted(ids, best.labels), -1)
            rerank(block, stored["vectors"], ids, at, labels, scores)

        return search_in_blocks(search_block, len(queries), k, QUERY_BLOCK)

    def _vectors(self, at: Longs) -> Floats:
        if "float32" in self.storage:
            return self.arrays_["vectors"][at]
        return self.arrays_["bytes"][at] * self.arrays_["scales"][at, None]

    def _add(self, ids: Ints, vectors: Floats) -> None:
        new = {"ids": ids, **self._encode(vectors)}
        self.arrays_ = _sorted_by_id({key: np.concatenate([array, new[key]]) for key, array in self.arrays_.items()})

    def _remove(self, ids: Ints) -> None:
        keep = ~np.isin(self.ids, ids)
        self.arrays_ = {key: array[keep] for key, array in self.arrays_.items()}


def _sorted_by_id(arrays: Arrays) -> Arrays:
    """Sort rows by id, so that a row is found by binary search; rows that are in order are not copied."""
    ids = arrays["ids"]
    if (ids[1:] > ids[:-1]).all():
        return arrays
    order = np.argsort(ids)
    return {key: array[order] for key, array in arrays.items()}
