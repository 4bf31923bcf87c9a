"""Approximate: a faiss index that reads some of the vectors only, for more labels than can all be read in time.

IVF parts the vectors into lists by k-means on their directions and reads the ``effort`` lists nearest to a query.
HNSW walks a graph of neighbors with ``effort`` candidates open. faiss numbers vectors in the order they came; here is
kept which label each number is, and whether it is still there: a removed label is passed over, in both kinds and in a
mapped file as well, and its place is given back by a rebuild only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from labelspace.errors import DataError, ModelError, ParameterError
from labelspace.estimator import learned
from labelspace.index.base import Index, check_one_id_a_vector, checked_ids, checked_table
from labelspace.kernels.threads import run_blocks
from labelspace.types import Bools, Floats, Ints, TopK

KINDS = ("ivf", "hnsw")
FILE = "faiss"  # the ending of its file
STORAGES = {"float32": "Flat", "fp16": "SQfp16", "int8": "SQ8"}  # ours -> faiss' words
EFFORT = {"ivf": 16, "hnsw": 64}
LISTS = 8  # times the square root of the number of vectors; with 2 or 4, lists hold several topics and miss more
TRAINED_ON = 32  # vectors a list that k-means sees
ROUNDS = 6  # of k-means
NEIGHBORS = 16  # a vector has in the graph
BUILD_EFFORT = 80
ADD_BLOCK = 65_536  # vectors handed over at a time: progress is heard, and copies stay small
QUERY_BLOCK = 16  # queries a task: from 20 on faiss takes BLAS, whose last bits depend on the batch


class Approximate(Index):
    """The same three methods on an index of faiss; scores are those of the vectors as stored.

    Same vectors and seed, same index. ``storage`` is float32, fp16 or int8 (one range a dimension, from the vectors
    given here: those added later are cut to it). ``lists`` is how many IVF makes, unless its own number suits.

    >>> rng = np.random.default_rng(0)
    >>> vectors = rng.standard_normal((500, 8))
    >>> index = Approximate(vectors, ids=np.arange(500), effort=40)
    >>> (index.search(vectors[:50] * 9, k=1).labels[:, 0] >= 0).all()
    np.True_
    """

    name = "approximate"

    ids_: Ints = learned()  # (n,) of all vectors, removed ones too
    held_: Bools = learned()  # (n,) whether a vector is still there

    def __init__(
        self,
        vectors: npt.ArrayLike,
        ids: npt.ArrayLike,
        kind: str = "ivf",
        storage: str = "fp16",
        effort: int | None = None,
        seed: int = 0,
        progress: Callable[[int, int], None] | None = None,
        lists: int | None = None,
    ) -> None:
        if kind not in KINDS:
            raise ParameterError(f"kind must be one of {', '.join(KINDS)}, but is {kind!r}; set it so")
        if storage not in STORAGES:
            raise ParameterError(f"storage must be one of {', '.join(STORAGES)}, but is {storage!r}; set it so")
        table = checked_table(vectors, "vectors")
        if not table.size:
            raise DataError(f"an approximate index must have vectors, but these are {table.shape}; use Exact")
        super().__init__(kind, storage, table.shape[1])
        self.ids_ = checked_ids(ids)
        check_one_id_a_vector(self.ids_, table)
        self._hold(np.ones(len(table), bool))
        self._mapped = False
        self._faiss = _empty(kind, storage, table, seed, lists)
        self._extend(table, progress)
        self.effort = EFFORT[kind] if effort is None else effort

    @property
    def ids(self) -> Ints:
        """The ids held. Shape (n,)."""
        return self.ids_[self.held_]

    @property
    def effort(self) -> int:
        """Lists read (IVF) or candidates open (HNSW): more finds more and takes longer."""
        return int(self._faiss.nprobe if self.kind == "ivf" else self._faiss.hnsw.efSearch)

    @effort.setter
    def effort(self, effort: int) -> None:
        if effort < 1:
            raise ParameterError(f"effort must be at least 1, but is {effort}; set it so")
        if self.kind == "ivf":
            self._faiss.nprobe = int(effort)
        else:
            self._faiss.hnsw.efSearch = int(effort)
        self.report["effort"] = int(effort)

    @property
    def lists(self) -> int:
        """Lists that the vectors of an IVF index are parted into; 1 for the graph."""
        return int(self._faiss.nlist) if self.kind == "ivf" else 1

    def _search(self, queries: Floats, k: int) -> TopK:
        out = TopK.empty(len(queries), k)
        params = self._params()

        def find(start: int, stop: int) -> None:
            with _one_thread():
                scores, places = self._faiss.search(queries[start:stop], k, params=params)
            labels = np.where(places >= 0, self.ids_[places], -1)
            scores[places < 0] = -np.inf
            order = np.lexsort([labels, -scores])  # faiss leaves ties as they come
            rows = np.arange(stop - start)[:, None]
            out.labels[start:stop], out.scores[start:stop] = labels[rows, order], scores[rows, order]

        run_blocks(find, len(queries), QUERY_BLOCK)
        return out

    def _params(self) -> Any:  # noqa: ANN401 - faiss has no types
        """Search parameters that pass over removed vectors; None where there are none."""
        if self._keep is None:
            return None
        import faiss

        if self.kind == "ivf":
            return faiss.SearchParametersIVF(sel=self._keep, nprobe=self.effort)
        return faiss.SearchParametersHNSW(sel=self._keep, efSearch=self.effort)

    def _hold(self, held: Bools) -> None:
        """Say of each vector whether it is still there."""
        import faiss

        self.held_ = held
        self._keep = None if held.all() else faiss.IDSelectorBitmap(np.packbits(held, bitorder="little"))

    def _add(self, ids: Ints, vectors: Floats) -> None:
        if self._mapped:
            self._take_into_memory()
        self._extend(vectors)
        self.ids_ = np.concatenate([self.ids_, ids])
        self._hold(np.concatenate([self.held_, np.ones(len(ids), bool)]))

    def _take_into_memory(self) -> None:
        """Part from the mapped file: faiss ends the process where a mapped index is added to.

        By way of bytes and not of the file, which may be another model's by now.
        """
        import faiss

        self._faiss, self._mapped = faiss.deserialize_index(faiss.serialize_index(self._faiss)), False

    def _extend(self, vectors: Floats, progress: Callable[[int, int], None] | None = None) -> None:
        import faiss

        if self.kind == "hnsw":  # where its generator stands is not saved: a loaded index must link as this one does
            self._faiss.hnsw.rng = faiss.RandomGenerator(int(self._faiss.ntotal))
        with _one_thread():  # several would link the graph in an order of their own
            for start in range(0, len(vectors), ADD_BLOCK):
                self._faiss.add(vectors[start : start + ADD_BLOCK])
                if progress is not None:
                    progress(min(start + ADD_BLOCK, len(vectors)), len(vectors))

    def _remove(self, ids: Ints) -> None:
        self._hold(self.held_ & ~np.isin(self.ids_, ids))

    def files(self) -> dict[str, Callable[[Path], None]]:
        """The vectors as faiss writes them."""
        return {FILE: self._write}

    def _write(self, path: Path) -> None:
        import faiss

        try:
            faiss.write_index(self._faiss, str(path))
            _mapped(path)  # what faiss could not flush, it does not tell
        except (RuntimeError, ModelError) as error:
            raise OSError(_last_line(error)) from error

    def read_files(self, path_of: Callable[[str], Path]) -> None:
        """Map the file of faiss: pages are read when a search needs them."""
        path = path_of(FILE)
        self._faiss, self._mapped = _mapped(path), True
        if self._faiss.ntotal != len(self.ids_):
            raise ModelError(
                f"{path} must hold the model's {len(self.ids_)} vectors, but holds {self._faiss.ntotal}; "
                "copy the whole folder again, or train again"
            )
        self._hold(self.held_)
        self.effort = self.report["effort"]


def _empty(kind: str, storage: str, vectors: Floats, seed: int, lists: int | None) -> Any:  # noqa: ANN401 - no types
    """An index without vectors, trained on a sample of these: the lists' centers, the ranges of the bytes."""
    import faiss

    lists = max(1, min(len(vectors), lists or round(LISTS * len(vectors) ** 0.5)))
    name = f"IVF{lists}" if kind == "ivf" else f"HNSW{NEIGHBORS}"
    index = faiss.index_factory(vectors.shape[1], f"{name},{STORAGES[storage]}", faiss.METRIC_INNER_PRODUCT)
    if kind == "ivf":
        index.cp.niter, index.cp.seed = ROUNDS, seed
        index.cp.min_points_per_centroid, index.cp.max_points_per_centroid = 1, TRAINED_ON
    else:
        index.hnsw.efConstruction = BUILD_EFFORT
    sample = np.random.default_rng(seed).permutation(len(vectors))[: TRAINED_ON * lists]
    with _one_thread():
        index.train(vectors[np.sort(sample)])
    return index


def _mapped(path: Path) -> Any:  # noqa: ANN401 - faiss has no types
    import faiss

    try:
        # IO_FLAG_MMAP maps the lists of IVF alone, and for writing; this one maps both kinds, for reading.
        return faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
    except RuntimeError as error:
        raise ModelError(
            f"{path} must hold a faiss index, but cannot be read as one ({_last_line(error)}); "
            "copy the whole folder again, or train again"
        ) from error


def _last_line(error: Exception) -> str:
    """What faiss says, without where in its source."""
    return str(error).strip().splitlines()[-1].rsplit("Error: ", 1)[-1]


@contextmanager
def _one_thread() -> Iterator[None]:
    """Hold faiss to the calling thread: threads are given out by ``run_blocks``."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
