"""Static vectors of a network's tokens, and their cache file."""

import numpy as np
import pytest

from labelspace.features.encoders import static
from labelspace.features.encoders.granite import read_granite
from labelspace.features.encoders.static import SIF, distill, distilled
from tests.features.encoders.weights import TOKENS, write_granite


@pytest.fixture
def granite(tmp_path):
    return read_granite(write_granite(tmp_path / "weights"))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "labelspace"


def test_a_text_is_the_weighted_mean_of_its_tokens_alone(granite, cache):
    alone = granite.encode_tokens([[token] for token in range(len(TOKENS))])
    probability = 1 / np.arange(1, len(TOKENS) + 1)
    weights = SIF / (SIF + probability / probability.sum())
    table = (alone - alone.mean(axis=0)) * weights[:, None]
    tokens = granite.tokenize(" the cats")
    assert len(tokens) == 3
    expected = table[tokens].sum(axis=0)
    vectors = distilled(granite).encode(["The CATS", "", "the cats"])
    np.testing.assert_allclose(vectors[0], expected / np.linalg.norm(expected), atol=2e-3)  # stored in 16 bits
    assert vectors[2].tobytes() == vectors[0].tobytes()
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)  # an empty text is a space


def test_the_table_is_made_once(granite, cache, monkeypatch):
    first = distilled(granite)
    monkeypatch.setattr(static, "distill", lambda encoder: pytest.fail("made again"))
    again = distilled(granite)
    assert again.encode(["the cat"]).tobytes() == first.encode(["the cat"]).tobytes()
    assert (again.sha256, again.name) == (first.sha256, "static")
    assert first.sha256 != granite.sha256


def test_a_damaged_cache_file_is_made_again(granite, cache):
    expected = distilled(granite).encode(["the cat"])
    (path,) = cache.iterdir()
    whole = path.read_bytes()
    for damaged in (b"", whole[:-1], b"x" + whole[1:]):
        path.write_bytes(damaged)
        assert distilled(granite).encode(["the cat"]).tobytes() == expected.tobytes()
        assert path.read_bytes() == whole


def test_a_cache_folder_that_cannot_be_used_is_not_needed(granite, cache, monkeypatch):
    cache.parent.mkdir()
    cache.write_text("no folder")
    vectors = distilled(granite).encode(["the cat"])
    assert cache.read_text() == "no folder"
    cache.unlink()
    monkeypatch.setattr(static, "_write", lambda path, table: (_ for _ in ()).throw(OSError("full")))
    assert distilled(granite).encode(["the cat"]).tobytes() == vectors.tobytes()


def test_other_weights_have_other_files(granite, cache, tmp_path):
    other = read_granite(write_granite(tmp_path / "other", seed=1))
    distilled(granite), distilled(other)
    assert len(list(cache.iterdir())) == 2
    assert distill(granite).tobytes() != distill(other).tobytes()
