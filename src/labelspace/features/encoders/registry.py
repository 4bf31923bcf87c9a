"""The encoders: by name, in a folder, of the Hugging Face hub, or a function of the user."""

from collections.abc import Callable, Hashable
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import numpy as np

from labelspace.errors import DataError, ParameterError, require
from labelspace.features.encoders.base import PACKAGES, Encoder
from labelspace.types import Floats

HUB = "hub:"
HUB_FILES = ["*.json", "*.safetensors", "onnx/model.onnx*", "model.onnx*"]
FUNCTION = "function"  # what a saved model has in place of a function
AnyEncoder = str | Encoder | Callable[[list[str]], Any]
"""A name, a folder, ``hub:owner/name``, an encoder, or a function from texts to their vectors."""
_loaded: dict[str, Encoder] = {}  # by name


class GivenEncoder(Encoder):
    """A function of the user, or an object with a method ``encode``, from a list of texts to an array of vectors."""

    sha256 = None

    def __init__(self, function: Callable[[list[str]], Any]) -> None:
        self._function = getattr(function, "encode", function)
        self.name = getattr(function, "__name__", type(function).__name__)
        found = self._encode_batch(["a"])
        if found.ndim != 2 or len(found) != 1 or not found.shape[1]:
            rule = f"the encoder {self.name} must return a vector for each text of a list"
            raise DataError(f"{rule}, but of one text it returns shape {found.shape}; correct it")
        self.embedding_dim = found.shape[1]

    def _encode_batch(self, texts: list[str]) -> Floats:
        found = self._function(texts)
        try:
            return np.asarray(found, np.float32)
        except (TypeError, ValueError) as error:
            rule = f"the encoder {self.name} must return an array of numbers"
            raise DataError(f"{rule}, but returns {type(found).__name__} ({error}); correct it") from error


def load_encoder(encoder: AnyEncoder, *, download: bool = True) -> Encoder:
    """Return an encoder; one with a name is loaded once in a process.

    Without ``download``, an encoder of the hub must be in its cache: a saved model is to cause no traffic.
    """
    if isinstance(encoder, Encoder):
        return encoder
    check_encoder(encoder)
    if isinstance(encoder, str):
        if encoder not in _loaded:
            _loaded[encoder] = _load(encoder, download)
        return _loaded[encoder]
    return _given(encoder) if isinstance(encoder, Hashable) else GivenEncoder(encoder)


@lru_cache(8)
def _given(function: Callable[[list[str]], Any]) -> Encoder:
    """Return a function as an encoder, which is asked for its dimension once."""
    return GivenEncoder(function)


def is_function(encoder: object) -> bool:
    """Return whether this turns texts into vectors by itself: a function, or an object with a method ``encode``."""
    return callable(encoder) or callable(getattr(encoder, "encode", None))


def check_encoder(encoder: AnyEncoder) -> None:
    """Raise an error unless this may be an encoder, and what it needs is installed."""
    if not isinstance(encoder, str):
        if not is_function(encoder):
            rule = "encoder must be a name, a folder, an encoder or a function"
            raise ParameterError(f"{rule}, but is of type {type(encoder).__name__}; give one of these")
    elif encoder == FUNCTION:
        rule = "a model with an encoder of its own must be loaded with it"
        raise ParameterError(f"{rule}, but there is none; call labelspace.load(folder, encoder=...)")
    elif encoder in PACKAGES:
        require(*PACKAGES[encoder], f"the encoder {encoder}")
    elif encoder.startswith(HUB):
        require("huggingface_hub", "hub", f"the encoder {encoder}")
    elif not Path(encoder).is_dir():
        rule = f"encoder must be one of {', '.join(PACKAGES)}, a folder, or {HUB}owner/name"
        raise ParameterError(f"{rule}, but is {encoder!r}; choose one")


def _load(name: str, download: bool) -> Encoder:
    # Imported here: networks have kernels of their own, which most commands never need.
    from labelspace.features.encoders.folder import read_folder
    from labelspace.features.encoders.granite import FILE, read_granite
    from labelspace.features.encoders.static import distilled
    from labelspace.features.encoders.transformer import TransformerEncoder

    if name == "granite":
        return read_granite(Path(require(*PACKAGES[name]).pack_dir()) / FILE)
    if name == "static":
        return distilled(cast(TransformerEncoder, load_encoder("granite")))
    if name == "minilm":
        return read_folder(Path(require(*PACKAGES[name]).get_model_path()), name)
    if name.startswith(HUB):
        return read_folder(_snapshot(name.removeprefix(HUB), download), name)
    return read_folder(Path(name), Path(name).name)


def _snapshot(repository: str, download: bool) -> Path:
    """Return the folder of ``owner/name`` or ``owner/name@revision``, from the hub's cache if it is there."""
    hub = require("huggingface_hub", "hub")
    owner_and_name, _, revision = repository.partition("@")
    try:
        options = {"revision": revision or None, "allow_patterns": HUB_FILES, "local_files_only": not download}
        return Path(hub.snapshot_download(owner_and_name, **options))
    except Exception as error:  # of the network, the hub, or the disk
        where = "downloaded, or in the cache" if download else "in the cache of the hub"
        rule = f"the encoder {HUB}{repository} must be {where}, but is not ({type(error).__name__}: {error})"
        remedy = "try again" if download else f"call labelspace.load(folder, encoder='{HUB}{repository}')"
        raise DataError(f"{rule}; {remedy}, or give a folder") from error
