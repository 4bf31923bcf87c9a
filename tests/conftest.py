"""Data every test may ask for: planted, so the right answer is known."""

import sys

import pytest
from hypothesis import settings

from labelspace import cli
from labelspace.data.synthetic import planted
from labelspace.types import Dataset

# No deadline: the first call of a kernel compiles it, and the machine may be busy.
settings.register_profile("labelspace", deadline=None, derandomize=True)
settings.load_profile("labelspace")


@pytest.fixture(scope="session")
def data() -> tuple[Dataset, Dataset]:
    """Train and test documents with features, texts, names and a hierarchy."""
    whole = planted(n=900, d=600, l=40, texts=True, seed=5)
    return whole.rows(range(700)), whole.rows(range(700, 900))


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Call the command line in an empty folder; its exit code, stdout and stderr come back."""
    monkeypatch.chdir(tmp_path)

    def call(*args):
        monkeypatch.setattr(sys, "argv", ["labelspace", *map(str, args)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    return call
