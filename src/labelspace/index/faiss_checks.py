"""Checks of a faiss file before it is searched: faiss follows the numbers in a file without checking them.

This module needs faiss: import it only where ``require_faiss`` has been called.
"""

from typing import Any

import faiss
import numpy as np
import numpy.typing as npt

from labelspace.estimator.state_constraints import is_sorted, must

Faiss = Any  # faiss has no types
# The classes of a kind, and of what we write; others that faiss reads have more fields, which nothing checks.
CLASSES = {
    "ivf": (faiss.IndexIVF, faiss.IndexIVFFlat, faiss.IndexIVFScalarQuantizer),
    "hnsw": (faiss.IndexHNSW, faiss.IndexHNSWFlat, faiss.IndexHNSWSQ),
}


def check_faiss(index: Faiss, kind: str, storage: str, dimension: int, n: int) -> None:
    """Refuse an index unless it has n vectors of this kind and storage, and its links stay inside."""
    base, flat, rounded = CLASSES[kind]
    must(isinstance(index, base), f"a faiss index of kind {kind}")
    must(type(index) is (flat if storage == "float32" else rounded), f"a faiss index of vectors stored as {storage}")
    must(index.ntotal == n and index.d == dimension, f"{n} vectors of {dimension} numbers")
    must(index.metric_type == faiss.METRIC_INNER_PRODUCT and index.is_trained, "a trained index of inner products")
    if kind == "ivf":
        _check_lists(index, dimension, n)
        _check_codes(index, storage, dimension)
        return
    must(index.storage is not None, f"{n} vectors")
    vectors = faiss.downcast_index(index.storage)
    plain = _is_flat(vectors) if storage == "float32" else type(vectors) is faiss.IndexScalarQuantizer
    must(plain, f"vectors stored as {storage}")
    must(vectors.ntotal == n and vectors.d == dimension, f"{n} vectors of {dimension} numbers")
    must(vectors.codes.size() == n * vectors.code_size, f"{n} vectors")
    _check_codes(vectors, storage, dimension)
    _check_graph(index.hnsw, n)


def _is_flat(index: Faiss) -> bool:
    """Return whether vectors are stored unchanged, one after the other; a file gives the second class."""
    return type(index) in (faiss.IndexFlat, faiss.IndexFlatIP)


def _check_lists(index: Faiss, dimension: int, n: int) -> None:
    """Check that the lists are in the file itself: faiss would read lists from any other file that it names."""
    must(index.quantizer is not None and index.invlists is not None, "centers and lists")
    quantizer, lists = faiss.downcast_index(index.quantizer), faiss.downcast_InvertedLists(index.invlists)
    must(_is_flat(quantizer), "centers as they are")
    must(type(lists) is faiss.ArrayInvertedLists, "its lists itself")
    must(quantizer.d == dimension and quantizer.ntotal == index.nlist == lists.nlist, "a center per list")
    must(quantizer.codes.size() == 4 * dimension * index.nlist, "centers of its lists")
    must(sum(lists.list_size(i) for i in range(index.nlist)) == n, f"lists of {n} vectors")
    must(lists.code_size == index.code_size, "lists of its vectors")


def _check_codes(index: Faiss, storage: str, dimension: int) -> None:
    """Check that the vectors are stored as ``storage`` says."""
    bytes_each = {"float32": 4, "fp16": 2, "int8": 1}[storage]
    must(index.code_size == bytes_each * dimension, f"vectors stored as {storage}")
    if storage != "float32":
        kinds = {"fp16": (faiss.ScalarQuantizer.QT_fp16, 0), "int8": (faiss.ScalarQuantizer.QT_8bit, 2 * dimension)}
        kind, n_trained = kinds[storage]
        must(hasattr(index, "sq"), f"a quantizer of {storage}")
        sq: Faiss = index.sq
        must(sq.qtype == kind and sq.d == dimension, f"a quantizer of {storage}")
        must(sq.code_size == index.code_size and sq.trained.size() == n_trained, f"a trained quantizer of {storage}")


def _check_graph(hnsw: Faiss, n: int) -> None:
    """Check that every link of the graph leads to a vector of at least the link's level."""
    levels, offsets, ends = (_array(v) for v in (hnsw.levels, hnsw.offsets, hnsw.cum_nneighbor_per_level))
    neighbors = _array(hnsw.neighbors)
    must(len(levels) == n and len(offsets) == n + 1, f"{n} nodes")
    must(len(ends) > 1 and ends[0] == 0 and is_sorted(ends), "levels of links")
    must(levels.min() >= 1 and levels.max() < len(ends), "nodes of its levels")
    must(offsets[0] == 0 and (np.diff(offsets.astype(np.int64)) == ends[levels]).all(), "as many links as levels need")
    must(offsets[-1] == len(neighbors), "all links")
    must(neighbors.min(initial=-1) >= -1 and neighbors.max(initial=-1) < n, "links to its nodes")
    must(0 <= hnsw.entry_point < n and 0 <= hnsw.max_level < levels[hnsw.entry_point], "an entry point")
    for level in range(1, int(levels.max())):  # few nodes have more than the lowest level
        nodes = np.flatnonzero(levels > level)
        links = offsets[nodes].astype(np.int64)[:, None] + np.arange(ends[level], ends[level + 1])
        linked = neighbors[links]
        must((levels[linked[linked >= 0]] > level).all(), "links to nodes of the same level")


def _array(vector: Faiss) -> npt.NDArray[Any]:
    """Return the numbers of a vector of faiss, not copied."""
    array: npt.NDArray[Any] = faiss.rev_swig_ptr(vector.data(), vector.size())
    return array
