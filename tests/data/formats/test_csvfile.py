"""CSV: header, quoting, the cell of the labels."""

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelspace.data.fields import field_records
from labelspace.data.formats.csvfile import format_labels, open_csv
from labelspace.data.label_separator import detect_separator
from labelspace.data.records import Location, Record, cell_labels
from labelspace.data.source import iter_records, read_dataset
from labelspace.errors import DataError
from labelspace.types import Fields


def records(tmp_path, text, **options):
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with open_csv(path) as rows:
        return list(field_records(rows, Fields(), **options))


def test_columns_in_any_order_others_ignored(tmp_path):
    text = '\ufefflabels,price, text ,id\r\na | b,3,"one, ""two""\r\nthree",x\r\n,4,,y\r\n"[""a|b"", ""c""]",5,z,w\r\n'
    assert records(tmp_path, text) == [
        Record("x", 'one, "two"\r\nthree', None, ("a", "b"), 2),
        Record("y", "", None, (), 4),
        Record("w", "z", None, ("a|b", "c"), 5),
    ]


def test_without_labels_and_ids(tmp_path):
    assert records(tmp_path, "text\nhello\n") == [Record("0", "hello", None, (), 2)]
    assert records(tmp_path, 'features\n3:1 4:2\n""\n') == [
        Record("0", None, "3:1 4:2", (), 2),
        Record("1", None, "", (), 3),
    ]


def test_a_text_longer_than_the_csv_module_allows(tmp_path):
    csv.field_size_limit(131_072)
    text = "word " * 100_000
    assert records(tmp_path, f"text,labels\n{text},a\n")[0].text == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"a\.csv must hold at least one document, but has none"),
        (
            "price,size,labels\n1,2,y\n",
            r"the column with the texts must be known, but .*a\.csv has: price .*, size .*, labels",
        ),
        (
            "text,tags,topics\nx,y,z\n",
            r"labels must be clear, .* has: text .*, tags .*, topics .*; name it: labels='tags'",
        ),
        ("text,text\nx,y\n", r"a\.csv:1: expected unique columns, but 'text' occurs twice; rename one of them"),
        (
            "text,labels\nx\n",
            r"a\.csv:2: expected 2 cells as in the header, but there are 1; quote cells that contain a comma",
        ),
        ("text,labels\nx,y\na,b,c\n", r"a\.csv:3: expected 2 cells as in the header, but there are 3; quote"),
        (
            "text,labels\nx,y\n\nz,w\n",
            r"a\.csv:3: expected 2 cells as in the header, but the line is blank; remove the line",
        ),
        (
            'text,labels\n"one\ntwo",a\n"x"y,b\n',
            r"a\.csv:4: expected CSV, but the row cannot be read \(.*\); double each",
        ),
        (
            'text,labels\n"never closed,a\nb,c\n',
            r"a\.csv:2: expected CSV, but the row cannot be read \(unexpected end of data\)",
        ),
        (
            "text,labels\nx,[draft]\n",
            r"a\.csv:2: expected 'labels' that start like JSON to be JSON, but they are '\[draft\]'",
        ),
        ("text,labels\nx,[1.5]\n", r"a\.csv:2: expected labels to be names or ids, but one is 1.5"),
        (
            "text,labels\nx,y\ncafé ü,z\n".encode() + b"caf\xe9,z\n",
            r"a\.csv:4: expected UTF-8 text, but byte 4 .* 0xe9",
        ),
        *[
            (text, rf"a\.csv:{line}: expected a header with the names of the columns, but the line is blank; remove")
            for text, line in (("\ntext,labels\nx,y\n", 1), ("\r\n\r\ntext\r\n", 1), ("sep=;\n\ntext;labels\nx;y\n", 2))
        ],
        ("\n\n", r"a\.csv must hold at least one document, but has none"),
        ("text,labels\n", r"a\.csv must hold at least one document, but has none"),
    ],
)
def test_malformed_files(tmp_path, text, message):
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(DataError, match=message) as error:
        read_dataset(path)
    assert "\n" not in str(error.value)


def test_a_blank_first_line_is_refused_where_documents_are_tagged_too(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("\nid,text\n1,a\n")
    with pytest.raises(DataError, match=r"a\.csv:1: expected a header"):
        list(iter_records(path))
    for empty in ("", "\n\n"):
        path.write_text(empty)
        assert list(iter_records(path)) == []


def test_labels_left_aside_are_not_even_checked(tmp_path):
    assert records(tmp_path, "text,labels\nx,[rubbish\n", with_labels=False) == [Record("0", "x", None, (), 2)]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), max_size=4, unique=True))
def test_any_names_read_back_from_the_cell(names):
    stripped = tuple(dict.fromkeys(name.strip() for name in names if name.strip()))
    cell = format_labels(stripped)
    for separator in ("|", detect_separator([cell], "a.csv") if not cell.startswith("[") else None):
        assert cell_labels(cell, "labels", separator or "|", Location("a.csv", 2)) == stripped


@pytest.mark.parametrize(
    ("labels", "cell"),
    [
        ([], ""),
        (["a", "b c"], "a|b c"),
        (["a|b"], '["a|b"]'),
        (["[x]"], '["[x]"]'),
        (["a, b"], '["a, b"]'),
        (["R&D; b"], '["R&D; b"]'),
        ([3, 1], "[3, 1]"),
    ],
)
def test_a_json_list_only_where_needed(labels, cell):
    assert format_labels(labels) == cell
