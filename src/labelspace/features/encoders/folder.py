"""Encoders in a folder: sentence-transformers (BERT and RoBERTa, as safetensors or ONNX) and model2vec.

Only JSON, safetensors and ONNX are read: nothing is unpickled, and no code of a folder is run.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from labelspace.errors import DataError, LabelspaceError, require
from labelspace.features.encoders.base import Encoder
from labelspace.features.encoders.network import Layer, Linear, Network, Norm
from labelspace.features.encoders.static import StaticEncoder
from labelspace.features.encoders.transformer import TransformerEncoder
from labelspace.store.model_folder import map_arrays
from labelspace.types import Floats

EXTRA = "hub"
WEIGHTS, ONNX = "model.safetensors", ("onnx/model.onnx", "model.onnx")
FAMILIES = ("bert", "roberta")
CLS_POOLING, MEAN_POOLING = "pooling_mode_cls_token", "pooling_mode_mean_tokens"
MAX_JSON_BYTES = 2**26
Json = dict[str, Any]


def read_folder(folder: Path, name: str) -> Encoder:
    """Return the encoder of a folder; raise DataError unless it is whole and of a kind that can be read."""
    if not folder.is_dir():
        raise DataError(
            f"an encoder must be a name or a folder, but {str(folder)!r} is no folder; give one that exists"
        )
    try:
        return _read(folder, name)
    except LabelspaceError:
        raise
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        rule = f"the folder {folder} must hold an encoder, but it cannot be read as one"
        raise DataError(f"{rule} ({type(error).__name__}: {error}); copy or download it again") from error


def _read(folder: Path, name: str) -> Encoder:
    config = _json(folder / "config.json")
    weights = folder / WEIGHTS
    tokenizer = _tokenizer(folder)
    if weights.is_file():
        content = weights.read_bytes()
        tensors = map_arrays(content)
        sha256 = _checksum(folder, content)
        if "embeddings" in tensors:
            return _model2vec(name, sha256, tensors, tokenizer)
        return _transformer(folder, config, {key: _floats(key, value) for key, value in tensors.items()}, name, sha256)
    found = [folder / path for path in ONNX if (folder / path).is_file()]
    if not found:
        raise ValueError(f"it has neither {WEIGHTS} nor {' nor '.join(ONNX)}; weights in another format are not read")
    from labelspace.features.encoders.onnx import OnnxEncoder

    data = found[0].with_name(found[0].name + "_data")
    content = found[0].read_bytes() + (data.read_bytes() if data.is_file() else b"")
    return OnnxEncoder(name, _checksum(folder, content), found[0], tokenizer, pools_mean(folder), _max_length(folder))


def _checksum(folder: Path, weights: bytes) -> str:
    """Return the checksum of weights and tokenizer: with another tokenizer, the same weights give other vectors."""
    return hashlib.sha256((folder / "tokenizer.json").read_bytes() + weights).hexdigest()


def _json(path: Path) -> Json:
    if not path.is_file():
        return {}
    if path.stat().st_size > MAX_JSON_BYTES:
        raise ValueError(f"{path.name} has more than {MAX_JSON_BYTES} bytes")
    read = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(read, dict):
        raise ValueError(f"{path.name} must hold an object")
    return read


def _tokenizer(folder: Path) -> Any:  # noqa: ANN401 - of the package tokenizers
    """Return the tokenizer, which neither pads nor cuts off."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise ValueError("it has no tokenizer.json")
    library = require("tokenizers", EXTRA, "an encoder in a folder")
    try:
        tokenizer = library.Tokenizer.from_file(str(path))
    except Exception as error:  # the package raises nothing narrower
        raise ValueError(f"tokenizer.json: {error}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _n_ids(tokenizer: Any) -> int:  # noqa: ANN401
    """Return how many ids a tokenizer may give; some may be of no token."""
    return max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1) + 1


def _floats(name: str, tensor: Floats) -> Floats:
    if tensor.dtype.kind != "f":
        return tensor  # ids of positions, which are not read
    if not np.isfinite(tensor).all():
        raise ValueError(f"{name} holds NaN or infinity")
    return np.asarray(tensor, np.float32)


def pools_mean(folder: Path) -> bool:
    """Return whether the vector of a text is the mean of its tokens, else that of the first; raise for other ways."""
    path = folder / "modules.json"
    if path.is_file():
        kinds = [str(module["type"]).rsplit(".", 1)[-1] for module in json.loads(path.read_text(encoding="utf-8"))]
        unknown = set(kinds) - {"Transformer", "Pooling", "Normalize"}
        if unknown:
            raise ValueError(f"it has modules that are not supported: {', '.join(sorted(unknown))}")
    pooling = _json(folder / "1_Pooling" / "config.json")
    used = [key for key, value in pooling.items() if key.startswith("pooling_mode_") and value is True]
    if len(used) > 1 or not set(used) <= {CLS_POOLING, MEAN_POOLING}:
        raise ValueError(f"its pooling must be {CLS_POOLING} or {MEAN_POOLING}, but is {', '.join(used)}")
    return used != [CLS_POOLING]


def _max_length(folder: Path) -> int:
    length = _json(folder / "sentence_bert_config.json").get("max_seq_length") or 512
    if type(length) is not int or not 3 <= length < 2**20:
        raise ValueError(f"max_seq_length must be an integer of at least 3, but is {length!r}")
    return length


