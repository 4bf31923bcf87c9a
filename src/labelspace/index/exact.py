"""Exact: every vector is read for every query. The default up to millions of numbers, and the oracle of all others."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from labelspace.errors import ParameterError
from labelspace.estimator import learned
from labelspace.index.base import Index, check_one_id_a_vector, checked_ids, checked_table
from labelspace.kernels.inner_products import rerank, topk_int_products, topk_products
from labelspace.kernels.quantize import quantize_int8, quantize_int16
from labelspace.kernels.threads import run_blocks
from labelspace.store import Arrays
from labelspace.types import Floats, Ints, TopK

STORAGES = ("float32", "int8", "int8+float32")
QUERY_BLOCK = 32  # queries a task: a block of vectors in the cache serves them all
SHORTLIST = 4  # places in the shortlist of int8+float32 for each place asked for
LEAST_SHORTLIST = 32


class Exact(Index):
    """All inner products, in blocks; the answer does not depend on the batch or the number of threads.

    ``storage`` is float32, or int8 with a scale a vector: a quarter of the memory, several times faster for one
    query, and scores off by the rounding. int8+float32 finds a shortlist in bytes and ranks it in float32.

    >>> index = Exact(np.eye(3), ids=[10, 20, 30])
    >>> index.search([[0.1, 0.9, 0.5]], k=2).labels.tolist()
    [[20, 30]]
    >>> index.remove([20])
    >>> index.search([[0.1, 0.9, 0.5]], k=2).labels.tolist()
    [[30, 10]]
    """

    name = "exact"

    arrays_: Arrays = learned()

    def __init__(self, vectors: npt.ArrayLike, ids: npt.ArrayLike, storage: str = "float32") -> None:
        if storage not in STORAGES:
            raise ParameterError(f"storage must be one of {', '.join(STORAGES)}, but is {storage!r}; set it so")
        table = checked_table(vectors, "vectors")
        super().__init__("exact", storage, table.shape[1])
        new = checked_ids(ids)
        check_one_id_a_vector(new, table)
        self.arrays_ = _by_id({"ids": new, **self._stored(table)})

    def _stored(self, table: Floats) -> Arrays:
        arrays: Arrays = {}
        if "int8" in self.storage:
            arrays["bytes"], arrays["scales"] = quantize_int8(table)
        if "float32" in self.storage:
            arrays["vectors"] = table
        return arrays

    @property
    def ids(self) -> Ints:
        """The ids held. Shape (n,)."""
        return self.arrays_["ids"]

    def _search(self, queries: Floats, k: int) -> TopK:
        out = TopK.empty(len(queries), k)

        def find(start: int, stop: int) -> None:
            self._find(queries[start:stop], out.labels[start:stop], out.scores[start:stop])

        run_blocks(find, len(queries), QUERY_BLOCK)
        return out

    def _find(self, queries: Floats, labels: Ints, scores: Floats) -> None:
        held = self.arrays_
        if self.storage == "float32":
            topk_products(queries, held["vectors"], held["ids"], labels, scores)
            return
        words, word_scales = quantize_int16(queries)
        if self.storage == "int8":
            topk_int_products(words, word_scales, held["bytes"], held["scales"], held["ids"], labels, scores)
            return
        few = TopK.empty(len(queries), max(SHORTLIST * labels.shape[1], LEAST_SHORTLIST))
        topk_int_products(words, word_scales, held["bytes"], held["scales"], held["ids"], few.labels, few.scores)
        places = np.where(few.labels >= 0, np.searchsorted(held["ids"], few.labels), -1)
        rerank(queries, held["vectors"], held["ids"], places, labels, scores)

    def _add(self, ids: Ints, vectors: Floats) -> None:
        new = {"ids": ids, **self._stored(vectors)}
        self.arrays_ = _by_id({key: np.concatenate([array, new[key]]) for key, array in self.arrays_.items()})

    def _remove(self, ids: Ints) -> None:
        keep = ~np.isin(self.ids, ids)
        self.arrays_ = {key: array[keep] for key, array in self.arrays_.items()}


def _by_id(arrays: Arrays) -> Arrays:
    """Rows in the order of their ids, so that a row is found by its id; not copied where they are so already."""
    ids = arrays["ids"]
    if (ids[1:] > ids[:-1]).all():
        return arrays
    order = np.argsort(ids)
    return {key: array[order] for key, array in arrays.items()}
