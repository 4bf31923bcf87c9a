"""Conversion keeps the labels, and leaves no label file that another data file would read."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.data.conversion import convert
from labelspace.data.label_files import write_hierarchy, write_labels
from labelspace.data.source import read_dataset, write_dataset
from labelspace.errors import DataError
from labelspace.features import Tfidf
from labelspace.types import Concept, Dataset, Hierarchy, LabelSpace

SPACES = {
    "sorted": LabelSpace(["a", "b", "c"]),
    "unsorted": LabelSpace(["b", "a", "c"]),
    "unused": LabelSpace(["a", "b", "c", "unused"]),
    "synonyms": LabelSpace(["a", "b", "c"], [["one"], [], ["two", "three"]]),
    "hierarchy": LabelSpace(["a", "b", "c"], hierarchy=Hierarchy.from_edges([[0, 2], [1, 2]], 3)),
    "paths": LabelSpace(["x > a", "x > b", "x > c"]).with_paths(),
    "numbers": LabelSpace.numbered(3),
    "unused number": LabelSpace.numbered(5),
    "descriptions": LabelSpace(["a", "b", "c"], concepts=[Concept(), Concept(description="the second"), Concept()]),
    "described numbers": LabelSpace(["0", "1", "2"], concepts=[Concept(description="none")] * 3),
}
NEEDS_NO_FILE = ("sorted", "paths", "numbers")


def written(folder, space, name="in.jsonl"):
    """A data file with its own label files."""
    Y = sp.csr_matrix(np.eye(3, len(space)), dtype=np.float32)
    dataset = Dataset(Y, space, texts=["one text", "two text", "three text"])
    write_dataset(dataset, folder / name)
    write_labels(folder / "in.labels.jsonl", space)
    if space.hierarchy is not None:
        write_hierarchy(folder / "in.hierarchy.tsv", space)
    return dataset


def same_labels(one, other):
    edges = [None if space.hierarchy is None else space.hierarchy.edges.tolist() for space in (one, other)]
    texts = [[(name, list(also), about) for name, also, about in space.described()] for space in (one, other)]
    return edges[0] == edges[1] and texts[0] == texts[1]


@pytest.mark.parametrize("ending", [".jsonl", ".csv.gz", ".txt"])
@pytest.mark.parametrize("kind", SPACES)
def test_a_converted_file_is_read_with_the_same_labels(tmp_path, kind, ending):
    dataset = written(tmp_path, SPACES[kind])
    out = tmp_path / "there" / f"out{ending}"
    convert(tmp_path / "in.jsonl", out, Tfidf(min_df=1))
    back = read_dataset(out)
    assert same_labels(back.labels, dataset.labels)
    assert (back.Y != dataset.Y).nnz == 0
    names = {path.name for path in out.parent.iterdir()} - {out.name}
    assert names <= {"out.labels.jsonl", "out.hierarchy.tsv"}
    if ending != ".txt":
        assert bool(names) == (kind not in NEEDS_NO_FILE)


def test_conversions_do_not_see_each_other(tmp_path):
    for name, labels in (("one", ["b", "a"]), ("two", ["d", "c"])):
        rows = [{"text": "a text", "labels": [label]} for label in labels]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        for ending in (".csv", ".txt"):
            convert(tmp_path / f"{name}.jsonl", tmp_path / f"{name}-{ending[1:]}{ending}", Tfidf(min_df=1))
    assert not (tmp_path / "labels.jsonl").exists()
    assert list(read_dataset(tmp_path / "two-csv.csv").labels.names) == ["c", "d"]
    assert list(read_dataset(tmp_path / "two-txt.txt").labels.names) == ["c", "d"]
    assert list(read_dataset(tmp_path / "one.jsonl").labels.names) == ["a", "b"]


def test_an_older_target_leaves_nothing(tmp_path):
    written(tmp_path, SPACES["hierarchy"])
    convert(tmp_path / "in.jsonl", tmp_path / "out.txt", Tfidf(min_df=1))
    assert (tmp_path / "out.hierarchy.tsv").exists()
    (tmp_path / "other.jsonl").write_text('{"text": "a text", "labels": ["x"]}\n')
    convert(tmp_path / "other.jsonl", tmp_path / "out.txt", Tfidf(min_df=1))
    space = read_dataset(tmp_path / "out.txt").labels
    assert (list(space.names), space.hierarchy) == (["x"], None)
    (tmp_path / "out.txt").rename(tmp_path / "out.csv")
    convert(tmp_path / "other.jsonl", tmp_path / "out.csv", Tfidf(min_df=1))
    assert not (tmp_path / "out.labels.jsonl").exists()


def test_label_files_of_two_files_of_one_name_are_refused(tmp_path):
    written(tmp_path, SPACES["unsorted"])
    (tmp_path / "out.jsonl").write_text('{"text": "a text", "labels": ["x"]}\n')
    with pytest.raises(DataError, match=r"out.labels.jsonl must be read with out.txt only, but out.jsonl reads it too"):
        convert(tmp_path / "in.jsonl", tmp_path / "out.txt", Tfidf(min_df=1))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "in.labels.jsonl", "out.jsonl"]
    convert(tmp_path / "in.jsonl", tmp_path / "in.txt", Tfidf(min_df=1))  # the same labels
    assert same_labels(read_dataset(tmp_path / "in.jsonl").labels, read_dataset(tmp_path / "in.txt").labels)


def test_a_split_keeps_the_label_ids_of_its_folder_and_does_not_change_them(tmp_path):
    folder = tmp_path / "splits"
    folder.mkdir()
    shared = '{"label": "c"}\n{"label": "a", "alt": ["one"]}\n'
    (folder / "labels.jsonl").write_text(shared)
    written(tmp_path, LabelSpace(["a", "b", "c"]))
    convert(tmp_path / "in.jsonl", folder / "test.csv", Tfidf())
    assert (folder / "labels.jsonl").read_text() == shared
    back = read_dataset(folder / "test.csv")
    assert list(back.labels.names) == ["c", "a", "b"]
    assert list(back.labels.synonyms) == [[], ["one"], []]
    assert back.Y.toarray().tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
