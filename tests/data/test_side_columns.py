"""Columns beside the texts: the same values from every kind of table, and one line for what is no value."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file

from labelspace.data.objects.document_reader import DocumentReader, saved_columns, saved_fields
from labelspace.data.side_columns import with_values
from labelspace.data.source import iter_records, open_source, parse_options, read_dataset
from labelspace.errors import DataError
from labelspace.estimator.state_constraints import StateError
from labelspace.types import SideColumns

ROWS = [
    {"title": "Rye", "labels": ["bread"], "price": 3.5, "brand": "Oma", "emb": [1.0, 0.0]},
    {"title": "Tea", "labels": ["drink"], "price": None, "brand": None, "emb": None},
]
SIDE = {"text": "title", "numeric": "price", "categorical": "brand", "vectors": "emb"}


def values_of(texts: list[str]) -> list[list[object]]:
    found = []
    for text in texts:
        price, brand, emb = (text.values[name] for name in ("price", "brand", "emb"))
        found.append([None if math.isnan(price) else price, brand, None if emb is None else emb.tolist()])
    return found


def written(folder: Path, kind: str) -> Path:
    path = folder / f"train.{kind}"
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), path)
    elif kind == "csv":
        cells = [{**row, "labels": row["labels"][0], "emb": row["emb"] and json.dumps(row["emb"])} for row in ROWS]
        pd.DataFrame(cells).to_csv(path, index=False)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_a_file_has_the_values_of_its_columns(kind: str, tmp_path: Path) -> None:
    path, options = written(tmp_path, kind), parse_options(dict(SIDE), print)
    expected = [[3.5, ["Oma"], [1.0, 0.0]], [None, [], None]]
    documents = read_dataset(path, options=options)
    assert values_of(documents.texts) == expected
    assert values_of([record.text for record in iter_records(path, options=options)]) == expected
    assert documents.rows([1]).texts[0].values["brand"] == []
    assert documents.beside == SideColumns(("price",), ("brand",), "emb")
    # A later file is read by the columns of the first.
    follower = parse_options({}, print).following(documents.fields)
    assert values_of(read_dataset(path, options=follower).texts) == expected


@pytest.mark.parametrize("data", [ROWS, pd.DataFrame(ROWS)], ids=["rows", "pandas"])
def test_a_table_in_memory_has_the_values_of_its_columns(data: object) -> None:
    documents = DocumentReader({**SIDE}).dataset(data)
    assert values_of(documents.texts) == [[3.5, ["Oma"], [1.0, 0.0]], [None, [], None]]


def test_rows_with_several_outputs_have_values_too(tmp_path: Path) -> None:
    options = parse_options({"inputs": "title", "outputs": "labels", "numeric": "price"}, print)
    documents = open_source(written(tmp_path, "jsonl"), options).train()
    assert documents.texts == ["title: Rye", "title: Tea"]
    assert documents.texts[0].values == {"price": 3.5}


@pytest.mark.parametrize("kind", ["npy", "safetensors", "folder", "array"])
def test_vectors_come_from_a_file_too(kind: str, tmp_path: Path) -> None:
    path, vectors, given = written(tmp_path, "jsonl"), np.eye(2, 3, dtype=np.float32), tmp_path / f"v.{kind}"
    if kind == "npy":
        np.save(given, vectors)
    elif kind == "safetensors":
        save_file({"vectors": vectors}, given)
    elif kind == "folder":
        given.mkdir()
        np.save(given / "train.npy", vectors)
    options = {"text": "title", "numeric": "price"}
    if kind == "array":
        documents = DocumentReader({**options, "vectors": vectors}).dataset(ROWS)
    else:
        reading = parse_options({**options, "vectors": str(given)}, print)
        documents = read_dataset(path, options=reading)
        assert [record.text.values["price"] for record in iter_records(path, options=reading)][0] == 3.5
    assert np.array_equal([text.values["vectors"] for text in documents.texts], vectors)
    assert documents.beside == SideColumns(("price",), (), "vectors")


@pytest.mark.parametrize("n", [1, 3])
def test_a_file_of_vectors_has_a_row_for_each_document(n: int, tmp_path: Path) -> None:
    path, options = (
        written(tmp_path, "jsonl"),
        parse_options({"text": "title", "vectors": str(tmp_path / "v.npy")}, print),
    )
    np.save(tmp_path / "v.npy", np.ones((n, 2)))
    with pytest.raises(DataError, match=rf"v.npy must have one row per document, but has {n} for 2"):
        read_dataset(path, options=options)
    with pytest.raises(DataError, match="must have one row per document"):
        list(iter_records(path, options=options))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"price": "cheap"}, "'price' must hold numbers, but that of row 0 is 'cheap'"),
        ({"price": [1, 2]}, "'price' must hold numbers"),
        ({"price": 1e39}, "'price' must hold finite numbers"),
        ({"price": float("inf")}, "'price' must hold finite numbers"),
        ({"emb": "[1, 2"}, "'emb' must hold lists of finite numbers"),
        ({"emb": []}, "'emb' must hold lists of finite numbers"),
        ({"emb": [[1.0]]}, "'emb' must hold lists of finite numbers"),
        ({"emb": [1.0, None]}, "'emb' must hold lists of finite numbers"),
        ({"emb": [1.0, float("nan")]}, "'emb' must hold lists of finite numbers"),
        ({"emb": [1e300]}, "'emb' must hold lists of finite numbers"),
    ],
)
def test_a_wrong_value_is_an_error(row: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        with_values("a text", row, SideColumns(("price",), (), "emb"), "row 0")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"numeric": "prize"}, "must have the column 'prize'.*did you mean 'price'"),
        ({"numeric": "title"}, "'title' stands beside the text and is text"),
        ({"numeric": "price", "categorical": "price"}, "'price' is named twice"),
        ({"inputs": "title", "outputs": "labels", "numeric": "labels"}, "'labels' is named twice"),
    ],
)
def test_a_wrong_column_is_an_error(options: dict[str, str], message: str, tmp_path: Path) -> None:
    text = {} if "inputs" in options else {"text": "title"}
    with pytest.raises(DataError, match=message):
        read_dataset(written(tmp_path, "jsonl"), options=parse_options({**text, **options}, print))


@pytest.mark.parametrize(
    "saved", [{"beside": 3}, {"beside": {"numeric": "price"}}, {"beside": {"vectors": 1}}, {"beside": {"other": []}}]
)
def test_saved_columns_are_checked(saved: dict[str, object]) -> None:
    with pytest.raises(StateError):
        saved_fields(saved)
    with pytest.raises(StateError):
        saved_columns({"inputs": ["title"], "outputs": [["brand"]], **saved})
