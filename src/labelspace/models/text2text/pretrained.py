"""A pretrained T5 from a folder or the hub, as arrays; weights are read from safetensors only."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import transformers
from transformers import AutoConfig, AutoTokenizer, T5ForConditionalGeneration

from labelspace.errors import ParameterError
from labelspace.models.text2text.config import T5Config
from labelspace.models.text2text.subwords import SubwordTokenizer
from labelspace.models.text2text.t5 import END, START, T5, transformers_name
from labelspace.models.text2text.training import Network


def load_t5(path: str) -> tuple[SubwordTokenizer, Network]:
    """The tokenizer and the T5 in a folder, or of that name on the hub (or in its cache, without a network)."""
    if (path.startswith(("/", ".", "~")) or path.count("/") > 1) and not Path(path).is_dir():
        raise _refuse(path, "is no folder")
    try:
        # B615 asks for a pinned revision: the user names the model; its weights are safetensors, none of its code runs.
        with _silent():
            config: Any = AutoConfig.from_pretrained(path, trust_remote_code=False)  # nosec B615
            if config.model_type != "t5":
                raise _refuse(path, f"is a {config.model_type}")
            start, end = config.decoder_start_token_id, config.eos_token_id
            if (start or 0, end) != (START, END):
                raise _refuse(path, f"starts with token {start} and ends with {end}")
            model: Any = T5ForConditionalGeneration.from_pretrained(  # nosec B615
                path, use_safetensors=True, dtype="float32"
            )
            tokenizer: Any = AutoTokenizer.from_pretrained(path, use_fast=True, trust_remote_code=False)  # nosec B615
            json = tokenizer.backend_tokenizer.to_str()
    except ParameterError:
        raise
    except Exception as error:  # whatever the package, the hub or a file raises, in its first line
        raise _refuse(path, f"cannot be read ({(str(error).splitlines() or [type(error).__name__])[0]})") from error
    weights = {name: tensor.float().numpy() for name, tensor in model.state_dict().items()}
    ours = T5Config(
        config.d_model, config.num_heads, config.d_kv, config.d_ff, config.num_layers, config.num_decoder_layers,
        gated=config.is_gated_act, scaled_output=getattr(config, "scale_decoder_outputs", config.tie_word_embeddings),
        n_distance_buckets=config.relative_attention_num_buckets, max_distance=config.relative_attention_max_distance,
    )  # fmt: skip
    names = [transformers_name(name, ours.gated) for name, _ in T5(ours).named_parameters()]
    t5 = T5.from_weights(ours, np.concatenate([weights[name].ravel() for name in names]))
    inputs, outputs = weights["shared.weight"], weights["lm_head.weight"]
    net = Network(t5, inputs, np.zeros((0, 0), np.float32) if np.array_equal(outputs, inputs) else outputs)
    return SubwordTokenizer(np.frombuffer(json.encode("utf-8"), np.uint8)), net


def _refuse(path: str, reason: str) -> ParameterError:
    return ParameterError(
        f"pretrained must be a folder or the name of a T5 with its tokenizer and weights in safetensors, but {path!r} "
        f"{reason}; give one that transformers' save_pretrained wrote, or leave pretrained out"
    )


@contextmanager
def _silent() -> Iterator[None]:
    """Without the progress bars and warnings of transformers and the hub."""
    settings: Any = transformers.utils.logging
    hub = logging.getLogger("huggingface_hub")
    has_bar, level, hub_level = settings.is_progress_bar_enabled(), settings.get_verbosity(), hub.level
    settings.disable_progress_bar()
    settings.set_verbosity_error()
    hub.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        hub.setLevel(hub_level)
        settings.set_verbosity(level)
        if has_bar:
            settings.enable_progress_bar()
