import numpy as np
import pytest

from labelspace.data.texts import check_texts, check_training_texts, dataset_from_names, without_lone_surrogates
from labelspace.errors import DataError
from tests.data.frames import Column, Frame


def test_texts_and_names_become_a_data_set():
    data = dataset_from_names(["a", "b", "c"], [["y", "x"], iter(["x", "x"]), []])
    assert list(data.labels.names) == ["x", "y"]
    assert data.Y.toarray().tolist() == [[1, 1], [1, 0], [0, 0]]
    assert data.labels.hierarchy is None
    paths = dataset_from_names(["a", "b"], [["food > bread"], ["food > fish"]])
    assert list(paths.labels.names) == ["food > bread", "food > fish", "food"]
    assert paths.labels.hierarchy.levels.tolist() == [1, 1, 0]


def test_what_is_no_text_or_name_is_refused():
    assert check_texts(np.array(["a", "b"])) == ["a", "b"]
    with pytest.raises(DataError, match="the one of row 1 is of type NoneType"):
        check_texts(["a", None])
    with pytest.raises(DataError, match="row 1 is of type float, which is missing; give a str, an empty one"):
        check_texts(["a", float("nan")])
    with pytest.raises(DataError, match="at least one text, but there are 0"):
        check_training_texts([])
    with pytest.raises(DataError, match="1 for 2 texts"):
        dataset_from_names(["a", "b"], [["x"]])


def test_half_characters_are_replaced():
    assert without_lone_surrogates("a\ud800b") == "a?b"


def test_whatever_holds_texts_in_order_is_understood():
    for texts in (
        ("a", "b"),
        (text for text in "ab"),
        Column(["a", "b"]),
        np.array(["a", "b"], object),
        iter(["a", "b"]),
    ):
        assert list(check_texts(texts)) == ["a", "b"]
    data = dataset_from_names(Column(["a", "b"]), Column([["x"], ["x", "y"]]))
    assert data.Y.toarray().tolist() == [[1, 0], [1, 1]]
    assert len(dataset_from_names(iter("ab"), (names for names in [["x"], {"y"}]))) == 2


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_columns_of_packages(package):
    frame = pytest.importorskip(package).DataFrame({"title": ["a", "b"], "tags": [["x"], ["y"]]})
    assert dataset_from_names(frame["title"], frame["tags"]).labels.names == ["x", "y"]
    with pytest.raises(DataError, match=r"is a DataFrame with columns; give one column: df\['title'\]"):
        check_texts(frame)


def test_columns_of_arrow():
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"title": ["a", "b"], "tags": [["x"], ["y"]]})
    assert dataset_from_names(table["title"], table["tags"].combine_chunks()).labels.names == ["x", "y"]
    with pytest.raises(DataError, match=r"is a Table with columns; give one column: df\['title'\]"):
        check_texts(table)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("one text", r"is one str; give a list of texts: \[text\]"),
        (b"bytes", "is one bytes"),
        ({"title": "a"}, "is one dict"),
        (7, "is one int"),
        ({"a", "b"}, "is a set, which has no order; give a list"),
        (Frame(title=["a"], price=[1]), r"is a Frame with columns; give one column: df\['title'\]"),
        (np.array([["a"], ["b"]]), r"is an array of shape \(2, 1\); give one column"),
    ],
)
def test_what_is_no_sequence_is_refused_in_one_line(given, problem):
    with pytest.raises(DataError, match=f"^texts must be a sequence of texts, but {problem}"):
        check_texts(given)
    with pytest.raises(DataError, match="^labels must be a sequence of lists of names, "):
        dataset_from_names(["a"], given)
    with pytest.raises(DataError, match="is one NoneType"):
        check_texts(None)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("ab", r"row 1 has 'ab'; write \['name'\]"),
        ({"x": 0.5}, "row 1 has {'x': 0.5}; write"),
        ([""], r"row 1 has \[''\]"),
        (["x", None], r"row 1 has \['x', None\]"),
        (True, "row 1 has True"),
        (np.zeros((9, 9)), r"row 1 has array\(\[\[0"),
    ],
)
def test_the_labels_of_a_text_are_a_list_of_names(names, message):
    with pytest.raises(DataError, match=message) as error:
        dataset_from_names(["a", "b"], [["x"], names])
    assert "\n" not in str(error.value)
