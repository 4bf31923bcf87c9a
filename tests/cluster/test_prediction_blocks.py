"""Files in blocks: read block by block, they have the documents that they have as a whole."""

import csv
import gzip
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from labelspace.cluster.prediction import blocks, layout
from labelspace.cluster.prediction.blocks import block_bytes, block_records, scan_file
from labelspace.cluster.prediction.input_files import InputFile, check_unchanged, file_system, list_inputs
from labelspace.cluster.prediction.output import OutputFolder
from labelspace.data.files import writing
from labelspace.data.read_options import ReadOptions
from labelspace.data.source import iter_records
from labelspace.errors import DataError, MissingExtraError
from labelspace.types import Columns

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'labelspace[cluster]'")
N = 57
READING = ReadOptions()


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "MIN_ROWS", 5)


def text(number):
    return f'the "text", number {number}\nin {"two" * (number % 7)} lines é'


def rows_of(n=N):
    return [{"id": f"doc {i}" if i % 3 else None, "text": text(i)} for i in range(n)]


def write_jsonl(path, encoding="utf-8", rows=None):
    with writing(path) as file:
        file.write("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows or rows_of()).encode(encoding))


def write_csv(path, first="", encoding="utf-8", columns=("title", "sku"), delimiter=";"):
    with path.open("w", encoding=encoding, newline="") as file:
        file.write(first)
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(columns)
        writer.writerows([text(i), f"sku {i}"][: len(columns)] for i in range(N))


def write_parquet(path, row_group=11):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'labelspace[parquet]'")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.Table.from_pylist([{**row, "other": number} for number, row in enumerate(rows_of())])
    parquet.write_table(table, path, row_group_size=row_group)


def write_double(path, columns=("text", "other", "other")):
    """Parquet with columns of one name."""
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'labelspace[parquet]'")
    parquet = pytest.importorskip("pyarrow.parquet")
    cells = [pyarrow.array([text(i) for i in range(N)])] * len(columns)
    parquet.write_table(pyarrow.Table.from_arrays(cells, names=columns), path, row_group_size=11)


def scanned(path, reading=READING, size=1):
    (file,) = list_inputs(str(path))
    return scan_file((reading, size), file)


def read_blocks(found):
    records = []
    for block in found:
        with block_records(block) as (_, documents):
            part = list(documents)
        assert len(part) == block.n_rows
        records += part
    return records


def same_as_whole(path, reading=READING, size=1):
    found = scanned(path, reading, size).blocks
    columns = reading.columns
    whole = list(iter_records(path, columns=columns, options=reading))
    assert [replace(record, line=0) for record in read_blocks(found)] == [replace(record, line=0) for record in whole]
    assert len(whole) == N
    return found


WRITERS = {
    "a.jsonl": write_jsonl,
    "a.jsonl.gz": write_jsonl,
    "a.jsonl.zst": write_jsonl,
    "marked.jsonl": lambda path: write_jsonl(path, "utf-8-sig", [{"id": 1, "text": "ü"}] * N),
    "a.csv": write_csv,
    "western.csv": lambda path: write_csv(path, encoding="cp1252"),
    "excel.csv": lambda path: write_csv(path, "sep=|\r\n", "utf-8-sig", delimiter="|"),
    "broken_header.csv": lambda path: write_csv(path, encoding="utf-8-sig", columns=("text\nin full", "sku")),
    "without_ids.tsv": lambda path: write_csv(path, columns=("text",), delimiter="\t"),
    "a.parquet": write_parquet,
    "double.parquet": write_double,
    "one_group.parquet": lambda path: write_parquet(path, N),
}


@pytest.mark.parametrize("name", WRITERS)
def test_blocks_have_the_documents_of_the_whole(name, tmp_path):
    path = tmp_path / name
    WRITERS[name](path)
    assert len(same_as_whole(path)) == 12
    assert len(same_as_whole(path, size=10**9)) == 1


def test_a_table_and_named_columns(tmp_path):
    write_csv(tmp_path / "a.csv")
    same_as_whole(tmp_path / "a.csv", ReadOptions(columns=Columns(("title", "sku"), (("brand",),))))
    same_as_whole(tmp_path / "a.csv", ReadOptions(text=("sku",), delimiter="semicolon"))


def test_a_byte_order_mark_that_is_asked_for_is_that_of_utf_8(tmp_path):
    WRITERS["excel.csv"](tmp_path / "a.csv")
    same_as_whole(tmp_path / "a.csv", ReadOptions(encoding="UTF-8-SIG"))
    write_jsonl(tmp_path / "a.jsonl")  # and where there is none
    same_as_whole(tmp_path / "a.jsonl", ReadOptions(encoding="utf_8_sig"))


def test_the_rows_of_a_block_may_lack_an_optional_field(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", rows=[{"title": f"a {i}"} | ({"sku": i} if i == 3 else {}) for i in range(N)])
    same_as_whole(tmp_path / "a.jsonl", ReadOptions(columns=Columns(("title", "sku"), (("brand",),))))
    with pytest.raises(DataError, match=r"a\.jsonl must have the column 'price', but has: title, sku"):
        scanned(tmp_path / "a.jsonl", ReadOptions(columns=Columns(("title", "price"), (("brand",),))))


def test_what_is_detected_is_that_of_the_beginning(tmp_path):
    """A later block alone would be read otherwise: there is another field that texts have by their names."""
    rows = [{"title": f"a {i}", "note": ""} for i in range(20)] + [{"title": "b", "text": "c"} for _ in range(N - 20)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("labelspace.data.formats.json_documents.HEAD", 10)
        write_jsonl(tmp_path / "a.jsonl", rows=rows)
        same_as_whole(tmp_path / "a.jsonl")
    scan = scanned(tmp_path / "a.jsonl", ReadOptions(text=("title",)))
    assert scan.notes == [f"{tmp_path / 'a.jsonl'}: text: title"]


def test_blocks_follow_each_other_in_an_open_file(tmp_path, monkeypatch):
    """A compressed file, and a row group, are unpacked once for blocks that are read in their order."""
    opens = []
    monkeypatch.setattr(layout, "_BATCH", 4)
    for name in ("UnpackedFile", "ParquetRows"):
        kind = getattr(blocks, name)
        monkeypatch.setattr(blocks, name, lambda *given, kind=kind: opens.append(given[0]) or kind(*given))
    for name in ("a.jsonl.gz", "one_group.parquet"):
        WRITERS[name](tmp_path / name)
        found = scanned(tmp_path / name).blocks
        opens.clear()
        whole = read_blocks(found)
        assert opens == [str(tmp_path / name)]
        assert read_blocks(found[::-1][:3]) == whole[-2:] + whole[-7:-2] + whole[-12:-7]
        assert len(opens) == 4
        opens.clear()


def test_a_later_row_group_is_entered_without_those_before_it(tmp_path, monkeypatch):
    decoded, kind = [], layout.ParquetRows
    monkeypatch.setattr(layout, "_BATCH", 4)

    class Counted(kind):
        def __init__(self, *given):
            super().__init__(*given)
            self._batches = (decoded.append(len(batch)) or batch for batch in self._batches)

    write_parquet(tmp_path / "a.parquet")  # row groups from rows 0, 11, 22, 33, 44 and 55 on
    found = scanned(tmp_path / "a.parquet").blocks  # from rows 0, 5, 10, ..., 55 on
    whole = read_blocks(found)
    monkeypatch.setattr(blocks, "ParquetRows", Counted)
    assert read_blocks([found[0]]) == whole[:5]
    decoded.clear()
    assert read_blocks([found[9]]) == whole[45:50]
    assert sum(decoded) <= 11


def test_errors_name_the_line_of_the_file(tmp_path):
    lines = [json.dumps(row) for row in rows_of()]
    for broken, said in (("{", ":32: expected a JSON object, but the line is not JSON"), ("", ":32: .* is blank")):
        path = tmp_path / "a.jsonl"
        path.write_text("\n".join([*lines[:31], broken, *lines[32:], "", ""]))
        with pytest.raises(DataError, match=f"^{path}{said}"):
            read_blocks(scanned(path).blocks)
    path.write_text("\n".join([*lines, "", "", ""]))
    assert len(read_blocks(scanned(path).blocks)) == N
    path = tmp_path / "a.csv"
    path.write_text("id,text\n" + "1,a\n" * 20 + "2,b,c\n" + "3,d\n" * 20)
    with pytest.raises(DataError, match=f"^{path}:22: expected 2 cells"):
        read_blocks(scanned(path).blocks)
    path.write_text("id,text\n" + "1,a\n" * 20 + '2,"b\n' + "3,d\n" * 20)
    with pytest.raises(DataError, match=f"^{path}:22: expected CSV"):
        read_blocks(scanned(path).blocks)
    path.write_text("id,name,name\n1,a,b\n")
    with pytest.raises(DataError, match=f"^{path}:1: expected unique columns"):
        scanned(path)
    path.write_text("\nid,text\n1,a\n")
    with pytest.raises(DataError, match=f"^{path}:1: expected a header .*, but the line is blank; remove the line"):
        scanned(path)
    write_double(tmp_path / "a.parquet", ("text", "text"))
    with pytest.raises(DataError, match=r"a\.parquet: expected unique columns, but 'text' occurs twice; rename"):
        scanned(tmp_path / "a.parquet")


def test_what_cannot_be_cut_is_refused(tmp_path):
    write_csv(tmp_path / "a.csv", encoding="utf-16")
    with pytest.raises(DataError, match="must be read line by line, but .* is in utf-16; save it as UTF-8"):
        scanned(tmp_path / "a.csv")
    (tmp_path / "a.json").write_text('[{"text": "one list"}]')
    with pytest.raises(DataError, match="must be JSON lines, CSV, TSV or Parquet, but .* is one JSON list"):
        scanned(tmp_path / "a.json")
    write_jsonl(tmp_path / "a.jsonl")
    found = scanned(tmp_path / "a.jsonl").blocks
    with (tmp_path / "a.jsonl").open("a") as file:
        file.write("{}\n")
    with pytest.raises(DataError, match="must stay as it is and be the same on all machines, but has"):
        read_blocks(found)
    (tmp_path / "empty.jsonl").write_text("")
    assert scanned(tmp_path / "empty.jsonl") == ([], [])
    (tmp_path / "a.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(DataError, match=r"a\.parquet must be a Parquet file, but cannot be read as one"):
        scanned(tmp_path / "a.parquet")
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b'{"text": "a"}\n' * 99)[:-9])
    with pytest.raises(DataError, match=r"a\.jsonl\.gz must be readable, but is not"):
        scanned(tmp_path / "a.jsonl.gz")


def test_sizes_of_blocks(monkeypatch, tmp_path):
    files = [InputFile("a.jsonl", 1_000_000, ""), InputFile("b.csv.gz", 1_000_000, "")]
    assert block_bytes(files, n_cpus=2) == 5_000_000 // 16
    assert block_bytes([InputFile("a.jsonl", 10**12, "")], n_cpus=2) == blocks.MAX_BYTES
    write_jsonl(tmp_path / "a.jsonl")
    write_parquet(tmp_path / "a.parquet")
    monkeypatch.setattr(blocks, "MAX_ROWS", 8)
    for name in ("a.jsonl", "a.parquet"):
        assert [block.n_rows for block in scanned(tmp_path / name, size=10**9).blocks] == [8] * 7 + [1]
    monkeypatch.setattr(blocks, "MAX_BYTES", 100)  # less than five rows have
    assert max(block.n_rows for block in scanned(tmp_path / "a.jsonl").blocks) < 5
    assert max(block.n_rows for block in scanned(tmp_path / "a.parquet").blocks) < 5


def test_files_of_folders_and_patterns(tmp_path):
    for name in ("b.csv", "a/c.csv", "a/.hidden", "_logs/d.csv"):
        Path(tmp_path, name).parent.mkdir(exist_ok=True)
        Path(tmp_path, name).write_text("text\n")
    names = [Path(file.path).relative_to(tmp_path).as_posix() for file in list_inputs(f"file://{tmp_path}")]
    assert names == ["a/c.csv", "b.csv"]
    assert [Path(file.path).name for file in list_inputs(f"{tmp_path}/*.csv")] == ["b.csv"]
    for url, said in (
        (tmp_path / "no.csv", "must exist, but .*no.csv does not"),
        (tmp_path / "*.parquet", "a folder with files, but .* has none"),
        ("memory://a", "in the memory of one process"),
        ("nothing://a", "must be one that fsspec knows"),
    ):
        with pytest.raises(DataError, match=said):
            list_inputs(str(url))


def relative(url, root):
    return [Path(file.path).relative_to(root).as_posix() for file in list_inputs(str(url))]


def test_links_are_followed_and_each_folder_is_read_once(tmp_path):
    there, root = tmp_path / "there", tmp_path / "in"
    for path in (there / "c.jsonl", there / "deep" / "d.jsonl", root / "a.jsonl"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"text": "a"}\n')
    (root / "b.jsonl").symlink_to(there / "c.jsonl")
    (root / "linked").symlink_to(there)
    (there / "back").symlink_to(root)  # a circle
    (root / "other").symlink_to(there / "deep")
    assert relative(root, root) == ["a.jsonl", "b.jsonl", "linked/c.jsonl", "other/d.jsonl"]
    assert relative(root / "*.jsonl", root) == ["a.jsonl", "b.jsonl"]
    assert relative(root / "*" / "c.jsonl", root) == ["linked/c.jsonl"]
    assert relative(root / "**" / "[cd].jsonl", root) == ["linked/c.jsonl", "other/d.jsonl"]


def test_a_link_is_as_large_and_as_old_as_what_it_leads_to(tmp_path):
    (tmp_path / "in").mkdir()
    link, target = tmp_path / "in" / "a.jsonl", tmp_path / "a"
    target.write_text('{"text": "a"}\n')
    link.symlink_to(target)
    for url in (tmp_path / "in", tmp_path / "in" / "*.jsonl", link):
        os.utime(target, (1, 1))
        (before,) = list_inputs(str(url))
        check_unchanged(before)
        target.write_text('{"text": "b"}\n')
        assert list_inputs(str(url)) == [replace(before, modified=str(target.stat().st_mtime))] != [before]


def test_what_cannot_be_listed_is_refused(tmp_path, monkeypatch):
    for name in ("in/a.jsonl", "in/locked/b.jsonl", "in/_locked/c.jsonl"):
        Path(tmp_path, name).parent.mkdir(parents=True, exist_ok=True)
        Path(tmp_path, name).write_text("{}\n")
    scandir = os.scandir

    def denied(path):
        if "locked" in str(path):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", denied)  # what chmod would do, but root may read all
        for url in ("in", "in/*/*.jsonl", "in/**/b.jsonl"):
            with pytest.raises(DataError, match=r"in/_?locked must be readable, but is not \(Permission denied\)"):
                list_inputs(str(tmp_path / url))
        assert relative(tmp_path / "in" / "*.jsonl", tmp_path) == ["in/a.jsonl"]
    (tmp_path / "in" / "gone.jsonl").symlink_to("nowhere")
    for url in ("in", "in/*.jsonl"):
        with pytest.raises(DataError, match=r"must exist, but .*in/gone\.jsonl does not"):
            list_inputs(str(tmp_path / url))
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(DataError, match=r"must be a file, or a folder with files, but .*pipe\.jsonl is neither"):
        list_inputs(str(tmp_path / "pipe.jsonl"))


def test_a_store_whose_package_is_missing(monkeypatch):
    def missing(url):
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec.core, "url_to_fs", missing)
    with pytest.raises(
        MissingExtraError, match=r"s3:// needs a package .*\(Install s3fs to access S3\); install it on"
    ):
        file_system("s3://bucket/a")


@pytest.fixture
def store(monkeypatch):
    """An object store in the memory of this process."""
    from fsspec.implementations.memory import MemoryFileSystem

    class Store(MemoryFileSystem):
        protocol, store, pseudo_dirs = ("s3",), {}, [""]

        @classmethod
        def _strip_protocol(cls, path):
            return "/" + path.removeprefix("s3://").strip("/")

        def unstrip_protocol(self, name):
            return f"s3:/{self._strip_protocol(name)}"

    monkeypatch.setitem(sys.modules["fsspec.registry"]._registry, "s3", Store)
    return Store()


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.csv", "a.parquet", "double.parquet"])
def test_an_object_store_is_read_as_a_path(name, store, tmp_path):
    WRITERS[name](tmp_path / name)
    store.put_file(str(tmp_path / name), f"s3://bucket/{name}")
    scan = scanned(f"s3://bucket/{name}")
    assert scan.blocks[0].file.path == f"s3://bucket/{name}"
    assert read_blocks(scan.blocks) == read_blocks(scanned(tmp_path / name).blocks)
    assert [note.replace("s3://bucket", str(tmp_path)) for note in scan.notes] == scanned(tmp_path / name).notes


def test_the_first_line_in_an_object_store_may_be_long(store, tmp_path, monkeypatch):
    monkeypatch.setattr(layout, "UNPACKED", 100)
    rows = [{"id": "long", "text": "word " * 100}, *rows_of(N - 1)]
    write_jsonl(tmp_path / "a.jsonl", rows=rows)
    store.put_file(str(tmp_path / "a.jsonl"), "s3://bucket/a.jsonl")
    assert read_blocks(scanned("s3://bucket/a.jsonl").blocks) == read_blocks(scanned(tmp_path / "a.jsonl").blocks)
    monkeypatch.setenv("LABELSPACE_MAX_LINE_BYTES", "300")
    with pytest.raises(DataError, match=r"^s3://bucket/a\.jsonl:1: expected at most 300"):
        scanned("s3://bucket/a.jsonl")


def test_what_the_package_of_a_store_raises_is_one_line(store, tmp_path, monkeypatch):
    def failing(*given, **named):
        raise RuntimeError("Unable to locate\ncredentials")  # as botocore's NoCredentialsError, which is no OSError

    WRITERS["a.parquet"](tmp_path / "a.parquet")
    store.put_file(str(tmp_path / "a.parquet"), "s3://bucket/a.parquet")
    (file,) = list_inputs("s3://bucket/a.parquet")
    monkeypatch.setattr(type(store), "info", failing)
    said = r"^s3://bucket/\S+ must be readable, but is not \(Unable to locate credentials\); give a file that can be"
    with pytest.raises(DataError, match=said):
        list_inputs("s3://bucket/a.jsonl")
    monkeypatch.setattr(type(store), "open", failing)
    with pytest.raises(DataError, match=said):
        layout.ParquetRows(file.path)
    monkeypatch.setattr(type(store), "put_file", failing)
    with pytest.raises(DataError, match=r"written to s3://bucket/out, but that failed \(Unable to locate credentials"):
        OutputFolder("s3://bucket/out").put(tmp_path / "a.parquet")
