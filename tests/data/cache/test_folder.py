import json
import os

import numpy as np
import pytest

from labelspace.data.cache import folder as module
from labelspace.data.cache.folder import CacheFolder
from labelspace.data.dataset_file import read_dataset
from labelspace.data.label_files import write_hierarchy, write_labels
from labelspace.data.read_options import ReadOptions
from labelspace.data.source import write_dataset
from labelspace.data.texts import StoredTexts
from labelspace.errors import DataError
from labelspace.types import Concept, Dataset, LabelSpace

ROWS = '{"text": "it purrs", "labels": ["cat"]}\n{"text": "it barks", "labels": ["dog", "pet"]}\n'


@pytest.fixture
def pets(tmp_path):
    path = tmp_path / "pets.jsonl"
    path.write_text(ROWS)
    return path


def same(a, b):
    """Whether two data sets are the same in every part."""
    for name in ("Y", "X", "filtered"):
        one, other = getattr(a, name), getattr(b, name)
        assert (one is None) == (other is None), name
        if one is not None:
            assert one.shape == other.shape
            for part in ("data", "indices", "indptr"):
                assert getattr(one, part).dtype == getattr(other, part).dtype
                assert np.array_equal(getattr(one, part), getattr(other, part)), (name, part)
            assert one.has_canonical_format
    for name in ("texts", "ids"):
        one, other = getattr(a, name), getattr(b, name)
        assert (None if one is None else list(one)) == (None if other is None else list(other)), name
    assert a.labels.names == b.labels.names
    assert a.labels.synonyms == b.labels.synonyms
    assert a.labels.concepts == b.labels.concepts
    edges = [None if labels.hierarchy is None else labels.hierarchy.edges.tolist() for labels in (a.labels, b.labels)]
    assert edges[0] == edges[1]
    assert (a.name, a.columns, a.fields) == (b.name, b.columns, b.fields)
    return True


def again(cache, path, **options):
    """What ``read`` says, and whether the file was read."""
    said = []
    documents = cache.read(path, ReadOptions(say=said.append, **options))
    return documents, said


@pytest.fixture
def unreadable(monkeypatch):
    """No data file is parsed any more."""

    def refuse(*args, **options):
        raise AssertionError("read again")

    monkeypatch.setattr(module, "read_dataset", refuse)


@pytest.mark.parametrize(
    "name",
    [
        "a.jsonl",
        "a.jsonl.gz",
        "a.csv",
        "a.json",
        "a.parquet",
        "a.ft",
        "train.svm",
        "a.txt",
        "trn_X_Xf.txt",
        "trn.json.gz",
    ],
)
def test_formats_are_read_as_without_a_cache(name, data, cache, tmp_path):
    path, documents = tmp_path / "data" / name, data[0].rows(range(120))
    with_features = name.endswith((".svm", ".txt"))
    kept = Dataset(
        documents.Y,
        documents.labels,
        None if with_features else documents.texts,
        documents.X if with_features else None,
    )
    write_dataset(kept, path, "xmc_pairs" if name.startswith("trn") else None)
    read = cache.read(path)
    assert same(read, read_dataset(path))
    assert read.texts is None or isinstance(read.texts, StoredTexts)


def test_names_synonyms_concepts_and_hierarchy_are_kept(cache, tmp_path):
    path = tmp_path / "train.jsonl"
    path.write_text(ROWS)
    concepts = [Concept("http://a/cat", hidden=("moggy",)), Concept("http://a/dog"), Concept("http://a/pet")]
    labels = LabelSpace(["cat", "dog", "pet"], [["kitty", "moggy"], [], []], concepts=concepts)
    write_labels(tmp_path / "labels.jsonl", labels)
    (tmp_path / "hierarchy.tsv").write_text("cat\tpet\ndog\tpet\n")
    documents = cache.read(path)
    assert same(documents, read_dataset(path))
    assert documents.labels.synonyms[0] == ["kitty", "moggy"]
    write_hierarchy(tmp_path / "again.tsv", documents.labels)
    assert (tmp_path / "again.tsv").read_text() == "cat\tpet\ndog\tpet\n"


def test_labels_are_read_in_blocks_as_in_one(cache, pets, monkeypatch):
    whole = list(cache.read(pets).labels.names)
    monkeypatch.setattr("labelspace.store.labels.PARSED_LINES", 2)
    assert list(cache.read(pets).labels.names) == whole == ["cat", "dog", "pet"]


