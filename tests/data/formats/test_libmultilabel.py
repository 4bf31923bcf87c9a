"""Texts of LibMultiLabel."""

import re
from dataclasses import replace

import pytest
from hypothesis import given

from labelspace.data.formats import libmultilabel
from labelspace.data.formats.base import on_one_line
from labelspace.errors import DataError
from tests.data.formats.text_cases import UTF_8, damaged, few, labeled, labels_of, refusal, text_datasets

FILE = "d1\tecon pol\tthe red apple\nd2\t\tno labels\nd3\tpol  econ pol\t\n\n"


def read(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(libmultilabel.records(path, UTF_8))


def test_files_by_hand(tmp_path):
    with_ids = [("d1", ("econ", "pol"), "the red apple"), ("d2", (), "no labels"), ("d3", ("pol", "econ"), "")]
    found = read(tmp_path / "a.txt", FILE)
    assert [(record.id, record.labels, record.text) for record in found] == with_ids
    found = read(tmp_path / "a.txt", re.sub(r"d\d\t", "", FILE).replace("\n", "\r\n"))
    assert [(record.id, record.labels, record.text) for record in found] == [
        (str(row), labels, text) for row, (_, labels, text) in enumerate(with_ids)
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("text\n", r"a\.txt:1: expected labels<TAB>text or id<TAB>labels<TAB>text, but there are 1 cells separated by"),
        ("1\ta\tb\tc\n", r"a\.txt:1: expected .*, but there are 4 cells separated by tabs; replace tabs in the text"),
        ("a\tb\n1\ta\tb\n", r"a\.txt:2: expected 2 cells, as in line 1, but there are 3 cells"),
        ("a\tb\n\na\tb\n", r"a\.txt:2: expected a document on every line, but the line is blank"),
    ],
)
def test_malformed_files(tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        read(tmp_path / "a.txt", content)


@few
@given(content=damaged(FILE.encode()))
def test_damaged_files_are_read_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "damaged_libmultilabel.txt"
    message = refusal(read, path, content)
    assert message is None or re.search(r"damaged_libmultilabel\.txt:\d+: expected ", message)


@few
@given(dataset=text_datasets(with_ids=True))
def test_round_trip(tmp_path_factory, dataset):
    path = tmp_path_factory.getbasetemp() / "round_trip_libmultilabel.txt"
    path.unlink(missing_ok=True)
    if refusal(libmultilabel.write, path, dataset):
        assert not path.exists()
        return
    found = list(libmultilabel.records(path, UTF_8))
    assert [record.text for record in found] == [on_one_line(text).replace("\t", " ") for text in dataset.texts]
    assert [record.id for record in found] == (dataset.ids or [str(row) for row in range(len(dataset))])
    for row, record in enumerate(found):
        words = [
            "".join("_" if character.isspace() else character for character in name) for name in labels_of(dataset, row)
        ]
        assert list(record.labels) == words


def test_written_with_ids_where_there_are_any(tmp_path):
    dataset = labeled(["apple pie", "b"], "two\nlines\tand a tab")
    libmultilabel.write(tmp_path / "a.txt", dataset)
    assert (tmp_path / "a.txt").read_text() == "apple_pie b\ttwo lines and a tab\n"
    libmultilabel.write(tmp_path / "a.txt", replace(dataset, ids=["d1"]))
    assert (tmp_path / "a.txt").read_text() == "d1\tapple_pie b\ttwo lines and a tab\n"
    with pytest.raises(
        DataError, match=r"a\.txt:1: expected an id without tabs and line ends, but it is 'd\\t1'; rename"
    ):
        libmultilabel.write(tmp_path / "a.txt", replace(dataset, ids=["d\t1"]))


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (["d1\ta b\tone two three four five", "d2\tb\tone two three"], True),
        (["a b\tone two three four five", "b\tone two three", ""], True),
        (["id\tlabels\ttext", "d1\ta\tone two three four"], False),
        (["category\tfull text", "a\tone two three four", "a\tone two three four"], False),
        (["d1\ta b\tone two three four five", "d1\tb\tone two three"], False),
        (["one two three\ta b", "one two three four\tb c"], False),
        (["one two three\t<http://a/b>", "one two\t<http://a/b>"], False),
        (["a b\tone two three four five"], False),
        (["a\tone two three four five", "b\tone two\tthree"], False),
        (["a\tb\tc\td", "a\tb\tc\td"], False),
    ],
)
def test_recognized_by_its_cells(head, expected):
    assert libmultilabel.recognizes(head) is expected
