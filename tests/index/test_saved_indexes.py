"""Saved indexes of every class: what comes back, memory-mapped faiss files, damaged files."""

import json
import os

import numpy as np
import pytest

from labelspace import store
from labelspace.errors import ModelError
from labelspace.estimator import Stateful, learned
from labelspace.estimator.state_constraints import part
from labelspace.index import Approximate, Exact, Index, PointIndex, Quantized, index_class
from labelspace.index.exact import STORAGES
from labelspace.index.poincare import GEOMETRIES
from tests.checks import needs_faiss, same_topk


class Holder(Stateful):
    """A model that has nothing but an index."""

    name = "holder"

    index_: Index = learned(part(index_class))

    def __init__(self, index):
        self.index_ = index


def save(index, folder):
    store.save(folder, {}, {"model": Holder(index)}, None)
    return folder


def load(folder, verify=None):
    return store.load_part(folder, store.read_manifest(folder), "model", Holder, verify).index_


def same(one, other, queries):
    return same_topk(one.search(queries, 5), other.search(queries, 5))


def mapped(path):
    with open("/proc/self/maps") as maps:
        return any(str(path) in line for line in maps)


def build(kind, storage, vectors, ids):
    if kind == "ball":
        return PointIndex(vectors, ids, "euclidean", clusters=12)
    if kind == "quantized":
        return Quantized(vectors, ids, bits=int(storage[0]), shortlist=64)
    return Exact(vectors, ids, storage) if kind == "exact" else Approximate(vectors, ids, kind, storage, effort=24)


ALL = [*(("exact", storage) for storage in STORAGES), ("quantized", "2bit+int16"), ("ball", "float32")]
FAISS = [
    pytest.param(kind, storage, marks=needs_faiss)
    for kind in ("ivf", "hnsw")
    for storage in ("float32", "fp16", "int8")
]


@pytest.mark.parametrize(("kind", "storage"), ALL + FAISS)
def test_a_loaded_index_equals_the_saved_one(clustered, tmp_path, kind, storage):
    vectors, ids, queries = clustered
    index = build(kind, storage, vectors, ids)
    index.remove(ids[:200])
    index.report["recall"] = 0.5
    again = load(save(index, tmp_path / "model"))
    assert type(again) is type(index)
    assert same(again, index, queries)
    assert again.report == index.report
    assert (again.kind, again.storage, again.dimension, len(again)) == (kind, storage, 16, 2800)


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("clusters", [None, 20])
def test_points_are_saved_with_geometry_and_clusters(clustered, tmp_path, geometry, clusters):
    vectors, ids, queries = clustered
    points = vectors / (1.1 * np.linalg.norm(vectors, axis=1).max())
    index = PointIndex(points, ids, geometry, clusters, probes=3)
    again = load(save(index, tmp_path / "model"))
    assert same(again, index, queries * 0.01)
    assert vars(again).keys() == vars(index).keys()
    assert again.report == index.report


@pytest.mark.parametrize(("kind", "storage"), ALL + FAISS)
def test_labels_are_added_to_and_removed_from_a_loaded_index(clustered, tmp_path, kind, storage):
    vectors, ids, queries = clustered
    index = build(kind, storage, vectors[:2000], ids[:2000])
    folder = save(index, tmp_path / "model")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    again = load(folder)
    for one in (index, again):
        one.remove(ids[:100])
        one.add(ids[2000:], vectors[2000:])
    assert same(again, index, queries)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert same(load(save(again, folder)), index, queries)


@needs_faiss
@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="only Linux lists what is mapped")
@pytest.mark.parametrize("kind", ["ivf", "hnsw"])
def test_the_file_is_mapped_until_a_label_is_added(clustered, tmp_path, kind):
    vectors, ids, queries = clustered
    path = save(Approximate(vectors[:2000], ids[:2000], kind), tmp_path / "model") / "index.faiss"
    again = load(path.parent)
    assert mapped(path)
    again.remove(ids[:10])
    again.search(queries, 5)
    assert mapped(path)
    again.add(ids[2000:], vectors[2000:])
    assert not mapped(path)


