import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.data.objects.document_reader import DocumentReader
from labelspace.data.objects.inputs import read_inputs
from labelspace.errors import DataError, ParameterError
from labelspace.types import Columns, Concept, Dataset, Fields, LabelSpace

TEXTS = ["rye bread", "green tea", "iced tea"]
TAGS = [["bread", "food"], ["tea"], []]
Y = [[1, 1, 0], [0, 0, 1], [0, 0, 0]]  # bread, food, tea


def read(data, labels=None, **options):
    return DocumentReader(options).dataset(data, labels)


def frame_of(package, columns):
    module = pytest.importorskip({"arrow": "pyarrow"}.get(package, package), reason=f"{package} is not installed")
    make = {"arrow": "table", "pandas": "DataFrame", "polars": "DataFrame"}.get(package)
    return module.Dataset.from_dict(columns) if make is None else getattr(module, make)(columns)


PACKAGES = ["pandas", "polars", "arrow", "datasets"]


@pytest.mark.parametrize("package", PACKAGES)
def test_tables_and_columns_of_packages_are_read_alike(package):
    frame = frame_of(package, {"no": [7, 8, 9], "title": TEXTS, "tags": TAGS})
    whole = read(frame, text="title", labels="tags", id="no")
    for data in (whole, read(frame["title"], frame["tags"]), read(frame, frame["tags"], text="title")):
        assert list(data.texts) == TEXTS
        assert data.labels.names == ["bread", "food", "tea"]
        assert data.Y.toarray().tolist() == Y
    assert whole.ids == ["7", "8", "9"]
    assert whole.fields == Fields(("title",), ("tags",), "no", None)
    with pytest.raises(
        DataError, match=r"must have one column 'titel', but has: no, title, tags; did you mean 'title'"
    ):
        read(frame, text="titel", labels="tags")
    with pytest.raises(
        DataError, match="column with the texts must be named, but is not, .* no, title, tags; write text"
    ):
        read(frame, labels="tags")
    with pytest.raises(DataError, match=r"with columns; give one column: df\['no'\]"):
        read_inputs(frame)
    assert read_inputs(frame, fields=whole.fields) == TEXTS
    table = read(frame, inputs=["title", "no"], outputs=["tags"])
    assert table.texts[0] == "title: rye bread; no: 7"
    assert read_inputs(frame, table.columns) == table.texts
    assert table.labels.names == ["tags: bread", "tags: food", "tags: tea"]


@pytest.mark.parametrize("package", PACKAGES)
def test_embeddings_and_tables_of_numbers_are_features(package):
    vectors = [[0.5, 0.0], [0.25, 1.0], [0.0, 2.0]]
    frame = frame_of(package, {"vector": vectors, "tags": TAGS})
    data = read(frame["vector"], frame["tags"])
    assert data.texts is None
    assert data.X.toarray().tolist() == vectors
    assert np.asarray(read_inputs(frame["vector"])).tolist() == vectors
    numbers = frame_of(package, {"a": [0.5, 0.25, 0.0], "b": [0, 1, 2]})
    labels = frame_of(package, {"bread": [1, 0, 0], "tea": [0, 1, 1]})
    data = read(numbers, labels)
    assert data.X.toarray().tolist() == vectors
    assert data.labels.names == ["bread", "tea"]
    assert data.Y.toarray().tolist() == [[1, 0], [0, 1], [0, 1]]
    assert read_inputs(numbers, ready_made=True).tolist() == vectors


def test_arrow_and_polars_have_embeddings_of_a_fixed_width():
    arrow, polars = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    fixed = arrow.FixedSizeListArray.from_arrays(arrow.array([0.5, 0.0, 0.25, 1.0]), 2)
    for column in (
        fixed,
        arrow.chunked_array([fixed]),
        polars.Series([[0.5, 0], [0.25, 1]], dtype=polars.Array(float, 2)),
    ):
        assert read(column, [["x"], ["y"]]).X.toarray().tolist() == [[0.5, 0.0], [0.25, 1.0]]


