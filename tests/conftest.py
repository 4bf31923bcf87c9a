"""Fixtures of all tests: planted data, a runner of the command line, and a browser."""

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


@pytest.fixture(scope="session")
def data() -> tuple[Dataset, Dataset]:
    """Train and test documents with features, texts, names and a hierarchy."""
    documents = planted(n=900, d=600, l=40, texts=True, seed=5)
    return documents.rows(range(700)), documents.rows(range(700, 900))


@pytest.fixture
def hierarchy_folder(data, tmp_path):
    """Texts with a hierarchy file beside them."""
    folder = tmp_path / "texts"
    for name, part in zip(("train", "test"), data, strict=True):
        write_dataset(Dataset(part.Y, part.labels, texts=part.texts), folder / f"{name}.jsonl")
    write_hierarchy(folder / "hierarchy.tsv", data[0].labels)
    return folder


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