@needs_faiss
def test_a_model_that_replaces_the_file_does_not_affect_a_loaded_one(clustered, tmp_path):
    vectors, ids, queries = clustered
    index = Approximate(vectors[:2000], ids[:2000])
    again = load(save(index, tmp_path / "model"))
    save(Approximate(-vectors[:500], ids[:500]), tmp_path / "model")
    for one in (index, again):
        one.add(ids[2000:], vectors[2000:])
    assert same(again, index, queries)


@needs_faiss
def test_the_manifest_has_the_report_of_the_index(clustered, tmp_path):
    vectors, ids, _ = clustered
    folder = save(Approximate(vectors, ids, effort=7), tmp_path / "model")
    manifest = json.loads((folder / "model.json").read_text())
    saved = manifest["model"]["state"]["index_"]
    assert saved["name"] == "approximate"
    assert saved["state"]["report"]["value"] == {"kind": "ivf", "storage": "fp16", "effort": 7}
    assert manifest["files"]["index.faiss"]["bytes"] == (folder / "index.faiss").stat().st_size
    assert len({path.stat().st_mode & 0o777 for path in folder.iterdir()}) == 1


@needs_faiss
def test_a_truncated_damaged_missing_or_foreign_file_is_rejected(clustered, tmp_path):
    vectors, ids, _ = clustered
    path = save(Approximate(vectors, ids), tmp_path / "model") / "index.faiss"
    content = path.read_bytes()
    path.write_bytes(content[:-7])
    with pytest.raises(ModelError, match="truncated or of another model; copy the whole folder again"):
        load(path.parent)
    path.write_bytes(content[:5000] + bytes([content[5000] ^ 0xFF]) + content[5001:])
    with pytest.raises(ModelError, match="must match its checksum"):
        load(path.parent)
    path.write_bytes(b"x" * len(content))
    with pytest.raises(ModelError, match="must hold a faiss index, but cannot be read as one .*; copy the whole") as e:
        load(path.parent, verify=False)
    assert "\n" not in str(e.value)
    path.unlink()
    with pytest.raises(ModelError, match="index.faiss is missing"):
        load(path.parent)


def packed(index):
    bundle = store.ModelBundle()
    return store.pack(Holder(index), bundle), bundle.arrays


@needs_faiss
def test_a_file_of_other_labels_is_rejected(clustered, tmp_path):
    vectors, ids, _ = clustered
    folder = save(Approximate(vectors, ids), tmp_path / "model")
    state, arrays = packed(Approximate(vectors[:5], ids[:5]))
    with pytest.raises(ModelError, match="must hold the model's 5 vectors, but holds 3000"):
        store.unpack(state, store.LoadedBundle(arrays, folder.joinpath), Holder)


@pytest.mark.parametrize(
    ("index", "missing"),
    [
        (Exact, "index_/arrays_/vectors"),
        (Quantized, "index_/planes_"),
        (PointIndex, "index_/points_/weights"),
    ],  # fmt: skip
)
def test_a_saved_index_of_another_version_is_rejected(index, missing):
    state, arrays = packed(index(np.eye(3) / 2, [0, 1, 2]))
    del arrays[missing]
    with pytest.raises(
        ModelError, match=f"{missing} of a saved model must have an array in the file, but does not; copy"
    ):
        store.unpack(state, store.LoadedBundle(arrays, lambda name: name), Holder)
    with pytest.raises(
        ModelError, match="must be one of exact, quantized, approximate, ball, but is 'lsh'; train the model again"
    ):
        index_class("lsh")


@needs_faiss
def test_a_failed_write_leaves_the_old_model(clustered, tmp_path, monkeypatch):
    import faiss

    def full(*args):
        raise RuntimeError("Error in faiss at /x.cpp:1: Error: 'size' failed: write error: No space left on device")

    vectors, ids, queries = clustered
    index = Approximate(vectors, ids)
    folder = save(index, tmp_path / "model")
    monkeypatch.setattr(faiss, "write_index", full)
    with pytest.raises(ModelError, match="No space left on device.*free some space") as e:
        save(index, folder)
    assert "\n" not in str(e.value)
    assert os.listdir(tmp_path) == ["model"]
    assert same(load(folder), index, queries)
