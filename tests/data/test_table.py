"""Tables: texts, labels and hierarchy of rows with any columns, the same from every format."""

import gzip
import json
import math
from datetime import date
from decimal import Decimal

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from labelspace.data.cells import cell_values
from labelspace.data.label_files import write_labels
from labelspace.data.read_options import ReadOptions
from labelspace.data.records import Record
from labelspace.data.source import iter_records, open_source, read_dataset
from labelspace.data.table import describe_labels, parse_columns, row_labels, row_text, table_columns
from labelspace.errors import DataError, ParameterError
from labelspace.types import Columns, LabelSpace

COLUMNS = Columns(("title", "price"), (("brand",), ("L0", "L1")))
HEADER = "id,title,price,brand,L0,L1,unused\n"
ROWS = (
    "a,Green tea,119,Tata,Drinks,Tea,x\n"
    "b,Black tea,  ,NA,Drinks,Tea,x\n"
    'c,"Cola, 2 l",30.5,Coke,Drinks,Soda,x\n'
    "d,null,n/a,,Food,,x\n"
)


def table(folder, text=HEADER + ROWS, name="products.csv"):
    path = folder / name
    path.write_text(text)
    return path


def lines(folder, *rows, name="products.jsonl"):
    return table(folder, "".join(json.dumps(row) + "\n" for row in rows), name)


def test_rows_become_texts_and_labels(tmp_path):
    data = read_dataset(table(tmp_path), columns=COLUMNS)
    assert data.texts == ["title: Green tea; price: 119", "title: Black tea", "title: Cola, 2 l; price: 30.5", ""]
    assert data.ids == ["a", "b", "c", "d"]
    assert data.labels.names == ["brand: Coke", "brand: Tata", "L0: Drinks", "L0: Food", "L1: Soda", "L1: Tea"]
    assert data.labels.synonyms == [["Coke"], ["Tata"], ["Drinks"], ["Food"], ["Soda"], ["Tea"]]
    assert data.Y.toarray().tolist() == [[0, 1, 1, 0, 0, 1], [0, 0, 1, 0, 0, 1], [1, 0, 1, 0, 1, 0], [0, 0, 0, 1, 0, 0]]
    assert data.labels.hierarchy.edges.tolist() == [[4, 2], [5, 2]]
    assert data.columns == data.rows([0]).columns == COLUMNS


