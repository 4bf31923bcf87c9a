"""A transformer encoder in ONNX, run by onnxruntime."""

from pathlib import Path
from typing import Any

import numpy as np

from labelspace.errors import DataError, require
from labelspace.features.encoders.base import Encoder
from labelspace.kernels.threads import n_threads
from labelspace.types import Floats

EXTRA = "onnx"
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class OnnxEncoder(Encoder):
    """A graph that turns token ids into a vector for each token, or for the text."""

    def __init__(
        self,
        name: str,
        sha256: str,
        path: Path,
        tokenizer: Any,  # noqa: ANN401 - of the package tokenizers
        pools_mean: bool,
        max_length: int,
    ) -> None:
        library = require("onnxruntime", EXTRA, "an encoder in ONNX")
        options = library.SessionOptions()
        options.intra_op_num_threads = n_threads()
        options.log_severity_level = 4  # what it prints otherwise is raised as an error too
        try:
            self._session = library.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the package raises nothing narrower
            raise ValueError(f"{path.name}: {error}") from error
        self._inputs = [given.name for given in self._session.get_inputs()]
        if not set(self._inputs) <= set(INPUTS):
            raise ValueError(f"its inputs must be among {', '.join(INPUTS)}, but are {', '.join(self._inputs)}")
        tokenizer.enable_padding(pad_id=0)
        tokenizer.enable_truncation(max_length)
        self.name, self.sha256, self._tokenizer, self._pools_mean = name, sha256, tokenizer, pools_mean
        self.embedding_dim = self._run(["a"]).shape[1]

    def _encode_batch(self, texts: list[str]) -> Floats:
        return self._run(texts)

    def _run(self, texts: list[str]) -> Floats:
        encoded = self._tokenizer.encode_batch(texts)
        mask = np.array([each.attention_mask for each in encoded], np.int64)
        ids = np.array([each.ids for each in encoded], np.int64)
        given = dict(zip(INPUTS, (ids, mask, np.zeros_like(ids)), strict=True))
        try:
            out = self._session.run(None, {key: given[key] for key in self._inputs})[0]
        except Exception as error:  # the package raises nothing narrower
            rule = f"the encoder {self.name} must run, but its graph fails"
            raise DataError(f"{rule} ({error}); give the tokenizer and the graph of one encoder") from error
        if out.ndim == 2:  # a vector for each text
            return np.asarray(out, np.float32)
        if out.ndim != 3:
            raise ValueError(f"its first output must have a vector for each token or text, but has shape {out.shape}")
        if not self._pools_mean:
            return np.asarray(out[:, 0], np.float32)
        weights = mask[:, :, None].astype(np.float32)
        return np.asarray((out * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1), np.float32)
