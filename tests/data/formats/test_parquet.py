"""Parquet: columns, types, damage, and the missing extra."""

import os
import subprocess
import sys
import threading

import pytest

from labelspace.data.fields import field_records
from labelspace.data.formats.parquet import open_parquet
from labelspace.data.records import Record
from labelspace.data.source import iter_records, read_dataset
from labelspace.errors import DataError, MissingExtraError
from labelspace.types import Fields

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def written(tmp_path, columns, **options):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns), path, **options)
    return path


def test_columns_of_several_types(tmp_path):
    table = {
        "price": [1.5, 2.5],
        "text": pa.array(["one", ""], pa.large_string()).dictionary_encode(),
        "labels": pa.array([["a", "b", "a"], None], pa.large_list(pa.string())),
        "id": [7, None],
    }
    path = written(tmp_path, table)
    with open_parquet(path) as rows:
        assert list(field_records(rows, Fields())) == [
            Record("7", "one", None, ("a", "b"), 1),
            Record("1", "", None, (), 2),
        ]


def test_ids_as_labels(tmp_path):
    path = written(tmp_path, {"features": ["1:1", "2:1"], "labels": [[2], [0, 2]]})
    dataset = read_dataset(path)
    assert list(dataset.labels.names) == ["0", "1", "2"]
    assert dataset.Y.toarray().tolist() == [[0, 0, 1], [1, 0, 1]]
    assert dataset.X.toarray().tolist() == [[0, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"size": ["a"], "price": ["a"], "labels": [["b"]]},
            r"the column with the texts must be known, but .*a\.parquet has: size .*, price .*, labels",
        ),
        ({"text": ["a", None]}, r"a\.parquet:2: expected 'text' \(a string\) or 'features', but 'text' is null; give"),
        ({"text": [1, 2]}, r"a\.parquet:1: expected 'text' to be a string, but it is 1; write"),
        ({"text": ["a"], "labels": [1.5]}, r"a\.parquet:1: expected 'labels' to be a list or a text, but it is 1.5"),
        ({"features": ["1:1", "1:1 x"]}, r"a\.parquet:2: expected index:value .*, but found 'x'"),
        ({"text": pa.array([], pa.string())}, r"a\.parquet must hold at least one document, but has none"),
    ],
)
def test_malformed_tables(tmp_path, columns, message):
    with pytest.raises(DataError, match=message) as error:
        read_dataset(written(tmp_path, columns))
    assert "header" not in str(error.value)


def test_documents_of_a_pipe(tmp_path):
    content = written(tmp_path, {"text": ["a", "b"]}).read_bytes()
    os.mkfifo(tmp_path / "pipe.parquet")
    producer = threading.Thread(target=(tmp_path / "pipe.parquet").write_bytes, args=[content])
    producer.start()
    assert [record.text for record in iter_records(tmp_path / "pipe.parquet")] == ["a", "b"]
    producer.join()


def test_a_column_that_occurs_twice_is_refused(tmp_path):
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"]), pa.array([["c"]])], ["text", "text", "labels"])
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"a\.parquet: expected unique columns, but 'text' occurs twice; rename one"):
        read_dataset(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    "content", [b"", b"text,labels\na,b\n" * 10, b"PAR1" + b"\0" * 50 + b"PAR1"], ids=["empty", "csv", "cut"]
)
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "a.parquet"
    path.write_bytes(content)
    with pytest.raises(
        DataError, match=r"a\.parquet must be a Parquet file, but cannot be read as one \(.*\); write it again"
    ) as error:
        read_dataset(path)
    assert "\n" not in str(error.value)


def test_a_missing_file(tmp_path):
    with pytest.raises(DataError, match=r"must exist, but .*none\.parquet does not"):
        read_dataset(tmp_path / "none.parquet")


def test_streams_by_batches_without_the_labels(tmp_path):
    table = {"text": [f"text {i} " * 20 for i in range(20_000)], "labels": [["a"]] * 20_000}
    path = written(tmp_path, table, row_group_size=5_000, compression="zstd")
    spoilt = bytearray(path.read_bytes())
    middle = len(spoilt) // 2
    spoilt[middle : middle + 2000] = bytes(2000)
    path.write_bytes(spoilt)
    stream = iter_records(path)
    assert next(stream) == Record("0", table["text"][0], None, (), 1)
    with pytest.raises(DataError, match="a.parquet must be"):
        list(stream)


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    path = written(tmp_path, {"text": ["a"]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"needs the package 'pyarrow', .* pip install 'labelspace\[parquet\]'"):
        read_dataset(path)


def test_pyarrow_is_imported_only_when_needed(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a"}\n')
    code = (
        "import sys; from labelspace.data.source import read_dataset; "
        f"read_dataset({str(path)!r}); sys.exit('pyarrow' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