def test_missing_values_of_pandas():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "title": pandas.Series(["a", pandas.NA, "c"], dtype="string"),
            "body": ["x", None, None],
            "price": pandas.Series([1, 2, None], dtype="Int64"),
            "tag": ["x", None, "y"],
            "tags": [["x"], None, float("nan")],
        }
    ).set_axis(["p", "q", "r"])
    assert read(["1", "2", "3"], frame["tag"]).Y.toarray().tolist() == [[1, 0], [0, 0], [0, 1]]
    assert read(["1", "2", "3"], frame["tags"]).Y.toarray().tolist() == [[1], [0], [0]]
    with pytest.raises(DataError, match="the column 'title' must hold texts, but that of row 1 is missing; write ''"):
        read(frame, text="title", labels="tag")
    with pytest.raises(DataError, match="row 1 is of type NAType, which is missing"):
        read(frame["title"], frame["tag"])
    assert read(frame, text=["title", "body", "price"], labels="tag").texts == ["a\nx\n1", "2", "c"]
    assert read(frame, inputs="title,price", outputs="tag").texts == ["title: a; price: 1", "price: 2", "title: c"]
    with pytest.raises(DataError, match="each document must have an id, but row 1 has none in 'tag'"):
        read(frame.assign(title="a"), text="title", labels="tags", id="tag")
    doubled = pandas.concat([frame["tag"], frame["tag"]], axis=1)
    with pytest.raises(DataError, match="must have one column 'tag', but has 2 of them"):
        read(doubled, text="tag", labels="tag")


def test_class_labels_of_datasets_are_names():
    datasets = pytest.importorskip("datasets")
    kind = datasets.ClassLabel(names=["bread", "tea"])
    features = datasets.Features({"text": datasets.Value("string"), "labels": datasets.Sequence(kind), "one": kind})
    rows = {"text": TEXTS, "labels": [[0], [1, 0], []], "one": [0, 1, -1]}
    dataset = datasets.Dataset.from_dict(rows, features=features)
    for data in (read(dataset), read(dataset["text"], dataset["labels"]), read(dataset.with_format("numpy"))):
        assert data.labels.names == ["bread", "tea"]
        assert data.Y.toarray().tolist() == [[1, 0], [1, 1], [0, 0]]
    assert read(dataset, labels="one").Y.toarray().tolist() == [[1, 0], [0, 1], [0, 0]]
    splits = datasets.DatasetDict(train=dataset, test=dataset)
    with pytest.raises(DataError, match=r"is a DatasetDict of train, test; give one of them: data\['train'\]"):
        read(splits, text="text", labels="labels")


@pytest.mark.slow  # imports torch, where it is installed
def test_a_streamed_dataset_is_read():
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"text": datasets.Value("string"), "labels": datasets.ClassLabel(names=["a", "b"])})
    streamed = datasets.Dataset.from_dict({"text": TEXTS, "labels": [0, 1, 1]}, features=features).to_iterable_dataset()
    for data in (read(streamed), read(streamed["text"], streamed["labels"])):
        assert list(data.texts) == TEXTS
        assert data.Y.toarray().tolist() == [[1, 0], [0, 1], [0, 1]]
        assert data.labels.names == ["a", "b"]


def test_a_lazy_frame_has_no_rows_yet():
    polars = pytest.importorskip("polars")
    with pytest.raises(DataError, match=r"is a LazyFrame of polars, which has no rows yet; give df.collect\(\)"):
        read(polars.LazyFrame({"text": ["a"]}), [["x"]])


def test_rows_as_dicts_are_a_table():
    rows = [{"title": "a", "tags": ["x"]}, {"title": "b", "body": "c"}]
    for given in (rows, tuple(rows), iter(rows)):
        data = read(given, text=["title", "body"], labels="tags")
        assert data.texts == ["a", "b\nc"]
        assert data.Y.toarray().tolist() == [[1], [0]]
    with pytest.raises(DataError, match="either all rows are dicts or none, but row 1 is of type str"):
        read([{"text": "a"}, "b"], labels="tags")
    with pytest.raises(DataError, match="row 0 is of type dict"):
        read_inputs(rows)


