"""Files that ask for more memory than they are worth: long lines, large ids, many columns."""

import gzip

import pytest

from labelspace.data.cells import cell_values
from labelspace.data.formats import parquet
from labelspace.data.formats.json_documents import HEAD, json_rows
from labelspace.data.label_files import read_hierarchy, read_labels
from labelspace.data.records import Record, record_batches
from labelspace.data.source import iter_records, read_dataset
from labelspace.errors import DataError
from labelspace.types import LabelSpace

LONG = "word " * 30  # more than the limit of these tests
TOO_LONG = r"expected at most 100 bytes per line or row, .* set LABELSPACE_MAX_LINE_BYTES to allow more$"
ROWS = {
    "a.jsonl": '{"text": "%s", "labels": ["a"]}\n',
    "a.csv": "text,labels\n%s,a\n",
    "a.txt": "2 9 2\n0 1:1%s\n1 2:1\n",
}


@pytest.fixture
def short_lines(monkeypatch):
    monkeypatch.setenv("LABELSPACE_MAX_LINE_BYTES", "100")


def write(path, text):
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.usefixtures("short_lines")
@pytest.mark.parametrize("gz", ["", ".gz"])
@pytest.mark.parametrize("name", ROWS)
def test_a_long_line_is_refused_in_every_format(tmp_path, monkeypatch, name, gz):
    monkeypatch.setattr("labelspace.data.sparse_rows.BLOCK_BYTES", 8)
    line = 1 if name == "a.jsonl" else 2
    with pytest.raises(DataError, match=rf"{name}{gz}:{line}: {TOO_LONG}"):
        read_dataset(write(tmp_path / (name + gz), ROWS[name] % (" " * 150 if name == "a.txt" else LONG)))
    assert len(read_dataset(write(tmp_path / (name + gz), ROWS[name] % " "))) == 2 - (name != "a.txt")


@pytest.mark.usefixtures("short_lines")
@pytest.mark.parametrize("name", ["a.txt", "a", "a.gz"])
def test_a_long_line_of_a_stream_is_refused_after_the_lines_before_it(tmp_path, name):
    stream = iter_records(write(tmp_path / name, f"short\n{LONG}\n"))
    assert next(stream).text == "short"
    with pytest.raises(DataError, match=rf"{name}:2: {TOO_LONG}"):
        next(stream)


@pytest.mark.usefixtures("short_lines")
def test_a_csv_row_over_many_lines_is_as_long_as_all_of_them(tmp_path):
    rows = '"some\nlines",a\n' * 50
    with pytest.raises(DataError, match=rf"a\.csv:102: {TOO_LONG}"):
        read_dataset(write(tmp_path / "a.csv", "text,labels\n" + rows + '"' + "line\n" * 30 + '",a\n'))
    assert len(read_dataset(write(tmp_path / "a.csv", "text,labels\n" + rows))) == 50


@pytest.mark.usefixtures("short_lines")
def test_a_long_line_in_the_label_files(tmp_path):
    with pytest.raises(DataError, match=rf"labels\.jsonl:2: {TOO_LONG}"):
        read_labels(write(tmp_path / "labels.jsonl", f'{{"label": "a"}}\n{{"label": "{LONG}"}}\n'))
    with pytest.raises(DataError, match=rf"hierarchy\.tsv:1: {TOO_LONG}"):
        read_hierarchy(write(tmp_path / "hierarchy.tsv", f"a\t{LONG}\n"), LabelSpace(["a"]))


@pytest.mark.parametrize(
    ("name", "text"), [("a.jsonl", '{"text": "x", "labels": [%s]}\n'), ("a.txt", "1 9 10\n%s 1:1\n")]
)
def test_ids_need_as_many_labels_as_the_limit_or_the_occurrences(tmp_path, monkeypatch, name, text):
    monkeypatch.setenv("LABELSPACE_MAX_LABELS", "9")
    with pytest.raises(
        DataError, match="expected at most 9 labels without names, but the ids need 10; .* set LABELSPACE"
    ):
        read_dataset(write(tmp_path / name, text % "9,0"))
    assert len(read_dataset(write(tmp_path / name, text % "9,0,1,2,3,4,5,6,7,8")).labels) == 10
    write(tmp_path / "a.labels.jsonl", "".join(f'{{"label": "l{i}"}}\n' for i in range(10)))
    assert len(read_dataset(write(tmp_path / name, text % "9,0")).labels) == 10


