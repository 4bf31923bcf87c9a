"""Approximate search for very many labels: a faiss index that compares a query with only some of the vectors.

IVF splits the vectors into lists by spherical k-means and reads the ``effort`` lists nearest to a query (nprobe). HNSW
walks a neighbor graph with a candidate list of ``effort`` (efSearch). faiss numbers vectors in the order of insertion;
we store the label id of each number, and whether the label is active: a removed label is skipped, in both kinds and in
memory-mapped files, and only a rebuild frees its memory. faiss comes with the extra ``ann``.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from labelspace.errors import DataError, ModelError, require
from labelspace.estimator import learned
from labelspace.estimator.parameter_constraints import integer, one_of, real
from labelspace.estimator.state_constraints import array, ids, must
from labelspace.index.base import Index, checked_ids, checked_vectors
from labelspace.kernels.threads import search_in_blocks
from labelspace.types import Bools, Floats, Ints, Longs, TopK

KINDS = ("ivf", "hnsw")
FILE = "faiss"  # file extension
STORAGES = {"float32": "Flat", "fp16": "SQfp16", "int8": "SQ8"}  # our name -> the name in a faiss factory string
DEFAULT_EFFORT = {"ivf": 16, "hnsw": 64}  # more is more accurate and slower
LISTS_FACTOR = 8  # lists / sqrt(vectors); with 2 or 4, lists mix several topics and recall is lower
TRAINING_VECTORS_PER_LIST = 32  # for k-means; more take longer to train, and place the centers better
KMEANS_ITERATIONS = 6  # more take longer to build, and place the centers better
GRAPH_DEGREE = 16  # neighbors per vector; more are more accurate, slower, and take more memory
BUILD_EFFORT = 80  # efConstruction; more builds a better graph, more slowly
ADD_BLOCK = 65_536  # vectors added at a time, for progress and small copies
MAX_EFFORT = 2**20  # of a saved index: a larger number in a file is damage, not a setting
QUERY_BLOCK = 16  # queries per task: from 20 on faiss uses BLAS, whose last bits depend on the batch


def require_faiss(kind: str) -> None:
    """Raise an error that names the extra ``ann`` unless faiss is installed; ``kind`` is the index that needs it."""
    require("faiss", "ann", f"an index of kind {kind!r}")


class Approximate(Index):
    """A faiss index; scores are the inner products with the vectors as they are stored.

    The same vectors and seed give the same index. ``storage`` is float32, fp16 or int8 (one range per dimension, from
    the first vectors: those added later are clipped to it). ``n_lists`` is the number of lists of IVF.

    >>> rng = np.random.default_rng(0)
    >>> vectors = rng.standard_normal((500, 8))
    >>> index = Approximate(vectors, ids=np.arange(500), effort=40)
    >>> (index.search(vectors[:50] * 9, k=1).labels[:, 0] >= 0).all()
    np.True_
    """

    name = "approximate"

    ids_: Ints = learned(ids("n", below=2**31))  # of all vectors, including removed ones
    active_: Bools = learned(array("bool", "n"))  # False for a removed vector

    def __init__(
        self,
        vectors: npt.ArrayLike,
        ids: npt.ArrayLike,
        kind: str = "ivf",
        storage: str = "fp16",
        effort: int | None = None,
        seed: int = 0,
        progress: Callable[[int, int], None] | None = None,
        n_lists: int | None = None,
    ) -> None:
        one_of(*KINDS).check("kind", kind)
        one_of(*STORAGES).check("storage", storage)
        require_faiss(kind)
        rows = checked_vectors(vectors, "vectors")
        if not rows.size:
            raise DataError(f"an approximate index must have vectors, but they have shape {rows.shape}; use Exact")
        super().__init__(kind, storage, rows.shape[1])
        self.ids_ = checked_ids(ids, rows)
        self._set_active(np.ones(len(rows), bool))
        self._mapped = False
        self._faiss = _train(kind, storage, rows, seed, n_lists)
        self._extend(rows, progress)
        self.effort = DEFAULT_EFFORT[kind] if effort is None else effort

    @property
    def ids(self) -> Ints:
        """Return the ids in the index. Shape (n,)."""
        return self.ids_[self.active_]

    @property
    def effort(self) -> int:
        """Return nprobe (IVF) or efSearch (HNSW): higher is more accurate and slower."""
        return int(self._faiss.nprobe if self.kind == "ivf" else self._faiss.hnsw.efSearch)

    @effort.setter
    def effort(self, effort: int) -> None:
        real(at_least=1).check("effort", effort)
        if self.kind == "ivf":
            self._faiss.nprobe = int(effort)
        else:
            self._faiss.hnsw.efSearch = int(effort)
        self.report["effort"] = int(effort)

    @property
    def n_lists(self) -> int:
        """Return the number of lists of IVF; 1 for HNSW."""
        return int(self._faiss.nlist) if self.kind == "ivf" else 1

    def _search(self, queries: Floats, k: int) -> TopK:
        params = self._search_params()

        def search_block(rows: slice, out_labels: Ints, out_scores: Floats) -> None:
            with _one_thread():
                scores, numbers = self._faiss.search(queries[rows], k, params=params)
            if numbers.size and numbers.max() >= len(self.ids_):  # from the faiss file, which we do not check
                raise _unknown_number(len(self.ids_), int(numbers.max()))
            labels = np.where(numbers >= 0, self.ids_[numbers], -1)
            scores[numbers < 0] = -np.inf
            order = np.lexsort([labels, -scores])  # faiss does not order ties
            out_labels[:], out_scores[:] = np.take_along_axis(labels, order, 1), np.take_along_axis(scores, order, 1)

        return search_in_blocks(search_block, len(queries), k, QUERY_BLOCK)

    def _search_params(self) -> Any:  # noqa: ANN401 - faiss has no types
        """Return search parameters that skip removed vectors; None if no vector was removed."""
        if self._selector is None:
            return None
        import faiss

        if self.kind == "ivf":
            return faiss.SearchParametersIVF(sel=self._selector, nprobe=self.effort)
        return faiss.SearchParametersHNSW(sel=self._selector, efSearch=self.effort)

    def _set_active(self, active: Bools) -> None:
        """Set which vectors are searched."""
        import faiss

        self.active_ = active
        self._selector = None if active.all() else faiss.IDSelectorBitmap(np.packbits(active, bitorder="little"))

    def _vectors(self, at: Longs) -> Floats:
        import faiss

        numbers, out = np.flatnonzero(self.active_)[at], np.empty((len(at), self.dimension), np.float32)
        for row, number in zip(out, numbers.tolist(), strict=True):
            if self.kind == "hnsw":
                self._faiss.reconstruct(number, row)
            else:
                self._faiss.reconstruct_from_offset(*self._places[number].tolist(), faiss.swig_ptr(row))
        return out

    @cached_property
    def _places(self) -> Longs:
        """Return the list of each vector of IVF, and its place in the list. Shape (n, 2)."""
        import faiss

        lists, n = self._faiss.invlists, len(self.ids_)
        sizes = [lists.list_size(at) for at in range(self.n_lists)]
        numbers = [faiss.rev_swig_ptr(lists.get_ids(at), size) for at, size in enumerate(sizes) if size]
        order = np.concatenate(numbers).astype(np.int64)
        if not np.array_equal(np.sort(order), np.arange(n)):  # from the faiss file
            raise _unknown_number(n, int(order.max()))
        places = np.empty((n, 2), np.int64)
        places[order, 0] = np.repeat(np.arange(len(sizes)), sizes)
        places[order, 1] = np.concatenate([np.arange(size) for size in sizes])
        return places

    def _copy(self) -> Self:
        other = copy(self)
        other._copy_faiss()
        other.report = dict(self.report)
        return other

    def _copy_faiss(self) -> None:
        import faiss

        effort = self.effort
        self._faiss, self._mapped = faiss.deserialize_index(faiss.serialize_index(self._faiss)), False
        self.effort = effort

    def _add(self, ids: Ints, vectors: Floats) -> None:
        if self._mapped:  # faiss crashes when vectors are added, and the file may be a newer model's by now
            self._copy_faiss()
        self._extend(vectors)
        self.__dict__.pop("_places", None)  # of fewer vectors
        self.ids_ = np.concatenate([self.ids_, ids])
        self._set_active(np.concatenate([self.active_, np.ones(len(ids), bool)]))

    def _extend(self, vectors: Floats, progress: Callable[[int, int], None] | None = None) -> None:
        import faiss

        if self.kind == "hnsw":  # its state is not saved: a loaded index must build the same links
            self._faiss.hnsw.rng = faiss.RandomGenerator(int(self._faiss.ntotal))
        with _one_thread():  # with several, the order of the links would vary
            for start in range(0, len(vectors), ADD_BLOCK):
                self._faiss.add(vectors[start : start + ADD_BLOCK])
                if progress is not None:
                    progress(min(start + ADD_BLOCK, len(vectors)), len(vectors))

    def _remove(self, ids: Ints) -> None:
        self._set_active(self.active_ & ~np.isin(self.ids_, ids))

    def files(self) -> dict[str, Callable[[Path], None]]:
        """Return the function that writes the faiss index file."""
        return {FILE: self._write}

    def _write(self, path: Path) -> None:
        import faiss

        try:
            faiss.write_index(self._faiss, str(path))
            _read_mapped(path)  # faiss does not report a failed flush
        except (RuntimeError, ModelError) as error:
            raise OSError(_last_line(error)) from error

    def read_files(self, path_of: Callable[[str], Path]) -> None:
        """Memory-map the faiss file: pages are read when a search needs them."""
        must(self.kind in KINDS and self.storage in STORAGES, "a kind and a storage that exist")
        require_faiss(self.kind)
        integer(1, at_most=MAX_EFFORT).check("effort of a saved index", self.report.get("effort"))
        from labelspace.index.faiss_checks import check_faiss

        path = path_of(FILE)
        self._faiss, self._mapped = _read_mapped(path), True
        if self._faiss.ntotal != len(self.ids_):
            raise _damaged(f"{path} must hold the model's {len(self.ids_)} vectors, but holds {self._faiss.ntotal}")
        check_faiss(self._faiss, self.kind, self.storage, self.dimension, len(self.ids_))
        self._set_active(self.active_)
        self.effort = self.report["effort"]


def _train(kind: str, storage: str, vectors: Floats, seed: int, n_lists: int | None) -> Any:  # noqa: ANN401 - no types
    """Build an empty index, trained on a sample of the vectors: centers of the lists, ranges of int8."""
    import faiss

    n_lists = max(1, min(len(vectors), n_lists or round(LISTS_FACTOR * len(vectors) ** 0.5)))
    name = f"IVF{n_lists}" if kind == "ivf" else f"HNSW{GRAPH_DEGREE}"
    index = faiss.index_factory(vectors.shape[1], f"{name},{STORAGES[storage]}", faiss.METRIC_INNER_PRODUCT)
    if kind == "ivf":
        index.cp.niter, index.cp.seed = KMEANS_ITERATIONS, seed
        index.cp.min_points_per_centroid, index.cp.max_points_per_centroid = 1, TRAINING_VECTORS_PER_LIST
    else:
        index.hnsw.efConstruction = BUILD_EFFORT
    sample = np.random.default_rng(seed).permutation(len(vectors))[: TRAINING_VECTORS_PER_LIST * n_lists]
    with _one_thread():
        index.train(vectors[np.sort(sample)])
    return index


def _read_mapped(path: Path) -> Any:  # noqa: ANN401 - faiss has no types
    import faiss

    try:
        # IO_FLAG_MMAP maps only the lists of IVF, and for writing; this flag maps both kinds, for reading.
        return faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
    except (RuntimeError, MemoryError) as error:  # MemoryError if the file claims to be larger than memory
        raise _damaged(f"{path} must hold a faiss index, but cannot be read as one ({_last_line(error)})") from error


def _unknown_number(n: int, number: int) -> ModelError:
    return _damaged(f"the saved faiss index must hold {n} vectors, but found number {number}")


def _damaged(problem: str) -> ModelError:
    return ModelError(f"{problem}; copy the whole folder again, or train again")


def _last_line(error: Exception) -> str:
    """Return the message of faiss, without its source location."""
    return str(error).strip().splitlines()[-1].rsplit("Error: ", 1)[-1]


@contextmanager
def _one_thread() -> Iterator[None]:
    """Limit faiss to the calling thread: ``run_blocks`` does the threading."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
