"""Encoders in folders: sentence-transformers, ONNX, model2vec; what cannot be read is refused."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from labelspace.errors import DataError
from labelspace.features.encoders.folder import read_folder
from tests.features.encoders.weights import WORD_PIECES, write_model2vec, write_transformer

TEXTS = ["the cats", "a dog on the mat " * 8, "the", "unheard of"]
tokenizers = pytest.importorskip("tokenizers")


@pytest.mark.slow
@pytest.mark.parametrize(("family", "mean"), [("bert", True), ("bert", False), ("roberta", True)])
def test_vectors_are_those_of_transformers(family, mean, tmp_path):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    folder = write_transformer(tmp_path / "encoder", family, mean)
    kind = {"bert": transformers.BertModel, "roberta": transformers.RobertaModel}[family]
    config = transformers.AutoConfig.from_pretrained(folder)
    reference = kind(config, add_pooling_layer=False).eval()
    weights = {key: torch.tensor(each) for key, each in load_file(folder / "model.safetensors").items()}
    reference.load_state_dict(weights, strict=False)
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(16)
    encoder = read_folder(folder, "own")
    for text, vector in zip(TEXTS, encoder.encode(TEXTS), strict=True):
        with torch.no_grad():
            out = reference(torch.tensor([tokenizer.encode(text).ids])).last_hidden_state[0].numpy()
        expected = out.mean(axis=0) if mean else out[0]
        np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), atol=1e-5)
    np.testing.assert_allclose(encoder.encode(TEXTS, batch_size=1), encoder.encode(TEXTS), atol=1e-5)


def test_model2vec(tmp_path):
    table, folder = write_model2vec(tmp_path / "plain")
    the, cat, s = table[4], table[5], table[6]
    vectors = read_folder(folder, "own").encode(["the cats zebra", "zebra"])  # an unknown word does not count
    np.testing.assert_allclose(vectors[0], (the + cat + s) / np.linalg.norm(the + cat + s), rtol=1e-6)
    assert not vectors[1].any()


def test_model2vec_with_mapping_and_weights(tmp_path):
    mapping = np.array([*range(len(WORD_PIECES) - 1), 5])  # "on" has the vector of "cat"
    weights = np.full(len(WORD_PIECES), 0.5)
    weights[4] = 2
    table, folder = write_model2vec(tmp_path / "mapped", mapping=mapping, weights=weights)
    expected = 2 * table[4] + 0.5 * table[5]
    found = read_folder(folder, "own").encode(["the on"])[0]
    np.testing.assert_allclose(found, expected / np.linalg.norm(expected), rtol=1e-6)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"mapping": np.array([99] * len(WORD_PIECES))}, "rows of embeddings"),
        ({"mapping": np.array([0])}, "11 ids"),
        ({"weights": np.ones(3)}, "shape"),
        ({"embeddings": np.full((11, 2), np.nan, np.float32)}, "finite"),
    ],
)
def test_a_damaged_model2vec_is_refused(more, words, tmp_path):
    with pytest.raises(DataError, match=words):
        read_folder(write_model2vec(tmp_path / "damaged", **more)[1], "own")


def sparse_ids(folder):
    content = json.loads((folder / "tokenizer.json").read_text())
    content["model"]["vocab"]["cat"] = 99
    (folder / "tokenizer.json").write_text(json.dumps(content))


def edited(name, **values):
    def edit(folder):
        content = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(content | values))

    return edit


def with_tensors(change):
    def edit(folder):
        tensors = load_file(folder / "model.safetensors")
        change(tensors)
        save_file(tensors, folder / "model.safetensors")

    return edit


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (edited("config.json", model_type="xlm-roberta"), "must be one of bert, roberta"),
        (edited("config.json", hidden_act="relu"), "with relu"),
        (edited("config.json", num_attention_heads=0), "num_attention_heads|modulo"),
        (edited("config.json", num_hidden_layers=3), "KeyError"),
        (edited("config.json", hidden_size=32), "must have the shape"),
        (edited("config.json", layer_norm_eps=None), "TypeError"),
        (edited("sentence_bert_config.json", max_seq_length=-1), "max_seq_length"),
        (edited("1_Pooling/config.json", pooling_mode_max_tokens=True), "pooling must be"),
        (lambda folder: (folder / "modules.json").write_text('[{"type": "a.Dense"}]'), "not supported: Dense"),
        (lambda folder: (folder / "config.json").write_text("[" * 100_000), "cannot be read"),
        (lambda folder: (folder / "tokenizer.json").write_text("{}"), "tokenizer.json"),
        (lambda folder: sparse_ids(folder), "have 11 ids"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "no tokenizer.json"),
        (lambda folder: (folder / "model.safetensors").unlink(), "neither model.safetensors"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"\x80\x04pickle"), "cannot be read"),
        (with_tensors(lambda t: t["embeddings.LayerNorm.bias"].fill(np.inf)), "holds NaN or infinity"),
        (with_tensors(lambda t: t.update({"embeddings.word_embeddings.weight": np.ones((5, 64), "f4")})), "5 ids"),
    ],
)
def test_a_damaged_folder_is_refused_in_one_line(damage, words, tmp_path):
    folder = write_transformer(tmp_path / "encoder")
    damage(folder)
    with pytest.raises(DataError, match=words):
        read_folder(folder, "own")


class Session:
    """Stands in for onnxruntime: the vector of a token is its id, and that of a text has two numbers."""

    def __init__(self, path, options, providers):
        if path.endswith("bad.onnx"):
            raise RuntimeError("no graph")

    def get_inputs(self):
        return [type("Input", (), {"name": name}) for name in ("input_ids", "attention_mask")]

    def run(self, outputs, given):
        assert given.keys() == {"input_ids", "attention_mask"}
        ids = given["input_ids"].astype(np.float32)
        return [np.stack([ids, np.ones_like(ids)], axis=2)]


@pytest.fixture
def onnx_folder(tmp_path, monkeypatch):
    import sys
    from types import SimpleNamespace

    stub = SimpleNamespace(SessionOptions=SimpleNamespace, InferenceSession=Session)
    monkeypatch.setitem(sys.modules, "onnxruntime", stub)
    folder = write_transformer(tmp_path / "encoder")
    (folder / "model.safetensors").unlink()
    (folder / "onnx").mkdir()
    (folder / "onnx" / "model.onnx").write_bytes(b"graph")
    return folder


def test_onnx_averages_tokens_without_the_padding(onnx_folder):
    encoder = read_folder(onnx_folder, "own")
    ids = np.array([2, 4, 5, 6, 3])  # [CLS] the cat ##s [SEP]
    expected = np.array([ids.mean(), 1])
    vectors = encoder.encode(["the cats", "the cats on the mat"])
    np.testing.assert_allclose(vectors[0], expected / np.linalg.norm(expected), rtol=1e-6)
    assert encoder.embedding_dim == 2


def test_an_onnx_graph_that_is_no_encoder_is_refused(onnx_folder, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Session, "get_inputs", lambda self: [type("Input", (), {"name": "pixels"})])
        with pytest.raises(DataError, match="inputs must be among"):
            read_folder(onnx_folder, "own")
    with monkeypatch.context() as patch:
        patch.setattr(Session, "run", lambda self, outputs, given: (_ for _ in ()).throw(RuntimeError("id 99")))
        with pytest.raises(DataError, match="graph fails .id 99"):
            read_folder(onnx_folder, "own")
