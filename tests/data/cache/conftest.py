"""Fixtures of the tests of the cache: small data are treated as large ones."""

import pytest

from labelspace.data.cache.folder import CacheFolder
from labelspace.data.cache.scratch import Scratch
from labelspace.features import normalize, sparse_matrix, vocabulary
from labelspace.kernels import large_arrays

MEMORY = 2**30


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An open cache in whose files every array lives that may be large, however small; blocks are small too."""
    monkeypatch.setattr(large_arrays, "SMALL_SHARE", MEMORY + 1)
    monkeypatch.setattr(large_arrays, "SMALL_PART", 1)
    monkeypatch.setattr(Scratch, "room", lambda self: 0)
    monkeypatch.setattr(vocabulary, "DOCUMENT_BLOCK", 50)
    monkeypatch.setattr(vocabulary, "NGRAM_BLOCK", 50)
    for module in (normalize, sparse_matrix):
        monkeypatch.setattr(module, "ROW_BLOCK", 50)
    monkeypatch.setattr(sparse_matrix, "BLOCK", 500)
    with CacheFolder(tmp_path / "cache", MEMORY) as opened:
        yield opened
