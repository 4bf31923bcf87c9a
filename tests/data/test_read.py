import logging
from dataclasses import fields

import pytest

from labelspace.data.read_options import FileOptions, ReadOptions
from labelspace.data.source import read
from labelspace.errors import DataError, ParameterError
from labelspace.options import declared_options


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
    with pytest.raises(ParameterError, match="an option of read must be one of text, .* but is 'color'"):
        read(file, color=1)
    with pytest.raises(ParameterError, match="split must be one of train, dev, test, but is 'validation'"):
        read(file, "validation")
    with pytest.raises(DataError, match="does not exist"):
        read(tmp_path / "none.csv")
    with pytest.raises(DataError, match="must have test.*, but has not"):
        read(file, "test")


def test_ready_made_vectors_are_read_from_a_column(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text('{"vector": [1, 0.5], "labels": ["a"]}\n{"vector": [0, 2], "labels": ["b"]}\n')
    assert read(file, embeddings="vector").X.toarray().tolist() == [[1, 0.5], [0, 2]]


def test_options_are_declared_once():
    """The names are those of ``FileOptions`` for Python callers, on the command line and in ``ReadOptions``."""
    derived = {"inputs", "outputs", "numeric", "categorical", "vectors"}  # ``columns``, ``beside``, ``vectors_file``
    own = {each.name for each in fields(ReadOptions)} - {"columns", "beside", "vectors_file", "fields", "say"}
    assert own == FileOptions.__annotations__.keys() - derived
    for name, option in declared_options(FileOptions).items():
        assert option.meaning, name
