"""Fixtures of the tests of the command line."""

import pytest

from labelspace.experiment.comparison import process
from labelspace.experiment.comparison.run import run as run_here


@pytest.fixture(autouse=True)
def compare_in_this_process(monkeypatch):
    """Starting a process per method takes seconds; tests/experiment/comparison has those that do."""
    monkeypatch.setattr(process, "run_isolated", run_here)
