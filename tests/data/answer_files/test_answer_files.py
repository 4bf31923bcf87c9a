"""Files of predictions, read back by other readers."""

import csv
import gzip
import json
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.data.answer_files import ENDINGS, LabelDisplay, Prediction, answer_format, writers, writing_answers
from labelspace.data.records import Record
from labelspace.errors import DataError, MissingExtraError, ParameterError
from labelspace.types import Concept, Hierarchy, LabelSpace

CONCEPTS = [Concept("ex:1", "1", {"fi": "eläimet"}), Concept("ex:2", "1.2", {"fi": "kissat"}), Concept()]
SPACE = LabelSpace(
    ["animals", "cats, tabby", "tea"], concepts=CONCEPTS, hierarchy=Hierarchy.from_edges([[1, 0]], n_labels=3)
)
PREDICTIONS = [
    Prediction(Record("a", "it purrs"), [1, 0], [0.875, 0.1234567], {"id": "a"}),
    Prediction(Record("b", "nothing"), [], [], {"id": "b"}),
    Prediction(Record("c", 'green "tea"'), [2, 1], [-0.5, -1.25], {"id": "c"}),
]
ROWS = [
    ["a", 1, "cats, tabby", "ex:2", "1.2", 0.875, None, "animals > cats, tabby"],
    ["a", 2, "animals", "ex:1", "1", 0.123457, None, "animals"],
    ["c", 1, "tea", "2", None, -0.5, None, "tea"],
    ["c", 2, "cats, tabby", "ex:2", "1.2", -1.25, None, "animals > cats, tabby"],
]
MATRIX = [[0.1234567, 0.875, 0], [0, 0, 0], [0, -1.25, -0.5]]


def written(path, predictions=PREDICTIONS, space=SPACE, language=None):
    with writing_answers(path, LabelDisplay(space, language), len(space)) as add:
        for prediction in predictions:
            add(prediction)
    return path


def read_scores(path):
    """A file of scores as text, in few lines: an oracle that shares nothing with the writer."""
    header, *lines = path.read_text().split("\n")[:-1]
    n, n_labels = map(int, header.split(" "))
    matrix = np.zeros((n, n_labels))
    for row, line in enumerate(lines):
        for label, score in (pair.split(":") for pair in line.split()):
            matrix[row, int(label)] = float(score)
    return matrix


@pytest.mark.parametrize(("ending", "separator"), [(".csv", ","), (".tsv", "\t")])
def test_tables_of_text(tmp_path, ending, separator):
    pandas = pytest.importorskip("pandas")
    path = written(tmp_path / f"a{ending}")
    with path.open(newline="") as file:
        rows = list(csv.reader(file, delimiter=separator))
    assert rows == [list(writers.COLUMNS), *[["" if cell is None else str(cell) for cell in row] for row in ROWS]]
    frame = pandas.read_csv(path, sep=separator, dtype={"notation": str, "label_id": str})
    assert frame["label"].tolist() == [row[2] for row in ROWS]
    assert frame.loc[2, ["notation"]].isna().all()


def test_scores_that_are_probabilities_are_said_to_be(tmp_path):
    with writing_answers(tmp_path / "a.csv", LabelDisplay(SPACE, are_probabilities=True), len(SPACE)) as add:
        add(PREDICTIONS[0])
    with (tmp_path / "a.csv").open(newline="") as file:
        assert [row["probability"] for row in csv.DictReader(file)] == ["0.875", "0.123457"]


def test_parquet_is_typed(tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(writers, "_BATCH", 1)
    frame = pandas.read_parquet(written(tmp_path / "a.parquet"))
    assert frame["score"].dtype == np.float32
    assert frame["rank"].dtype == np.int32
    assert frame["path"].tolist() == [row[7] for row in ROWS]
    assert frame["notation"].isna().tolist() == [False, False, True, False]
    empty = pandas.read_parquet(written(tmp_path / "b.parquet", PREDICTIONS[1:2]))
    assert list(empty.columns) == list(writers.COLUMNS)
    assert len(empty) == 0


def test_scores_as_matrices(tmp_path):
    found = sp.load_npz(written(tmp_path / "a.npz"))
    assert (found.format, found.shape) == ("csr", (3, 3))
    assert found.toarray() == pytest.approx(np.array(MATRIX), abs=1e-7)
    assert read_scores(written(tmp_path / "a.txt")) == pytest.approx(np.array(MATRIX), abs=1e-7)
    assert sp.load_npz(written(tmp_path / "none.npz", [])).shape == (0, 3)


def test_json_lines_are_what_is_printed(tmp_path):
    path = written(tmp_path / "a.jsonl.gz")
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    assert [json.loads(line) for line in lines] == [{"id": "a"}, {"id": "b"}, {"id": "c"}]


def test_documents_for_annif(tmp_path):
    lines = [json.loads(line) for line in written(tmp_path / "a.annif.jsonl").read_text().splitlines()]
    assert lines[0] == {
        "document_id": "a",
        "text": "it purrs",
        "subjects": [{"uri": "ex:2", "label": "cats, tabby"}, {"uri": "ex:1", "label": "animals"}],
    }
    assert lines[2]["subjects"][0] == {"label": "tea"}
    features = Prediction(Record("a", None, "1:1"), [1], [0.5], {})
    with pytest.raises(DataError, match="must have texts, but document 'a' has only features"):
        written(tmp_path / "b.annif.jsonl", [features])


def test_names_in_a_language(tmp_path):
    rows = written(tmp_path / "a.csv", language="fi").read_text().splitlines()
    assert rows[1] == "a,1,kissat,ex:2,1.2,0.875,,eläimet > kissat"
    assert rows[3] == "c,1,tea,2,,-0.5,,tea"
    with pytest.raises(ParameterError, match="but is 'sv'; the names are in fi: choose one of these"):
        LabelDisplay(SPACE, "sv")
    with pytest.raises(ParameterError, match="one language only: leave it out"):
        LabelDisplay(LabelSpace(["tea"]), "fi")


def test_paths():
    names = ["food", "food > tea", "drinks", "food > tea > green", "cup"]
    tree = Hierarchy.from_edges([[1, 0], [3, 1], [1, 2], [4, 3]], n_labels=5)
    display = LabelDisplay(LabelSpace(names, hierarchy=tree))
    paths = [display.shown(label).path for label in range(5)]
    assert paths == [*names[:4], "food > tea > green > cup"]
    assert display.as_json(4, 0.5) == {"label": "cup", "score": 0.5, "path": paths[4]}
    assert LabelDisplay(LabelSpace(names)).as_json(4, 1 / 3) == {"label": "cup", "score": 0.333333}


@pytest.mark.parametrize("ending", list(ENDINGS))
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_nothing_is_left_of_a_writing_that_fails(tmp_path, ending, error):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"a{ending}"
    path.write_text("before")

    def stopping():
        yield from PREDICTIONS * 5
        raise error

    with pytest.raises(error):
        written(path, stopping())
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.xlsx", r"must end with \.annif\.jsonl, \.jsonl, .*, but is 'a\.xlsx'; rename it"),
        ("answers", "must end with"),
        ("a.csv.zip", "must end with"),
        ("a.npz.gz", r"\.npz is read without unpacking, so it must not end with \.gz"),
        ("a.parquet.zst", r"leave \.zst out"),
    ],
)
def test_unknown_endings(name, message):
    with pytest.raises(DataError, match=message):
        answer_format(name)


def test_a_missing_package_is_said_before_any_work(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"writing \.parquet needs the package 'pyarrow'"):
        answer_format("a.parquet")
