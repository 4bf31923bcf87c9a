import json
import os

import numpy as np
import pytest

from labelspace import store
from labelspace.errors import ModelError
from labelspace.index import Approximate, Ball, Exact, from_store
from labelspace.index.exact import STORAGES


def save(index, folder):
    parts = store.Parts({}, {})
    values = parts.join("index", index.to_store())
    store.write(folder, {"kind": "model", "index": values}, {"model.safetensors": parts.arrays, **parts.files}, None)
    return folder


def load(folder, verify=None):
    manifest = store.read_manifest(folder)
    arrays = store.read_arrays(folder, manifest, "model.safetensors", verify)
    found = store.Found(manifest, arrays, lambda name: store.checked_path(folder, manifest, name, verify))
    return from_store(found.below("index", manifest["index"]))


def same(one, other, queries):
    a, b = one.search(queries, 5), other.search(queries, 5)
    return np.array_equal(a.labels, b.labels) and np.array_equal(a.scores, b.scores)


def mapped(path):
    with open("/proc/self/maps") as maps:
        return any(str(path) in line for line in maps)


def build(kind, storage, vectors, ids):
    if kind == "ball":
        return Ball(vectors, ids, "euclidean", clusters=12)
    return Exact(vectors, ids, storage) if kind == "exact" else Approximate(vectors, ids, kind, storage, effort=24)


ALL = [*(("exact", storage) for storage in STORAGES), ("ball", "float32")]
FAISS = [(kind, storage) for kind in ("ivf", "hnsw") for storage in ("float32", "fp16", "int8")]


@pytest.mark.parametrize(("kind", "storage"), ALL + FAISS)
def test_an_index_comes_back_as_it_was(clustered, tmp_path, kind, storage):
    vectors, ids, queries = clustered
    index = build(kind, storage, vectors, ids)
    index.remove(ids[:200])
    index.report["recall"] = 0.5
    again = load(save(index, tmp_path / "model"))
    assert type(again) is type(index)
    assert same(again, index, queries)
    assert again.report == index.report
    assert (again.kind, again.storage, again.dimension, len(again)) == (kind, storage, 16, 2800)


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


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="Linux tells what is mapped")
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


def test_a_model_that_replaces_the_file_does_not_reach_a_loaded_one(clustered, tmp_path):
    vectors, ids, queries = clustered
    index = Approximate(vectors[:2000], ids[:2000])
    again = load(save(index, tmp_path / "model"))
    save(Approximate(-vectors[:500], ids[:500]), tmp_path / "model")
    for one in (index, again):
        one.add(ids[2000:], vectors[2000:])
    assert same(again, index, queries)


def test_the_manifest_says_what_the_index_is(clustered, tmp_path):
    vectors, ids, _ = clustered
    folder = save(Approximate(vectors, ids, effort=7), tmp_path / "model")
    manifest = json.loads((folder / "model.json").read_text())
    assert manifest["index"]["report"] == {"kind": "ivf", "storage": "fp16", "effort": 7}
    assert manifest["files"]["index.faiss"]["bytes"] == (folder / "index.faiss").stat().st_size
    assert len({path.stat().st_mode & 0o777 for path in folder.iterdir()}) == 1


def test_a_truncated_damaged_missing_or_foreign_file_is_refused(clustered, tmp_path):
    vectors, ids, _ = clustered
    path = save(Approximate(vectors, ids), tmp_path / "model") / "index.faiss"
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    with pytest.raises(ModelError, match="truncated or of another model; copy the whole folder again"):
        load(path.parent)
    path.write_bytes(whole[:5000] + bytes([whole[5000] ^ 0xFF]) + whole[5001:])
    with pytest.raises(ModelError, match="must match its checksum"):
        load(path.parent)
    path.write_bytes(b"x" * len(whole))
    with pytest.raises(ModelError, match="must hold a faiss index, but cannot be read as one .*; copy the whole") as e:
        load(path.parent, verify=False)
    assert "\n" not in str(e.value)
    path.unlink()
    with pytest.raises(ModelError, match="index.faiss is missing"):
        load(path.parent)


def test_a_file_of_other_labels_is_refused(clustered, tmp_path):
    vectors, ids, _ = clustered
    folder = save(Approximate(vectors, ids), tmp_path / "model")
    manifest = store.read_manifest(folder)
    arrays = {"ids": ids[:5], "held": np.ones(5, bool)}
    with pytest.raises(ModelError, match="must hold the model's 5 vectors, but holds 3000"):
        from_store(store.Found(manifest["index"], arrays, lambda name: folder / f"index.{name}"))
    with pytest.raises(ModelError, match="but has no 'vectors'; train the model again"):
        from_store(store.Found({"kind": "exact", "storage": "float32", "report": {}}, arrays, folder.joinpath))


def test_a_failing_write_leaves_the_old_model(clustered, tmp_path, monkeypatch):
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
