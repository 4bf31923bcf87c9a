"""Files of fastText."""

import re
from dataclasses import replace

import pytest
from hypothesis import given

from labelspace.data.dataset_builder import assemble
from labelspace.data.formats import fasttext
from labelspace.data.formats.base import on_one_line
from labelspace.data.read_options import ReadOptions
from labelspace.errors import DataError
from tests.data.formats.text_cases import UTF_8, damaged, few, labeled, labels_of, refusal, text_datasets

FILE = "__label__a __label__b_c red apple\ngreen __label__c tea __label__a\nno labels\n__label__a\n\n\n"


def read(path, content, options=UTF_8):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(fasttext.records(path, options))


def test_a_file_by_hand(tmp_path):
    found = read(tmp_path / "a.txt", FILE)
    assert [(record.id, record.text, record.labels, record.line) for record in found] == [
        ("0", "red apple", ("a", "b_c"), 1),
        ("1", "green tea", ("c", "a"), 2),
        ("2", "no labels", (), 3),
        ("3", "", ("a",), 4),
    ]
    assert assemble(found, tmp_path / "a.txt").labels.names == ["a", "b_c", "c"]


@pytest.mark.parametrize(
    ("line", "labels", "text"),
    [
        ("__label__a\ttext\vwith\0spaces", ("a",), "text\vwith\0spaces"),
        ("__label__a  two spaces ", ("a",), " two spaces "),
        ("a__label__b is a word", (), "a__label__b is a word"),
        ("__label__x__label__y z", ("x__label__y",), "z"),
        ("__label__a b __label__a", ("a",), "b"),
        ("text\r", (), "text"),
        ("__label__3 a", ("3",), "a"),
    ],
)
def test_words_are_those_of_fasttext(tmp_path, line, labels, text):
    (found,) = read(tmp_path / "a.txt", line + "\n")
    assert (found.labels, found.text) == (labels, text)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("__label__ a\n", r"a\.txt:1: expected label names, but one is empty; remove it"),
        ("a\n\nb\n", r"a\.txt:2: expected a document on every line, but the line is blank; remove the line"),
        (b"a\n\xff\n", r"a\.txt:2: expected UTF-8 text, but byte 1 of the line is 0xff"),
    ],
)
def test_malformed_files(tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        read(tmp_path / "a.txt", content)


@few
@given(content=damaged(FILE.encode()))
def test_damaged_files_are_read_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "damaged_fasttext.txt"
    message = refusal(read, path, content)
    assert message is None or re.search(r"damaged_fasttext\.txt:\d+: expected ", message)


@few
@given(dataset=text_datasets())
def test_round_trip(tmp_path_factory, dataset):
    path = tmp_path_factory.getbasetemp() / "round_trip_fasttext.txt"
    path.unlink(missing_ok=True)
    if refusal(fasttext.write, path, dataset):
        assert not path.exists()
        return
    found = list(fasttext.records(path, UTF_8))
    assert [record.text for record in found] == [on_one_line(text) for text in dataset.texts]
    for row, record in enumerate(found):
        assert list(record.labels) == [re.sub(r"[ \t\r\n\v\f\0]", "_", name) for name in labels_of(dataset, row)]


def test_written_with_underscores_and_on_one_line(tmp_path):
    fasttext.write(tmp_path / "a.txt", labeled(["apple pie", "b_c"], "two\r\nlines\n"))
    assert (tmp_path / "a.txt").read_text() == "__label__apple_pie __label__b_c two lines \n"


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        (
            labeled(["a b", "a_b"], "x"),
            r"label names in .*a\.txt must .*, but 'a b' and 'a_b' both become 'a_b'; rename",
        ),
        (
            labeled(["a"], "see __label__b"),
            r"a\.txt:1: expected a text without words that .*, but there is '__label__b'",
        ),
        (labeled([], "x", ""), r"a\.txt:2: expected a text or labels in every document, but one has neither; remove"),
        (labeled([], "\ufeffx"), r"a\.txt:1: expected a first character that is no byte order mark, but it is U\+FEFF"),
        (labeled(["a\u00a0"], "x"), r"label names in .* must be words, .*, but one is 'a\\xa0'; rename"),
        (labeled(["\ud800"], "x"), r"must be valid Unicode, but has the lone surrogate"),
    ],
)
def test_what_would_be_read_differently_is_not_written(tmp_path, dataset, message):
    with pytest.raises(DataError, match=message):
        fasttext.write(tmp_path / "a.txt", dataset)
    assert not list(tmp_path.iterdir())


def test_features_alone_are_not_written(tmp_path, data):
    with pytest.raises(DataError, match=r"a\.txt must have texts, but the data set has features only; write"):
        fasttext.write(tmp_path / "a.txt", replace(data[0], texts=None))


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (["__label__a x", "", "__label__b"], True),
        (["x __label__a", "__label__a y"], True),
        (["x __label__a", "y"], False),
        (["the prefix __label__ marks", "labels in fastText"], False),
        ([], False),
    ],
)
def test_recognized_by_its_labels(head, expected):
    assert fasttext.recognizes(head) is expected


def test_other_encodings(tmp_path):
    (found,) = read(tmp_path / "a.txt", "__label__thé crème".encode("cp1252"), ReadOptions(encoding="windows-1252"))
    assert (found.labels, found.text) == (("thé",), "crème")