def test_formats_give_the_same(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [
        {"id": "a", "title": "Green tea", "price": 119.0, "brand": "Tata", "L0": "Drinks", "L1": "Tea"},
        {"id": "b", "title": "Black tea", "price": None, "brand": "NA", "L0": "Drinks", "L1": "Tea"},
        {"id": "c", "title": "Cola, 2 l", "price": 30.5, "brand": "Coke", "L0": "Drinks", "L1": "Soda"},
        {"id": "d", "title": "null", "price": math.nan, "brand": " ", "L0": "Food"},
    ]
    plain = [table(tmp_path), lines(tmp_path, *rows), tmp_path / "products.parquet"]
    parquet.write_table(arrow.Table.from_pylist(rows), plain[2])
    packed = []
    for path in plain:
        packed.append(path.with_name(path.name + ".gz"))
        packed[-1].write_bytes(gzip.compress(path.read_bytes()))
    first = read_dataset(plain[0], columns=COLUMNS)
    for path in [*plain[1:], *packed]:
        data = read_dataset(path, columns=COLUMNS)
        assert (data.texts, data.ids, data.labels.names) == (first.texts, first.ids, first.labels.names)
        assert data.Y.toarray().tolist() == first.Y.toarray().tolist()
        assert data.labels.hierarchy.edges.tolist() == first.labels.hierarchy.edges.tolist()
        assert [record.text for record in iter_records(path, columns=COLUMNS)] == first.texts


@pytest.mark.parametrize(
    ("cell", "values"),
    [
        (" x ", ["x"]),
        ("N/A", []),
        ("NaN", []),
        ("None", []),
        ("nullable", ["nullable"]),
        (None, []),
        (math.nan, []),
        (119.0, ["119"]),
        (-0.5, ["-0.5"]),
        (float(np.float32(19.99)), ["19.99"]),
        (19.99, ["19.99"]),
        (0.1 + 0.2, [repr(0.1 + 0.2)]),
        (1e300, ["1e+300"]),
        (math.inf, ["inf"]),
        (np.int64(7), ["7"]),
        (np.float32(2), ["2"]),
        (Decimal("1190.00"), ["1190"]),
        (Decimal("1.50"), ["1.5"]),
        (True, ["True"]),
        (date(2024, 1, 2), ["2024-01-02"]),
        (b"caf\xc3\xa9", ["café"]),
        ([], []),
        (["a", ["b", "NA"], 3.0], ["a", "b", "3"]),
        (np.array([1.0, 2.5]), ["1", "2.5"]),
        ({"color": "red", "size": None}, ["red"]),
    ],
)
def test_a_cell_is_written_plainly(cell, values):
    assert cell_values(cell) == values


CELLS = st.one_of(
    st.none(),
    st.integers(-(10**9), 10**9),
    st.sampled_from(["", " ", "NA", "n/a", "NULL", "none", "Nan"]),
    st.text(st.characters(codec="utf-8", exclude_characters=";:,\r\n"), max_size=8),
)


@given(st.lists(st.fixed_dictionaries({}, optional={name: CELLS for name in ("title", "price", "brand", "L0", "L1")})))
def test_text_and_labels_are_as_specified(rows):
    for row in rows:
        there = {name: str(cell).strip() for name, cell in row.items() if str(cell).strip().lower() not in
                 ("", "na", "n/a", "nan", "null", "none")}  # fmt: skip
        read = (f"{name}: {there[name]}" for name in ("title", "price") if name in there)
        assert row_text(row, COLUMNS) == "; ".join(read)
        expected = tuple(f"{name}: {there[name]}" for name in ("brand", "L0", "L1") if name in there)
        assert row_labels(row, COLUMNS) == expected


def test_lists_give_several_labels_each_once(tmp_path):
    columns = Columns(("title",), (("tags",), ("L0", "L1")))
    rows = {"title": "tea", "tags": ["b", "a", "b", "NA", 3]}, {"title": "x", "L0": ["A", "B"], "L1": "c"}
    data = read_dataset(lines(tmp_path, *rows), columns=columns)
    assert data.labels.names == ["tags: 3", "tags: a", "tags: b", "L0: A", "L0: B", "L1: c"]
    assert data.Y.toarray().tolist() == [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]
    assert data.labels.hierarchy.edges.tolist() == [[5, 3], [5, 4]]


def test_a_value_lies_below_the_nearest_level_that_is_there():
    names = ["L0: a", "L0: b", "L1: a", "L2: a", "L2: d"]
    Y = sp.csr_matrix(
        [
            [1, 0, 1, 1, 0],  # a > a > a: three labels
            [0, 1, 1, 0, 0],  # L1 a below b too: a DAG
            [0, 1, 0, 0, 1],  # L1 is missing: d lies below b
            [0, 0, 0, 1, 0],  # nothing above
        ]
    )
    labels = describe_labels(LabelSpace(names), Y, Columns(("title",), (("L0", "L1", "L2"),)))
    assert labels.hierarchy.edges.tolist() == [[2, 0], [2, 1], [3, 2], [4, 1]]


@given(st.lists(st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=3, max_size=3), min_size=1, max_size=12))
def test_edges_are_those_of_a_slow_twin(rows):
    columns = Columns(("title",), (("L0", "L1", "L2"),))
    tables = [dict(zip(("L0", "L1", "L2"), row, strict=True)) for row in rows]
    names = sorted({label for row in tables for label in row_labels(row, columns)}, key=columns.split_label)
    Y = np.array([[name in row_labels(row, columns) for name in names] for row in tables], np.float32)
    if not names:
        return
    expected = set()
    for row in rows:
        there = [(f"L{level}: {value}") for level, value in enumerate(row) if value]
        expected |= {(names.index(child), names.index(parent)) for parent, child in zip(there, there[1:], strict=False)}
    hierarchy = describe_labels(LabelSpace(names), sp.csr_matrix(Y), columns).hierarchy
    assert {tuple(edge) for edge in ([] if hierarchy is None else hierarchy.edges.tolist())} == expected


def test_columns_without_a_chain_have_no_hierarchy(tmp_path):
    data = read_dataset(table(tmp_path), columns=Columns(("title",), (("L0",), ("L1",))))
    assert data.labels.hierarchy is None