def _model2vec(name: str, sha256: str, tensors: Mapping[str, Any], tokenizer: Any) -> StaticEncoder:  # noqa: ANN401
    """Return static vectors: of each token, or of what ``mapping`` says for it, times its weight."""
    table = np.asarray(tensors["embeddings"], np.float32)  # of 8 bits too: a factor changes no direction
    if table.ndim != 2 or not np.isfinite(table).all():
        raise ValueError("embeddings must be a table of finite numbers")
    n_ids = _n_ids(tokenizer)
    if "mapping" in tensors:
        mapping = tensors["mapping"]
        if mapping.ndim != 1 or mapping.min() < 0 or mapping.max() >= len(table):
            raise ValueError("mapping must have rows of embeddings")
        table = table[mapping]
    if "weights" in tensors:
        weights = _floats("weights", tensors["weights"])
        if weights.shape != (len(table),):
            raise ValueError(f"weights must have the shape ({len(table)},)")
        table = table * weights[:, None].astype(np.float32)
    if n_ids > len(table):
        raise ValueError(f"its tokenizer has {n_ids} ids, but there are vectors for {len(table)}")
    unknown = tokenizer.token_to_id("[UNK]")

    def tokenize(text: str) -> Sequence[int]:
        return [token for token in tokenizer.encode(text, add_special_tokens=False).ids if token != unknown]

    return StaticEncoder(name, sha256, table, tokenize)


def _transformer(
    folder: Path, config: Json, tensors: Mapping[str, Floats], name: str, sha256: str
) -> TransformerEncoder:
    if config.get("model_type") not in FAMILIES or config.get("hidden_act") != "gelu":
        kind = f"{config.get('model_type')} with {config.get('hidden_act')}"
        raise ValueError(f"its model_type must be one of {', '.join(FAMILIES)} with gelu, but is {kind}")
    prefix = next((f"{family}." for family in FAMILIES if any(key.startswith(f"{family}.") for key in tensors)), "")
    offset = int(config.get("pad_token_id", 1)) + 1 if config["model_type"] == "roberta" else 0
    network = _network(lambda key, *shape: _of_shape(tensors, prefix + key, *shape), config, offset, pools_mean(folder))
    tokenizer = _tokenizer(folder)
    ends = tokenizer.encode("").ids
    n_ids = _n_ids(tokenizer)
    if len(ends) != 2 or n_ids > len(network.tokens):
        raise ValueError(
            f"its tokenizer must put one token before and after a text, and have {len(network.tokens)} ids"
        )

    def tokenize(text: str) -> Sequence[int]:
        ids: Sequence[int] = tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    return TransformerEncoder(name, sha256, network, tokenize, ends=tuple(ends), max_length=_max_length(folder))


def _of_shape(tensors: Mapping[str, Floats], name: str, *shape: int) -> Floats:
    """Return a tensor, whose shape must be this one where it is not -1."""
    found = tensors[name]
    if found.ndim != len(shape) or any(n not in (-1, m) for n, m in zip(shape, found.shape, strict=True)):
        raise ValueError(f"{name} must have the shape {shape}, but has {found.shape}")
    return found


def _network(read: Callable[..., Floats], config: Json, offset: int, mean: bool) -> Network:
    dim, inner, heads = (config[key] for key in ("hidden_size", "intermediate_size", "num_attention_heads"))
    if not all(type(n) is int and n > 0 for n in (dim, inner, heads, config["num_hidden_layers"])) or dim % (4 * heads):
        raise ValueError("hidden_size must be a multiple of four times num_attention_heads")
    if not 0 < config["layer_norm_eps"] < 1:
        raise ValueError("layer_norm_eps must be above 0 and below 1")

    def linear(name: str, n_outputs: int, n_inputs: int) -> Linear:
        weights = read(f"{name}.weight", n_outputs, n_inputs)
        return Linear(np.ascontiguousarray(weights.T), read(f"{name}.bias", n_outputs))

    def norm(name: str) -> Norm:
        return Norm(read(f"{name}.weight", dim), read(f"{name}.bias", dim))

    def layer(name: str) -> Layer:
        parts = [linear(f"{name}.attention.self.{part}", dim, dim) for part in ("query", "key", "value")]
        weights, bias = np.hstack([part.weights for part in parts]), np.hstack([part.bias for part in parts])
        return Layer(
            qkv=Linear(weights, bias),
            attended=linear(f"{name}.attention.output.dense", dim, dim),
            attended_norm=norm(f"{name}.attention.output.LayerNorm"),
            inner=linear(f"{name}.intermediate.dense", inner, dim),
            outer=linear(f"{name}.output.dense", dim, inner),
            outer_norm=norm(f"{name}.output.LayerNorm"),
        )

    positions = read("embeddings.position_embeddings.weight", -1, dim)[offset:]
    return Network(
        tokens=read("embeddings.word_embeddings.weight", -1, dim),
        positions=positions + read("embeddings.token_type_embeddings.weight", -1, dim)[0],
        norm=norm("embeddings.LayerNorm"),
        layers=[layer(f"encoder.layer.{at}") for at in range(config["num_hidden_layers"])],
        n_heads=heads,
        eps=config["layer_norm_eps"],
        pools_mean=mean,
    )
