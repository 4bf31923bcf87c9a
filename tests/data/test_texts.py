import numpy as np
import pytest

from labelspace.data.texts import check_texts, check_training_texts, dataset_from_names, without_lone_surrogates
from labelspace.errors import DataError


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
    with pytest.raises(DataError, match="are one str; give a list of texts"):
        check_texts("one text")
    with pytest.raises(DataError, match="the one of row 1 is of type NoneType"):
        check_texts(["a", None])
    with pytest.raises(DataError, match="at least one text, but there are 0"):
        check_training_texts([])
    with pytest.raises(DataError, match="1 for 2 texts"):
        dataset_from_names(["a", "b"], [["x"]])
    with pytest.raises(DataError, match=r"row 0 has 'x'; write \['name'\]"):
        dataset_from_names(["a"], ["x"])


def test_half_characters_are_replaced():
    assert without_lone_surrogates("a\ud800b") == "a?b"
