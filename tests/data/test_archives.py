"""Compressed files and zip archives."""

import zipfile

import pytest

from labelspace.data.files import lines, writing_text
from labelspace.data.source import open_source, read_dataset
from labelspace.errors import DataError

CSV = "text,labels\nit purrs,cat\nit barks,dog\n"


def pack(path, **files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name.replace("__", ".").replace("--", "/"), text)
    return path


def test_a_zip_with_one_file_is_that_file(tmp_path):
    path = pack(tmp_path / "pets.csv.zip", pets__csv=CSV, **{"__MACOSX--pets__csv": "rubbish"})
    assert read_dataset(path).labels.names == ["cat", "dog"]
    assert len(open_source(path).train()) == 2


@pytest.mark.parametrize("top", ["", "data--"])
def test_a_zip_with_splits_is_a_folder(tmp_path, top):
    labels = '{"label": "dog"}\n{"label": "cat"}\n'
    files = {f"{top}train__csv": CSV, f"{top}test__csv": CSV, f"{top}labels__jsonl": labels}
    source = open_source(pack(tmp_path / "pets.zip", **files))
    train = source.train()
    assert train.labels.names == ["dog", "cat"]
    assert len(source.test(train.labels)) == 2


def test_a_zip_with_other_files_says_so(tmp_path):
    path = pack(tmp_path / "pets.zip", a__csv=CSV, b__csv=CSV)
    with pytest.raises(DataError, match=r"a data folder must have train\.\*"):
        open_source(path)
    assert len(read_dataset(path / "a.csv")) == 2
    with pytest.raises(DataError, match=r"must exist, but .*c\.csv does not"):
        read_dataset(path / "c.csv")


def test_a_damaged_zip(tmp_path):
    (tmp_path / "a.csv.zip").write_bytes(b"PK\x03\x04 rubbish")
    with pytest.raises(DataError, match=r"a\.csv\.zip must be a zip archive, but is not"):
        read_dataset(tmp_path / "a.csv.zip")


def test_zstandard(tmp_path):
    pytest.importorskip("zstandard", reason="the extra zstd is not installed")
    with writing_text(tmp_path / "a.csv.zst") as file:
        file.write(CSV)
    assert [line for _, line in lines(tmp_path / "a.csv.zst")] == CSV.splitlines(keepends=True)
    assert read_dataset(tmp_path / "a.csv.zst").labels.names == ["cat", "dog"]
    (tmp_path / "b.csv.zst").write_bytes((tmp_path / "a.csv.zst").read_bytes()[:-9])
    with pytest.raises(DataError):
        read_dataset(tmp_path / "b.csv.zst")
    (tmp_path / "c.csv.zst").write_bytes(b"rubbish")
    with pytest.raises(DataError, match=r"c\.csv\.zst must be readable, but is not"):
        read_dataset(tmp_path / "c.csv.zst")