def test_a_synonym_that_is_hidden_too_is_there_once(cache, tmp_path):
    path = tmp_path / "train.jsonl"
    path.write_text(ROWS)
    line = {"label": "cat", "id": "http://a/cat", "alt": ["moggy", "kitty"], "hidden": ["moggy"]}
    lines = [line, {"label": "dog"}, {"label": "pet"}]
    (tmp_path / "labels.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert cache.read(path).labels.synonyms[0] == read_dataset(path).labels.synonyms[0] == ["kitty", "moggy"]


def test_a_label_file_beside_a_folder_of_texts_is_noticed(cache, tmp_path):
    texts = tmp_path / "train"
    texts.mkdir()
    (texts / "a.txt").write_text("it purrs")
    (texts / "a.key").write_text("cat\n")
    (tmp_path / "labels.jsonl").write_text('{"label": "dog"}\n{"label": "cat"}\n')
    cache.read(texts)
    (tmp_path / "labels.jsonl").write_text('{"label": "cat"}\n{"label": "dog"}\n{"label": "pet"}\n')
    documents, said = again(cache, texts)
    assert same(documents, read_dataset(texts))
    assert f"the documents in {cache.folder} are read anew: labels.jsonl was changed since" in said


def test_what_a_killed_process_left_is_removed_before_documents_are_read(cache, pets, monkeypatch):
    left = cache.folder / f".{module.DOCUMENTS}.writing-0123"
    left.mkdir()
    pets.write_text("no JSON")
    with pytest.raises(DataError, match="pets.jsonl"):
        cache.read(pets)
    assert not left.exists()


def test_a_full_disk_is_named_while_documents_are_saved(cache, pets, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "save_documents", full)
    with pytest.raises(DataError, match=r"must have room .*cache failed \(No space left on device\); free some space"):
        cache.read(pets)


def test_a_file_is_read_once(cache, pets, request):
    first, _ = again(cache, pets)
    request.getfixturevalue("unreadable")
    second, said = again(cache, pets)
    assert same(first, second)
    assert said == [f"{pets} is unchanged: its documents are those in {cache.folder}"]


def test_what_was_detected_is_said_again(cache, tmp_path):
    path = tmp_path / "pets.csv"
    path.write_text("title;tags\nit purrs;cat\nit barks;dog\n")
    first, second = again(cache, path)[1], again(cache, path)[1]
    assert first
    assert second[:-1] == first


@pytest.mark.parametrize("change", ["content", "options", "file", "label file"])
def test_what_changed_is_read_again(change, cache, pets, tmp_path):
    cache.read(pets)
    options, reason, path = {}, "pets.jsonl was changed since", pets
    if change == "content":
        pets.write_text(ROWS + '{"text": "it sings", "labels": ["bird"]}\n')
    if change == "options":
        options, reason = {"normalize_labels": True}, "they were read with other options"
    if change == "file":
        path, reason = tmp_path / "other.jsonl", "they are of other files"
        path.write_text(ROWS)
    if change == "label file":
        write_labels(tmp_path / "pets.labels.jsonl", LabelSpace(["pet", "dog", "cat"]))
        reason = "they are of other files"
    documents, said = again(cache, path, **options)
    assert said[0] == f"the documents in {cache.folder} are read anew: {reason}"
    assert same(documents, read_dataset(path, options=ReadOptions(**options)))


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def touch(path):
    stat = path.stat()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))


def edit(path):
    about = json.loads(path.read_text())
    path.write_text(json.dumps(about | {"name": "another"}))


@pytest.mark.parametrize(
    ("name", "damage", "reason"),
    [
        ("texts.content", cut, "texts.content was changed since it was written"),
        ("Y.indices", touch, "Y.indices was changed since it was written"),
        ("Y.data", os.unlink, "Y.data was changed since it was written"),
        ("documents.json", cut, "documents.json cannot be read"),
        ("documents.json", edit, "documents.json was changed"),
        ("documents.json", os.unlink, "it holds none"),
    ],
)
def test_damaged_documents_are_read_again(name, damage, reason, cache, pets):
    cache.read(pets)
    damage(cache.folder / "documents" / name)
    documents, said = again(cache, pets)
    assert said == [f"the documents in {cache.folder} are read anew: {reason}"]
    assert same(documents, read_dataset(pets))


def test_documents_that_were_written_to_through_their_map_are_not_used_again(cache, pets):
    documents = cache.read(pets)
    documents.Y.data[0] = 5
    _, said = again(cache, pets)
    assert "Y.data was changed since it was written" in said[0]


def test_a_reading_that_fails_leaves_nothing_to_use(cache, pets):
    cache.read(pets)
    pets.write_text(ROWS + "no JSON")
    with pytest.raises(DataError, match=r"pets\.jsonl:3"):
        cache.read(pets)
    assert not (cache.folder / "documents").exists()


def test_a_file_that_is_read_as_a_whole_is_refused(cache, data, tmp_path):
    write_dataset(data[0], tmp_path / "X_train.npz")
    with pytest.raises(DataError, match=r"piece by piece, but .*X_train.npz is NumPy or SciPy matrices"):
        cache.read(tmp_path / "X_train.npz")


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(DataError, match="holds other files"), CacheFolder(tmp_path, 2**30):
        pass
    with pytest.raises(DataError, match="is a file"), CacheFolder(tmp_path / "notes.txt", 2**30):
        pass


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(DataError, match="can be written to"), CacheFolder(tmp_path / "notes.txt" / "cache", 2**30):
        pass


def test_one_training_at_a_time(cache):
    with pytest.raises(DataError, match="is in use"), CacheFolder(cache.folder, 2**30):
        pass


def test_too_little_memory_is_refused(tmp_path):
    with pytest.raises(DataError, match="at least 250 MB of memory, but has 1 MB"):
        CacheFolder(tmp_path, 10**6)


def test_at_the_end_the_documents_stay_and_nothing_else(tmp_path, pets):
    with CacheFolder(tmp_path / "cache", 2**30) as cache:
        documents = cache.read(pets)
        scratch = cache.scratch.empty((2**26,), np.uint8)
    assert sorted(os.listdir(tmp_path / "cache")) == ["documents", "labelspace-cache.json"]
    assert documents.texts[1] == "it barks", "what is mapped can still be read"
    assert scratch.size
    assert cache.kept_bytes < 10_000
