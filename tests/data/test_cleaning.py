"""The cleaned copy: what is mended, what is kept, and that the checks are silent after it."""

import gzip
import json

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.data.checks import CHECKS, Documents, run_checks
from labelspace.data.cleaning import FIXED, clean, write_cleaned
from labelspace.data.source import open_source
from labelspace.errors import DataError
from labelspace.types import Dataset, Hierarchy, LabelSpace

NAMES = ["bread", "fish", "rice"]


def row(i, **changes):
    return {"id": f"d{i}", "text": f"text number {i} about {NAMES[i % 3]}", "labels": [NAMES[i % 3]]} | changes


TRAIN = [
    *(row(i) for i in range(12)),
    row(20, text="TEXT number 3\n about bread", labels=["bread"]),  # a duplicate of 3
    row(21, text="text number 4 about fish", labels=["rice"]),  # the same with another label
    row(22, text=" \t"),
    row(23, text="cafÃ© number 23"),
    row(24, text="con\x00trol number 24"),
    row(25, labels=["Breads"]),
    row(26, text="text of the test", labels=["rice"]),
    row(27, text="text of dev", labels=["rice"]),
]
DEV = [row(30, text="Text of dev"), row(31, text="text of the test"), row(32)]
TEST = [row(40, text="text of the test"), row(41, text="text of the test"), row(42, labels=["Breads"])]


def write(path, rows):
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def read(path):
    raw = path.read_bytes()
    return [json.loads(line) for line in (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode().splitlines()]


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    write(folder / "train.jsonl", TRAIN)
    write(folder / "dev.jsonl.gz", DEV)
    write(folder / "test.jsonl", TEST)
    (folder / "labels.jsonl").write_text(
        "".join(json.dumps({"label": name, "alt": [name * 2]}) + "\n" for name in NAMES)
    )
    (folder / "hierarchy.tsv").write_text("bread\tbaked\nbaked\tfood\nbread\tfood\nBreads\tbaked\n")
    return folder


def test_everything_is_mended_once_and_the_input_stays(folder, tmp_path):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    cleaned = clean(Documents.read(open_source(folder)))
    written = write_cleaned(cleaned, folder, tmp_path / "out")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in written] == ["train.jsonl", "dev.jsonl.gz", "test.jsonl"]
    assert cleaned.changes == {
        "wrong_encoding": {"texts of train": 1},
        "control_characters": {"texts of train": 1},
        "near_duplicate_labels": {"labels merged": 1},
        "redundant_edges": {"edges removed": 1},
        "empty_documents": {"documents removed from train": 1},
        "leaked_documents": {"documents removed from train": 2, "documents removed from dev": 1},
        "duplicate_documents": {"documents removed from train": 1},
    }
    assert cleaned.merged == {"Breads": "bread"}
    train, dev, test = (read(tmp_path / "out" / name) for name in ("train.jsonl", "dev.jsonl.gz", "test.jsonl"))
    ids = [f"d{i}" for i in (*range(12), 21, 23, 24, 25)]
    assert [row["id"] for row in train] == ids  # the same text with other labels stays
    assert [row["text"] for row in train[-3:-1]] == ["café number 23", "control number 24"]
    assert train[-1]["labels"] == test[-1]["labels"] == ["bread"]
    assert [row["id"] for row in dev] == ["d30", "d32"]
    assert [row["id"] for row in test] == ["d40", "d41", "d42"]  # duplicates of test stay
    assert (tmp_path / "out" / "hierarchy.tsv").read_text() == "bread\tbaked\nbaked\tfood\n"
    labels = [json.loads(line) for line in (tmp_path / "out" / "labels.jsonl").read_text().splitlines()]
    assert labels[0] == {"label": "bread", "alt": ["breadbread"]}
    assert "Breads" not in [label["label"] for label in labels]


def test_the_checks_are_silent_on_the_copy(folder, tmp_path):
    write_cleaned(clean(Documents.read(open_source(folder))), folder, tmp_path / "out")
    report = run_checks(Documents.read(open_source(tmp_path / "out")), FIXED)
    assert not report.findings


@pytest.mark.parametrize("name", FIXED)
def test_each_repair_can_be_left_out_or_be_the_only_one(folder, name):
    documents = Documents.read(open_source(folder))
    assert list(clean(documents, [name]).changes) == [name]
    assert name not in clean(documents, [other for other in FIXED if other != name]).changes


def test_clean_data_stay_as_they_are(tmp_path):
    write(tmp_path / "a.jsonl", [row(i) for i in range(6)])
    source = open_source(tmp_path / "a.jsonl")
    cleaned = clean(Documents.read(source))
    assert cleaned.changes == {}
    write_cleaned(cleaned, tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    assert read(tmp_path / "b.jsonl") == read(tmp_path / "a.jsonl")
    assert not (tmp_path / "b.labels.jsonl").exists()


def test_features_keep_their_format(tmp_path):
    X = sp.random(20, 9, 0.4, "csr", np.float32, rng=1).tolil()
    X[5], X[6] = X[4], 0
    Y = sp.csr_matrix(np.eye(2, dtype=np.float32)[np.arange(20) // 8 % 2])
    cleaned = clean(Documents({"train": Dataset(Y, LabelSpace.numbered(2), X=X.tocsr())}))
    write_cleaned(cleaned, tmp_path / "a.txt", tmp_path / "b.txt")
    assert (tmp_path / "b.txt").read_text().splitlines()[0] == "18 9 2"


def test_names_that_become_one_are_merged():
    Y = sp.csr_matrix(np.eye(3, dtype=np.float32))
    space = LabelSpace(["café", "cafÃ©", "tea"], hierarchy=Hierarchy.from_edges([[1, 2]], 3))
    cleaned = clean(Documents({"train": Dataset(Y, space, ["a b", "c d", "e f"])}), ["wrong_encoding"])
    train = cleaned.documents.train
    assert list(train.labels.names) == ["café", "tea"]
    assert train.Y.toarray().tolist() == [[1, 0], [1, 0], [0, 1]]
    assert train.labels.hierarchy.edges.tolist() == [[0, 1]]


def test_what_would_leave_nothing_or_close_a_circle_is_refused():
    Y = sp.csr_matrix(np.eye(4, dtype=np.float32))
    with pytest.raises(DataError, match="would remove all 4; leave it out: skip=empty_documents"):
        clean(Documents({"train": Dataset(Y, LabelSpace.numbered(4), [" "] * 4)}))
    space = LabelSpace(["egg", "food", "foods", "eggs"], hierarchy=Hierarchy.from_edges([[0, 1], [2, 3]], 4))
    with pytest.raises(DataError, match="circle.*skip=near_duplicate_labels"):
        clean(Documents({"train": Dataset(Y, space, ["a", "b", "c", "d"])}))


def test_nothing_is_replaced(folder, tmp_path):
    cleaned = clean(Documents.read(open_source(folder)))
    with pytest.raises(DataError, match="must be a new file or folder"):
        write_cleaned(cleaned, folder, folder)


def test_every_check_says_whether_it_is_mended():
    assert set(FIXED) == {name for name, check in CHECKS.items() if check.fixed}
