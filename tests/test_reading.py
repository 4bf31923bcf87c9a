import logging

import pytest

from labelspace.errors import DataError, ParameterError
from labelspace.reading import read


def test_a_folder_is_its_splits_with_one_label_space(hierarchy_folder, data):
    splits = read(hierarchy_folder)
    assert list(splits) == ["train", "test"]
    assert list(splits["train"].texts) == list(data[0].texts)
    assert splits["test"].labels.names == splits["train"].labels.names
    assert splits["test"].labels.hierarchy is not None
    assert (read(hierarchy_folder, "test").Y != splits["test"].Y).nnz == 0
    assert len(read(hierarchy_folder, split="train")) == 700
    with pytest.raises(DataError, match="must have dev.*, but has not"):
        read(hierarchy_folder, "dev")


def test_a_file_is_read_as_options_say(tmp_path, caplog):
    file = tmp_path / "shop.csv"
    file.write_text("title;price;tags\nRye;3;a|b\nTea;4;c\n")
    with caplog.at_level(logging.INFO, logger="labelspace.data"):
        found = read(file)
    assert found.texts == ["Rye", "Tea"]
    assert found.labels.names == ["a", "b", "c"]
    assert "semicolon" in caplog.text
    assert read(str(file), text=["title", "price"], label_separator="none").texts == ["Rye\n3", "Tea\n4"]
    table = read(file, inputs=["title", "price"], outputs="tags")
    assert table.texts == ["title: Rye; price: 3", "title: Tea; price: 4"]


def test_what_read_does_not_know_is_refused(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("text,labels\na,b\n")
    with pytest.raises(ParameterError, match="an option of read must be one of format, .* but is 'color'"):
        read(file, color=1)
    with pytest.raises(ParameterError, match="split must be one of train, dev, test, but is 'validation'"):
        read(file, "validation")
    with pytest.raises(DataError, match="does not exist"):
        read(tmp_path / "none.csv")
    with pytest.raises(DataError, match="must have test.*, but has not"):
        read(file, "test")
