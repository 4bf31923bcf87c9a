"""Where and how folders are replaced."""

import tempfile
from pathlib import Path

import pytest

from labelspace.store import atomic

SHM = Path("/dev/shm")


@pytest.fixture(params=["disk", "tmpfs"])
def place(request, tmp_path):
    """A folder on the file system of temporary files, and one in memory."""
    if request.param == "disk":
        yield tmp_path
        return
    if not SHM.is_dir():
        pytest.skip("no /dev/shm")
    with tempfile.TemporaryDirectory(dir=SHM) as folder:
        yield Path(folder)


@pytest.fixture(params=["exchange", "two renames"])
def exchange(request, tmp_path, monkeypatch):
    """With and without the exchange of two folders."""
    if request.param == "two renames":
        monkeypatch.setattr(atomic, "_exchange", lambda one, other: False)
        return
    folders = tmp_path / "one", tmp_path / "other"
    for folder in folders:
        folder.mkdir()
    possible = atomic._exchange(*folders)
    for folder in folders:
        folder.rmdir()
    if not possible:
        pytest.skip("this file system cannot exchange folders")