@pytest.mark.parametrize(
    ("name", "text"), [("a.jsonl", '{"features": "%s", "labels": ["a"]}\n'), ("a.txt", "1 10 3\n0 %s\n")]
)
def test_indices_need_as_many_columns_as_the_limit_or_the_values(tmp_path, monkeypatch, name, text):
    monkeypatch.setenv("LABELSPACE_MAX_FEATURES", "9")
    with pytest.raises(
        DataError, match="expected at most 9 features, but there are 10; .* set LABELSPACE_MAX_FEATURES"
    ):
        read_dataset(write(tmp_path / name, text % "9:1"))
    assert read_dataset(write(tmp_path / name, text % " ".join(f"{i}:1" for i in range(10)))).X.shape == (1, 10)


@pytest.mark.parametrize("text", ['{"text": "a"}\n%s', 'text\n"%s"\n'])
def test_blank_lines_without_end_are_refused(tmp_path, monkeypatch, text):
    monkeypatch.setattr("labelspace.data.files._MAX_BLANK_LINES", 5)
    path = tmp_path / ("a.jsonl" if text.startswith("{") else "a.csv")
    assert len(read_dataset(write(path, text % ("\n" * 5)))) == 1
    with pytest.raises(DataError, match="expected at most 5 blank lines in a row, but there are more; remove them"):
        read_dataset(write(path, text % ("\n \n" * 4)))


@pytest.mark.usefixtures("short_lines")
def test_a_blank_end_of_rows_of_features(tmp_path):
    assert len(read_dataset(write(tmp_path / "a.txt", "1 9 2\n0 1:1\n" + "\n" * 90))) == 1
    with pytest.raises(DataError, match=rf"a\.txt:3: {TOO_LONG}"):
        read_dataset(write(tmp_path / "a.txt", "1 9 2\n0 1:1\n" + "\n" * 101))


@pytest.mark.usefixtures("short_lines")
def test_columns_are_taken_from_fewer_lines_where_they_are_long():
    numbered = ((line, '{"text": "0123456789"}') for line in range(1, 50))
    rows = json_rows("a.jsonl", numbered, HEAD)
    assert rows.names() == rows.names() == ["text"]
    assert next(numbered)[0] == 6, f"not {HEAD}: five lines have 110 characters"
    assert [location.line for location, _ in rows.read(["text"])][:6] == [1, 2, 3, 4, 5, 7]


@pytest.mark.usefixtures("short_lines")
def test_batches_of_long_records_are_short():
    short, long = Record("a", "x" * 10), Record("b", None, "1:1 " * 20)
    assert [len(batch) for batch in record_batches([short] * 8 + [long] * 3, 6)] == [6, 3, 2]


def test_values_of_a_cell_may_be_nested_deeply():
    cell = ["first", {"a": "second"}]
    for _ in range(5000):
        cell = [cell]
    assert cell_values([cell, "third"]) == ["first", "second", "third"]


@pytest.mark.parametrize("line", ['{"text": ' + "[" * 100_000, '{"text": "a", "labels": [%s]}' % ("9" * 5000)])
def test_json_that_python_refuses_to_parse(tmp_path, line):
    with pytest.raises(
        DataError, match=r"a\.jsonl:1: .* nested too deeply, or a number is too long\); correct the line"
    ):
        read_dataset(write(tmp_path / "a.jsonl", line))


@pytest.mark.usefixtures("short_lines")
def test_parquet_rows_are_read_by_their_size(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

    def written(texts):
        pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet", use_dictionary=False)
        return tmp_path / "a.parquet"

    with pytest.raises(DataError, match=rf"a\.parquet:1: {TOO_LONG}"):
        list(iter_records(written([LONG] * 3)))
    texts = ["0123456789" * 4] * 7
    assert [record.text for record in iter_records(written(texts))] == texts
    table = pq.ParquetFile(tmp_path / "a.parquet")
    assert 40 <= parquet._row_bytes("a.parquet", table.metadata, ["text"]) <= 100
    assert parquet._row_bytes("a.parquet", table.metadata, ["labels"]) == 0


def test_a_gzipped_parquet_file_is_unpacked_up_to_a_limit(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(parquet, "_MAX_UNPACKED", (2**20, 1))
    path = tmp_path / "a.parquet.gz"
    path.write_bytes(gzip.compress(bytes(2**22)))
    with pytest.raises(DataError, match=r"must unpack to at most 1048576 bytes, but has more; unpack it first"):
        list(iter_records(path))