def test_a_column_of_whole_paths_is_a_hierarchy(tmp_path):
    data = read_dataset(table(tmp_path, "t,c\na,x > y\nb,x > z > w\n"), columns=Columns(("t",), (("c",),)))
    assert data.labels.names == ["c: x > y", "c: x > z > w", "c: x", "c: x > z"]
    assert data.labels.hierarchy.edges.tolist() == [[0, 2], [1, 3], [3, 2]]
    assert data.labels.synonyms[3] == ["x > z"]
    assert data.Y.shape == (2, 4)


def test_rows_to_measure_on_leave_the_hierarchy_alone(tmp_path):
    table(tmp_path, name="train.csv")
    table(tmp_path, HEADER + "e,Tea cake,9,New,Food,Tea,x\n", name="test.csv")
    source = open_source(tmp_path, options=ReadOptions(columns=COLUMNS))
    train = source.train()
    test = source.test(train.labels)
    assert test.labels.names == [*train.labels.names, "brand: New"]
    assert test.labels.hierarchy.edges.tolist() == train.labels.hierarchy.edges.tolist()
    assert test.Y.indices.tolist() == [3, 5, 6]
    assert test.columns == COLUMNS


def test_label_files_beside_are_of_other_data(tmp_path):
    write_labels(tmp_path / "labels.jsonl", LabelSpace(["other", "brand: Tata"]))
    (tmp_path / "hierarchy.tsv").write_text("other\tbrand: Tata\n")
    data = read_dataset(table(tmp_path), columns=COLUMNS)
    assert data.labels.names[:2] == ["brand: Coke", "brand: Tata"]
    assert "other" not in data.labels.names
    again = read_dataset(table(tmp_path), data.labels, COLUMNS)
    assert again.labels is data.labels


def test_a_labels_file_can_be_a_table(tmp_path):
    path = lines(tmp_path, {"label": "a", "alt": "b"}, name="labels.jsonl")
    source = open_source(path, options=ReadOptions(columns=Columns(("label",), (("alt",),))))
    assert not source.labels_only
    assert source.train().texts == ["label: a"]


def test_stream_takes_inputs_only(tmp_path):
    path = table(tmp_path, "price,title\n3,tea\n,\n")
    assert list(iter_records(path, columns=COLUMNS)) == [
        Record("0", "title: tea; price: 3", None, (), 2),
        Record("1", "", None, (), 3),
    ]


def test_usual_files_are_read_as_usual(tmp_path):
    (tmp_path / "a.csv").write_text("text,labels\nhello,brand: Tata|x\n")
    lines(tmp_path, {"text": "hello", "labels": ["brand: Tata", "x"]}, name="a.jsonl")
    known = LabelSpace(["brand: Tata"])
    for name in ("a.csv", "a.jsonl"):
        data = read_dataset(tmp_path / name, known, COLUMNS)
        assert (data.texts, data.columns) == (["hello"], None)
        assert data.labels.names == ["brand: Tata", "x"]
        assert [record.text for record in iter_records(tmp_path / name, columns=COLUMNS)] == ["hello"]


def test_a_column_called_text_is_a_column(tmp_path):
    columns = Columns(("text",), (("kind",),))
    path = table(tmp_path, "text,kind\nhello,a\n")
    assert read_dataset(path, columns=columns).texts == ["text: hello"]
    assert next(iter_records(path, columns=columns)).text == "text: hello"
    assert read_dataset(table(tmp_path, "text,labels\nhello,a\n"), LabelSpace(["kind: a"]), columns).texts == ["hello"]


def test_json_lines_may_leave_fields_out(tmp_path):
    path = lines(tmp_path, {"title": "a"}, {"price": 3, "brand": "x", "L0": "y"}, {"L1": "z"})
    assert read_dataset(path, columns=COLUMNS).texts == ["title: a", "price: 3", ""]


def test_the_stream_holds_few_rows(tmp_path):
    path = tmp_path / "long.jsonl"
    path.write_text('{"title": "a", "price": 1}\n' * 5000 + "no JSON\n")
    stream = iter_records(path, columns=COLUMNS)
    assert sum(1 for _, _ in zip(range(5000), stream, strict=False)) == 5000
    with pytest.raises(DataError, match=r"long\.jsonl:5001"):
        next(stream)


