"""A T5 that others have trained, from a folder or the hub, as arrays of ours; weights are read from safetensors alone.

This module needs torch and transformers: import it only where ``errors.require`` has been asked.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import transformers
from transformers import AutoConfig, AutoTokenizer, T5ForConditionalGeneration

from labelspace.errors import ParameterError
from labelspace.models.text2text.subwords import Pieces
from labelspace.models.text2text.t5 import END, START, T5, Shape, published_name
from labelspace.types import Floats


@dataclass(frozen=True)
class Pretrained:
    """What is taken over."""

    shape: Shape
    weights: Floats  # (n_weights,) in the order of T5's parameters
    vectors: Floats  # (n_tokens, dimension)
    outputs: Floats  # (n_tokens, dimension) where tokens are scored by others; else (0, 0)
    pieces: Pieces


def load_t5(where: str) -> Pretrained:
    """The T5 in a folder, or of that name on the hub (or in its cache, where there is no network)."""
    if (where.startswith(("/", ".", "~")) or where.count("/") > 1) and not Path(where).is_dir():
        raise _refused(where, "is no folder")
    try:
        with _quiet():
            config: Any = AutoConfig.from_pretrained(where)
            if config.model_type != "t5":
                raise _refused(where, f"is a {config.model_type}")
            if (config.decoder_start_token_id or 0, config.eos_token_id) != (START, END):
                raise _refused(
                    where, f"begins with token {config.decoder_start_token_id}, ends with {config.eos_token_id}"
                )
            model: Any = T5ForConditionalGeneration.from_pretrained(where, use_safetensors=True, dtype="float32")
            tokenizer: Any = AutoTokenizer.from_pretrained(where, use_fast=True)
            json = tokenizer.backend_tokenizer.to_str()
    except ParameterError:
        raise
    except Exception as error:  # whatever the package, the hub or a file has to say, in its first line
        raise _refused(where, f"cannot be read ({(str(error).splitlines() or [type(error).__name__])[0]})") from error
    found = {name: weights.float().numpy() for name, weights in model.state_dict().items()}
    shape = Shape(
        config.d_model, config.num_heads, config.d_kv, config.d_ff, config.num_layers, config.num_decoder_layers,
        gated=config.is_gated_act, scaled=getattr(config, "scale_decoder_outputs", config.tie_word_embeddings),
        buckets=config.relative_attention_num_buckets, farthest=config.relative_attention_max_distance,
    )  # fmt: skip
    names = [published_name(name, shape.gated) for name, _ in T5(shape).named_parameters()]
    tied = np.array_equal(found["lm_head.weight"], found["shared.weight"])
    return Pretrained(
        shape,
        np.concatenate([found[name].ravel() for name in names]),
        found["shared.weight"],
        np.zeros((0, 0), np.float32) if tied else found["lm_head.weight"],
        Pieces(np.frombuffer(json.encode("utf-8"), np.uint8)),
    )


def _refused(where: str, what: str) -> ParameterError:
    return ParameterError(
        f"pretrained must be a folder or the name of a T5 with its tokenizer and weights in safetensors, but {where!r} "
        f"{what}; give one that transformers' save_pretrained wrote, or leave pretrained out"
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the bars and warnings of transformers and the hub."""
    ours: Any = transformers.utils.logging
    hub = logging.getLogger("huggingface_hub")
    shown, level, hub_level = ours.is_progress_bar_enabled(), ours.get_verbosity(), hub.level
    ours.disable_progress_bar()
    ours.set_verbosity_error()
    hub.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        hub.setLevel(hub_level)
        ours.set_verbosity(level)
        if shown:
            ours.enable_progress_bar()
