"""Fixtures of all tests: planted data, a runner of the command line, and a browser."""

import os
import shutil
import sys

import pytest
from hypothesis import settings

from labelspace import cli
from labelspace.data.label_files import write_hierarchy
from labelspace.data.source import write_dataset
from labelspace.data.synthetic import planted
from labelspace.types import Dataset
from tests.browser import launched

# No deadline: the first call of a kernel compiles it, and the machine may be busy.
settings.register_profile("labelspace", deadline=None, derandomize=True)
settings.load_profile("labelspace")


@pytest.fixture(autouse=True, scope="session")
def unsynced():
    """Wait for no disk: tests kill processes, not the machine. Those of syncing put their own function here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(autouse=True)
def no_encoder(monkeypatch):
    """Let the default choose its members as if no encoder were installed; tests of it put their own there."""
    monkeypatch.setattr("labelspace.models.blend.members.find_spec", lambda package: None)


@pytest.fixture(scope="session")
def data() -> tuple[Dataset, Dataset]:
    """Train and test documents with features, texts, names and a hierarchy."""
    documents = planted(n=900, d=600, l=40, texts=True, seed=5)
    return documents.rows(range(700)), documents.rows(range(700, 900))


@pytest.fixture(scope="session")
def written_hierarchy_folder(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("written") / "texts"
    for name, part in zip(("train", "test"), data, strict=True):
        write_dataset(Dataset(part.Y, part.labels, texts=part.texts), folder / f"{name}.jsonl")
    write_hierarchy(folder / "hierarchy.tsv", data[0].labels)
    return folder


@pytest.fixture
def hierarchy_folder(written_hierarchy_folder, tmp_path):
    """Write texts with a hierarchy file next to them, for one test."""
    return shutil.copytree(written_hierarchy_folder, tmp_path / "texts")


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run the command line in an empty folder; returns exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def call(*args):
        monkeypatch.setattr(sys, "argv", ["labelspace", *map(str, args)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    return call


@pytest.fixture(scope="module")
def browser():
    """A browser for all tests of a file; a context is a window, and to open one takes longer than most tests."""
    with launched() as browser:
        yield browser