@pytest.mark.parametrize(
    ("inputs", "outputs", "columns"),
    [
        (" title , price ", " brand ", Columns(("title", "price"), (("brand",),))),
        ("t", "brand,L0_c,L1_c,L2_c", Columns(("t",), (("brand",), ("L0_c", "L1_c", "L2_c")))),
        ("t", "L10,L9,x", Columns(("t",), (("L9", "L10"), ("x",)))),
        ("t", "a > b>c,d", Columns(("t",), (("a", "b", "c"), ("d",)))),
        ("t", "L0>L1,L2,L3", Columns(("t",), (("L0", "L1"), ("L2", "L3")))),
        ("t", "a1_2020,a2_2020,b1_2020", Columns(("t",), (("a1_2020", "a2_2020"), ("b1_2020",)))),
        ("t", "L0,M1", Columns(("t",), (("L0",), ("M1",)))),
    ],
)
def test_columns_as_the_command_line_names_them(inputs, outputs, columns):
    assert parse_columns(inputs, outputs) == columns


def test_no_columns():
    assert table_columns({}) is None


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        ("", "brand", "inputs must be column names separated by ',', but one is empty in ''; write"),
        ("title,,x", "brand", "inputs must be column names .* empty in 'title,,x'"),
        ("title", "a>,b", "outputs must be column names separated by '>', but one is empty in 'a>'"),
        (
            "title,title",
            "brand",
            "each column must be named once, as input or output, but 'title' is named twice; remove",
        ),
        ("title", "brand,title", "each column must be named once, as input or output, but 'title' is named twice"),
        ("title", "brand,brand", "each column must be named once, as input or output, but 'brand' is named twice"),
        ("title", "L0,L1,L0", "each column must be named once, as input or output, but 'L0' is named twice"),
        ("title", "a>b,b", "each column must be named once, as input or output, but 'b' is named twice"),
        ("title", "a,a: b", "no output may start with another and ': ', but 'a: b' starts with 'a'; rename one"),
    ],
)
def test_columns_that_cannot_be(inputs, outputs, message):
    with pytest.raises((ParameterError, DataError), match=message):
        parse_columns(inputs, outputs)


def test_inputs_without_outputs():
    for options, missing in (({"inputs": "title"}, "outputs"), ({"outputs": "brand"}, "inputs")):
        with pytest.raises(ParameterError, match=f"go together, but {missing} is missing; write inputs=\\['title'"):
            table_columns(options)


def test_columns_of_nothing():
    with pytest.raises(DataError, match="inputs must name at least one column"):
        Columns((), (("brand",),))
    with pytest.raises(DataError, match="outputs must name at least one column"):
        Columns(("title",), ((),))


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_a_column_that_is_not_there(tmp_path, name):
    row = {"title": "x", "price": 1, "brand": "y", "L0_c": "z"}
    path = tmp_path / name
    if name == "a.parquet":
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.Table.from_pylist([row]), path)
    elif name == "a.jsonl":
        lines(tmp_path, row, name=name)
    else:
        table(tmp_path, "title,price,brand,L0_c\nx,1,y,z\n", name)
    has = "but has: title, price, brand, L0_c; "
    with pytest.raises(DataError, match=rf"{name} must have the column 'titel', {has}did you mean 'title'\?"):
        read_dataset(path, columns=Columns(("titel",), (("brand",),)))
    with pytest.raises(DataError, match=rf"the column 'color', {has}name an existing column, or add this one"):
        read_dataset(path, columns=Columns(("title",), (("color",),)))
    with pytest.raises(DataError, match="the column 'color'"):
        next(iter_records(path, columns=Columns(("title", "color"), (("brand",),))))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "title,title,brand\nx,y,z\n", "expected unique columns, but 'title' occurs twice"),
        ("a.csv", "", r"a\.csv must hold at least one document, but has none"),
        ("a.csv", "title,brand\n", r"a\.csv must hold at least one document, but has none"),
        ("a.jsonl", "", r"a\.jsonl must hold at least one document, but has none"),
        ("a.csv", "text,labels\nx,y\n", "must have the column 'title', but has: text, labels"),
        ("a.txt", "1 1 1\n0 0:1\n", r"a table must be \.jsonl, \.csv, \.tsv or \.parquet, but is .*a\.txt"),
    ],
)
def test_files_that_are_no_such_table(tmp_path, name, text, message):
    with pytest.raises(DataError, match=message):
        read_dataset(table(tmp_path, text, name), columns=Columns(("title",), (("brand",),)))
