"""Opening, gzip, and atomic writing."""

import gzip
import os
import resource
from contextlib import contextmanager

import pytest
import scipy.sparse as sp

from labelspace.data.files import lines, reading, replacing, writing, writing_text
from labelspace.data.source import iter_records, write_dataset
from labelspace.errors import DataError
from labelspace.types import Dataset, LabelSpace


def test_a_missing_file_is_named(tmp_path):
    with (
        pytest.raises(DataError, match=r"must exist, but .*none\.txt does not; check the path"),
        reading(tmp_path / "none.txt"),
    ):
        pass


def test_a_folder_is_no_file(tmp_path):
    with (
        pytest.raises(DataError, match=r"must be readable, but is not \(Is a directory\); give a file"),
        reading(tmp_path),
    ):
        pass


@pytest.mark.parametrize(
    "spoil", [lambda packed: packed[:-20], lambda packed: b"not gzip", lambda p: p[:30] + b"\xff" * 40]
)
def test_a_damaged_gzip_file(tmp_path, spoil):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(spoil(gzip.compress(os.urandom(2000))))
    with pytest.raises(DataError, match=r"a\.txt\.gz must be readable, but is not .*; download or compress it again"):
        with reading(path) as file:
            file.read()


def test_lines_are_cut_at_line_feeds_only_and_a_byte_order_mark_is_skipped(tmp_path):
    path = tmp_path / "a"
    path.write_bytes("\ufeffone\u2028still\r\ntwo".encode())
    assert list(lines(path)) == [(1, "one\u2028still\r\n"), (2, "two")]


def test_bad_utf8_is_located(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"fine\nabc\xe9def\n")
    with pytest.raises(
        DataError, match=r"a\.jsonl:2: expected UTF-8 text, but byte 4 of the line is 0xe9; save .* UTF-8"
    ):
        list(lines(path))


def test_the_same_data_give_the_same_gzip_bytes(tmp_path):
    for name in ("a.gz", "b.gz"):
        with writing(tmp_path / "new" / name) as file:
            file.write(b"some bytes")
    assert (tmp_path / "new" / "a.gz").read_bytes() == (tmp_path / "new" / "b.gz").read_bytes()


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("old")

    def interrupted():
        with writing_text(path) as file:
            file.write("half of the n")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        interrupted()
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.csv"]
    assert path.read_text() == "old"


@contextmanager
def largest_file(size):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(
    "name", ["a.txt", "a.jsonl", "a.csv", "a.parquet", "a.txt.gz", "a.jsonl.gz", "a.csv.gz", "a.parquet.gz"]
)
def test_a_full_disk_leaves_nothing_behind(tmp_path, name):
    X = sp.random(300, 1000, 0.1, format="csr", dtype="f4", random_state=0)
    dataset = Dataset(sp.csr_matrix((300, 1), dtype="f4"), LabelSpace(["a"]), X=X)
    with (
        largest_file(4096),
        pytest.raises(DataError, match=r"must be written to .*but that failed \(File too large\); free"),
    ):
        write_dataset(dataset, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_file_where_a_folder_should_be(tmp_path):
    (tmp_path / "a").write_text("")
    with pytest.raises(
        DataError, match=r"must be written to .*but that failed \(.*\); free some space or give another name"
    ):
        with replacing(tmp_path / "a" / "b.txt"):
            pass


def test_a_link_is_written_through(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    with writing_text(tmp_path / "link.txt") as file:
        file.write("new")
    assert (tmp_path / "real.txt").read_text() == "new"
    assert (tmp_path / "link.txt").is_symlink()


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.parquet"])
def test_half_a_character_cannot_be_written(tmp_path, name):
    dataset = Dataset(sp.csr_matrix((1, 1), dtype="f4"), LabelSpace(["a"]), texts=["x\ud83d"])
    with pytest.raises(DataError, match=r"must be valid Unicode, but has the lone surrogate '\\ud83d'; replace it"):
        write_dataset(dataset, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "text"), [("a.jsonl", '{"text": "x"}\n\n \n'), ("a.csv", "text\nx\n\n\n")])
def test_blank_lines_at_the_end_are_no_documents(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert [record.text for record in iter_records(tmp_path / name)] == ["x"]