def test_one_label_per_text_and_labels_in_a_text():
    assert read(TEXTS, ["bread", "tea", ""]).Y.toarray().tolist() == [[1, 0], [0, 1], [0, 0]]
    given = ["bread|food", "tea", None]
    assert read(TEXTS, given, label_separator="|").Y.toarray().tolist() == Y
    assert read(TEXTS, given, label_separator="pipe").Y.toarray().tolist() == Y
    assert read(TEXTS, given, label_separator="none").labels.names == ["bread|food", "tea"]
    with pytest.raises(DataError, match=r"but 'bread\|food' may be several; write label_separator='\|', or .*'none'"):
        read(TEXTS, given)
    with pytest.raises(DataError, match="'bread, food' may be several; write label_separator=','"):
        read(TEXTS, ["bread, food", "tea", "tea"])
    with pytest.raises(
        ParameterError, match=r"is for labels that are texts, but row 0 is \['bread', 'food'\]; leave it"
    ):
        read(TEXTS, TAGS, label_separator="|")


@pytest.mark.parametrize("matrix", [np.array(Y), np.array(Y, bool), sp.csc_matrix(Y), sp.coo_array(np.array(Y, float))])
def test_a_matrix_of_labels(matrix):
    named = read(TEXTS, matrix, label_names=["bread", "food", "tea"])
    assert named.labels.names == ["bread", "food", "tea"]
    assert named.Y.toarray().tolist() == Y
    assert read(TEXTS, matrix).labels.names == ["0", "1", "2"]
    with pytest.raises(DataError, match="there are 2 names for 3 columns; give the names of its columns"):
        read(TEXTS, matrix, label_names=["bread", "food"])
    with pytest.raises(DataError, match="there are 3 for 2 texts"):
        read(TEXTS[:2], matrix)
    with pytest.raises(DataError, match="must hold 0 and 1, but holds 2"):
        read(TEXTS, matrix.astype(float) * 2)
    assert matrix.sum() == 3


def test_label_ids_need_names_and_are_no_matrix():
    names = ["bread", "food", "tea"]
    assert read(TEXTS, [[0, 1], [2], []], label_names=names).Y.toarray().tolist() == Y
    assert read(TEXTS, np.array([0, 2, 1]), label_names=names).Y.toarray().tolist() == np.eye(3)[[0, 2, 1]].tolist()
    with pytest.raises(DataError, match="all names or all ids"):
        read(TEXTS, [[0], ["tea"], []])
    for matrix in (Y, [[0, 1], [1, 0], [0, 1]]):
        with pytest.raises(DataError, match=r"a matrix of 0 and 1 is an array: np.array\(labels\)"):
            read(TEXTS, matrix)
    with pytest.raises(DataError, match="from 0 to 2, but one is 3"):
        read(TEXTS, [[0], [3], []], label_names=names)
    for matrix in (Y, [[0, 1, 2]] * 3):
        with pytest.raises(DataError, match=r"a matrix of 0 and 1 is an array: np.array\(labels\)"):
            read(TEXTS, matrix, label_names=names)


def test_numbers_are_names_as_in_files():
    first = read(TEXTS, [[250, 401], [401], []])
    assert first.labels.names == ["250", "401"]
    more = read(TEXTS, [[401], [7], [250]], label_names=first.labels)
    assert more.labels.names == ["250", "401", "7"]
    assert more.Y.toarray().tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]


def test_a_label_space_keeps_its_ids_and_grows():
    space = LabelSpace(["tea", "food"], concepts=[Concept("http://x/tea"), Concept("http://x/food")])
    data = read(TEXTS, [["http://x/food", "bread"], ["tea"], []], label_names=space)
    assert data.labels.names == ["tea", "food", "bread"]
    assert data.Y.toarray().tolist() == [[0, 1, 1], [1, 0, 0], [0, 0, 0]]


def test_columns_of_0_and_1_are_labels():
    rows = [{"text": text, "tea": "tea" in text, "bread": int("bread" in text)} for text in TEXTS]
    data = read(rows, labels=["bread", "tea"])
    assert data.labels.names == ["bread", "tea"]
    assert data.Y.toarray().tolist() == [[1, 0], [0, 1], [0, 1]]
    assert data.fields == Fields(labels=("bread", "tea"), id=None, label_separator=None, indicators=True)
    rows = [{"text": "a", "topic": "food", "kind": ["x", "y"]}, {"text": "b", "topic": "drink", "kind": None}]
    assert read(rows, labels=["topic", "kind"]).labels.names == ["drink", "food", "x", "y"]


