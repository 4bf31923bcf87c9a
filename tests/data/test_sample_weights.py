"""Weights of documents in a column, and of labels in a file."""

from pathlib import Path

import pandas as pd
import pytest

from labelspace import Tagger
from labelspace.data.sample_weights import label_weights, read_label_weights
from labelspace.data.source import open_source
from labelspace.errors import DataError
from labelspace.types import LabelSpace

ROWS = {"text": ["tea", "tea", "rye"], "labels": ["drink", "food", "food"], "trust": [0.0, 2.0, 1.0]}


def test_a_column_of_the_training_file_has_the_weights(tmp_path: Path) -> None:
    pd.DataFrame(ROWS).to_csv(tmp_path / "train.csv", index=False)
    source = open_source(tmp_path)
    source.weights = "trust"
    documents = source.train()
    assert documents.sample_weight.tolist() == [0, 2, 1]
    assert documents.rows([2, 1]).sample_weight.tolist() == [1, 2]
    # Documents of weight 0 are left out, and the others keep the numbers of their rows.
    kept = documents.weighty()
    assert (kept.texts, kept.ids) == (["tea", "rye"], ["1", "2"])
    source.weights = "trus"
    with pytest.raises(DataError, match="must have the column 'trus'.*did you mean 'trust'"):
        source.train()


def test_weights_in_python_are_an_array_or_a_column() -> None:
    frame = pd.concat([pd.DataFrame(ROWS)] * 2)
    for weights in ("trust", 2 * ROWS["trust"], frame["trust"]):
        tagger = Tagger("neighbors").fit(frame, sample_weight=weights)
        assert tagger.tag("tea", k=1)[0][0] == "food"
    with pytest.raises(DataError, match="an array or a column of a table, but 'trust' is a text"):
        Tagger("neighbors").fit(frame["text"], frame["labels"], sample_weight="trust")


def test_weights_of_labels_are_given_by_name(tmp_path: Path) -> None:
    path, labels = tmp_path / "weights.tsv", LabelSpace(["drink", "food"])
    path.write_text("food\t2.5\n\n")
    assert label_weights(read_label_weights(path), labels).tolist() == [1, 2.5]
    with pytest.raises(DataError, match="'tea' is none"):
        label_weights({"tea": 1}, labels)
    with pytest.raises(DataError, match="must be a dict"):
        label_weights([1, 2], labels)
    path.write_text("food 2.5\n")
    with pytest.raises(DataError, match="weights.tsv:1: expected label<TAB>weight, but found 'food 2.5'"):
        read_label_weights(path)
