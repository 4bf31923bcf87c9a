"""Forged faiss indexes: links, lists and sizes that faiss would follow out of its arrays."""

import numpy as np
import pytest

faiss = pytest.importorskip("faiss", reason="needs faiss, which the extra ann installs")

from labelspace.estimator.state_constraints import StateError  # noqa: E402
from labelspace.index import Approximate  # noqa: E402 - needs faiss
from labelspace.index.approximate import _read_mapped  # noqa: E402
from labelspace.index.faiss_checks import check_faiss  # noqa: E402

N, DIMENSION = 300, 8


def build(kind, storage):
    vectors = np.random.default_rng(0).standard_normal((N, DIMENSION))
    return Approximate(vectors, np.arange(N), kind, storage)._faiss


def check(index, kind, storage="fp16", n=N):
    check_faiss(index, kind, storage, DIMENSION, n)


def view(vector):
    return faiss.rev_swig_ptr(vector.data(), vector.size())


@pytest.mark.parametrize("kind", ["ivf", "hnsw"])
@pytest.mark.parametrize("storage", ["float32", "fp16", "int8"])
def test_what_faiss_builds_is_accepted_as_what_it_is(kind, storage):
    index = build(kind, storage)
    check(index, kind, storage)
    for other in {"float32", "fp16", "int8"} - {storage}:
        with pytest.raises(StateError, match=f"{other}"):
            check(index, kind, other)
    with pytest.raises(StateError, match="a faiss index of kind"):
        check(index, "hnsw" if kind == "ivf" else "ivf", storage)
    with pytest.raises(StateError, match="301 vectors"):
        check(index, kind, storage, n=N + 1)


def set_level(hnsw):
    view(hnsw.levels)[5] = 9


def set_upper_link(hnsw):
    """A link at an upper level to a node that has none there: faiss would read the links of another."""
    levels = view(hnsw.levels)
    node, low = int(np.flatnonzero(levels > 1)[0]), int(np.flatnonzero(levels == 1)[0])
    view(hnsw.neighbors)[int(view(hnsw.offsets)[node]) + int(view(hnsw.cum_nneighbor_per_level)[1])] = low


@pytest.mark.parametrize(
    ("forge", "rule"),
    [
        (lambda hnsw: view(hnsw.neighbors).__setitem__(3, N), "links to its nodes"),
        (lambda hnsw: view(hnsw.neighbors).__setitem__(3, -2), "links to its nodes"),
        (lambda hnsw: view(hnsw.offsets).__setitem__(4, 10**6), "as many links"),
        (lambda hnsw: setattr(hnsw, "entry_point", N), "an entry point"),
        (lambda hnsw: setattr(hnsw, "max_level", 7), "an entry point"),
        (set_level, "nodes of its levels|as many links"),
        (set_upper_link, "links to nodes of the same level"),
    ],
)
def test_a_graph_that_leads_out_of_itself_is_refused(forge, rule):
    index = build("hnsw", "fp16")
    forge(index.hnsw)
    with pytest.raises(StateError, match=rule):
        check(index, "hnsw")


def read(index, path):
    """The index as a model folder gives it."""
    faiss.write_index(index, str(path))
    return _read_mapped(path)


def test_lists_in_another_file_are_refused(tmp_path):
    index = build("ivf", "float32")
    check(read(index, tmp_path / "own"), "ivf", "float32")
    lists = faiss.OnDiskInvertedLists(index.nlist, index.code_size, str(tmp_path / "other"))
    merged = faiss.InvertedListsPtrVector()
    merged.push_back(index.invlists)
    lists.merge_from_multiple(merged.data(), 1)
    index.replace_invlists(lists, False)
    with pytest.raises(StateError, match="its lists itself"):
        check(read(index, tmp_path / "forged"), "ivf", "float32")


@pytest.mark.parametrize(("kind", "other"), [("ivf", "IVF9,FlatDedup"), ("ivf", "IVF9,PQ4"), ("hnsw", "HNSW16,PQ4")])
def test_an_index_of_a_class_that_we_do_not_write_is_refused(kind, other):
    index = faiss.index_factory(DIMENSION, other, faiss.METRIC_INNER_PRODUCT)
    with pytest.raises(StateError, match="a faiss index of vectors stored as float32"):
        check(index, kind, "float32")


def test_an_index_without_its_lists_is_refused():
    index = build("ivf", "fp16")
    index.invlists = None
    with pytest.raises(StateError, match="centers and lists"):
        check(index, "ivf")


def test_numbers_of_vectors_that_are_not_there_are_refused_when_they_are_found():
    """The ids in the lists of IVF are not read at load: a search checks those it finds."""
    vectors = np.random.default_rng(0).standard_normal((N, DIMENSION))
    index = Approximate(vectors, np.arange(N))
    index.ids_ = index.ids_[:10]
    with pytest.raises(ValueError, match="the saved faiss index must hold 10 vectors, but found number"):
        index.search(vectors, 5)