def test_spellings_of_a_label_are_merged_as_in_training():
    rows = [
        {"text": "a", "labels": ["Tea"]},
        {"text": "b", "labels": ["tea ", "bread"]},
        {"text": "c", "labels": ["Tea"]},
    ]
    data = read(rows, normalize_labels=True)
    assert data.labels.names == ["Tea", "bread"]
    assert data.fields.normalize_labels
    later = DocumentReader({}, data.labels, fields=data.fields).dataset([{"text": "d", "labels": ["TEA", "Rye"]}])
    assert later.labels.names == ["Tea", "bread", "Rye"]
    assert later.Y.toarray().tolist() == [[1, 0, 1]]


def test_documents_of_a_trained_tagger_follow_its_fields_and_labels():
    known, fields = LabelSpace(["tea", "bread"]), Fields(("title",), ("tags",), "no", ";")
    reader = DocumentReader({}, known, fields=fields)
    for tags in (["bread; rye", "tea"], [["bread", "rye"], ["tea"]]):
        data = reader.dataset([{"title": "a", "tags": tags[0]}, {"title": "b", "tags": tags[1]}])
        assert data.labels.names == ["tea", "bread", "rye"]
        assert data.Y.toarray().tolist() == [[0, 1, 1], [1, 0, 0]]
    other = Dataset(sp.csr_matrix(np.eye(3, dtype=np.float32)), LabelSpace(["bread", "tea", "rye"]), texts=TEXTS)
    assert reader.dataset(other).Y.toarray().tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1]]
    with pytest.raises(ParameterError, match="a Dataset has labels of its own"):
        reader.dataset(other, TAGS)


@pytest.mark.parametrize(
    ("data", "labels", "options", "message"),
    [
        ("one text", [["x"]], {}, r"is one str; give a list of texts: \[text\]"),
        (b"bytes", [["x"]], {}, "is one bytes"),
        ({"text": ["a"]}, [["x"]], {}, "is one dict"),
        ({"a"}, [["x"]], {}, "is a set, which has no order"),
        (["a"], None, {}, r"each document must have labels, but none are given; write fit\(texts, labels\)"),
        (["a"], [["x"]], {"text": "title"}, "text names a column of a table, but the data are a list; leave it out"),
        (np.zeros(3), [["x"]] * 3, {}, r"must be a matrix of numbers, but are an array of shape \(3,\)"),
        ([[0.5], [0.5, 1.0]], [["x"]] * 2, {}, "row 0 has 1 and row 1 has 2; give rows of one length"),
        ([[0.5], None], [["x"]] * 2, {}, "row 0 has 1 and row 1 is None"),
        ([["a", "b"]], [["x"]], {}, "the one of row 0 is of type list"),
        ([{"a": 1}], None, {"inputs": ["a"]}, "inputs and outputs go together, but outputs is missing"),
        ([{"a": 1}], None, {"inputs": ["a,b"], "outputs": ["c"]}, "named without commas, but one is 'a,b'"),
        ([{"a": 1}], [["x"]], {"inputs": "a", "outputs": "b"}, "labels are given too; leave one out"),
        ([{"a": "b"}], None, {"text": []}, "text must be names, but is"),
    ],
)
def test_what_is_not_understood_is_refused_in_one_line(data, labels, options, message):
    with pytest.raises((DataError, ParameterError), match=message) as error:
        read(data, labels, **options)
    assert "\n" not in str(error.value)


def test_levels_of_a_table_are_a_hierarchy():
    rows = [{"title": "a", "dept": "Food", "aisle": "Bread"}, {"title": "b", "dept": "Food", "aisle": "Tea"}]
    data = read(rows, inputs=["title"], outputs=[["dept", "aisle"]])
    assert data.columns == Columns(("title",), (("dept", "aisle"),))
    assert data.labels.hierarchy.levels.tolist() == [0, 1, 1]
