"""A pretrained T5 from a folder or the hub, as arrays; weights are read from safetensors only."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from transformers import AutoConfig, AutoTokenizer, T5ForConditionalGeneration

from labelspace.errors import ParameterError
from labelspace.models.text2text.config import GENERATION, OF_TRANSFORMERS, T5Config, own_config
from labelspace.models.text2text.t5 import T5, transformers_name
from labelspace.models.text2text.tokenization import END, START, SubwordTokenizer
from labelspace.models.text2text.training import Network
from labelspace.types import Floats

LAYER_NORM_EPSILON = 1e-6  # of our own T5
EMPTY = np.zeros((0, 0), np.float32)
# Settings of generation that this package sets. temperature, top_k and top_p are of sampling, and do_sample is refused.
OURS_TO_SET = frozenset(
    "max_length max_new_tokens pad_token_id bos_token_id eos_token_id decoder_start_token_id use_cache "
    "num_return_sequences temperature top_k top_p transformers_version _from_model_config".split()
)

# The sizes of a T5, by our names and by those of transformers.
SIZES = {
    "embedding_dim": "d_model",
    "n_heads": "num_heads",
    "head_dim": "d_kv",
    "hidden_dim": "d_ff",
    "n_encoder_layers": "num_layers",
    "n_decoder_layers": "num_decoder_layers",
    "n_distance_buckets": "relative_attention_num_buckets",
    "max_distance": "relative_attention_max_distance",
}


def load_t5(path: str) -> tuple[SubwordTokenizer, Network]:
    """Load the tokenizer and the T5 in a folder, or of that name on the hub (or in its cache, without a network)."""
    tokenizer, model = read_folder(path)
    config = model.config
    if config.feed_forward_proj not in ("relu", "gated-gelu") or config.layer_norm_epsilon != LAYER_NORM_EPSILON:
        own = f"{config.feed_forward_proj} and layer_norm_epsilon={config.layer_norm_epsilon}"
        raise _refuse(path, f"has feed-forward layers with {own}, which needs engine=transformers")
    weights, inputs, outputs = weight_arrays(model)
    net = Network(T5.from_weights(t5_sizes(config), weights), inputs, outputs)
    return tokenizer, net


def read_folder(path: str, **settings: float) -> tuple[SubwordTokenizer, Any]:
    """Read the tokenizer and transformers' T5 of a folder or name; ``settings`` change its configuration."""
    if (path.startswith(("/", ".", "~")) or path.count("/") > 1) and not Path(path).is_dir():
        raise _refuse(path, "is no folder")
    try:
        # B615 asks for a pinned revision: the user names the model; its weights are safetensors, none of its code runs.
        with silent():
            config: Any = AutoConfig.from_pretrained(path, trust_remote_code=False, **settings)  # nosec B615
            if config.model_type != "t5":
                raise _refuse(path, f"is a {config.model_type}")
            start, end = config.decoder_start_token_id, config.eos_token_id
            if (start or 0, end) != (START, END):
                raise _refuse(path, f"starts with token {start} and ends with {end}")
            model: Any = T5ForConditionalGeneration.from_pretrained(  # nosec B615
                path, config=config, use_safetensors=True, dtype="float32", trust_remote_code=False
            )
            tokenizer: Any = AutoTokenizer.from_pretrained(path, use_fast=True, trust_remote_code=False)  # nosec B615
            json = tokenizer.backend_tokenizer.to_str()
    except ParameterError:
        raise
    except Exception as error:  # the package, the hub or a file may raise anything: its first line is the reason
        raise _refuse(path, f"cannot be read ({(str(error).splitlines() or [type(error).__name__])[0]})") from error
    return SubwordTokenizer(np.frombuffer(json.encode("utf-8"), np.uint8)), model


def t5_sizes(config: Any) -> T5Config:  # noqa: ANN401 - of transformers
    """Convert the configuration of transformers to ours."""
    scaled_output = getattr(config, "scale_decoder_outputs", config.tie_word_embeddings)
    sizes = {ours: getattr(config, theirs) for ours, theirs in SIZES.items()}
    return T5Config(gated=config.is_gated_act, scaled_output=scaled_output, **sizes)


def weight_shapes(sizes: T5Config) -> dict[str, torch.Size]:
    """Return the shapes of the weights in the order of our T5, by the names that transformers gives to them."""
    with torch.device("meta"):  # no numbers are drawn
        parameters = list(T5(sizes).named_parameters())
    return {transformers_name(name, sizes.gated): weights.shape for name, weights in parameters}


def weight_arrays(model: Any) -> tuple[Floats, Floats, Floats]:  # noqa: ANN401 - of transformers
    """Return the weights in the order of our T5, the token embeddings, and the output embeddings, (0, 0) if tied."""
    weights = {name: tensor.float().numpy() for name, tensor in model.state_dict().items()}
    sizes = t5_sizes(model.config)
    inputs, outputs = weights["shared.weight"], weights["lm_head.weight"]
    tied = np.array_equal(outputs, inputs)
    flat = np.concatenate([weights[name].ravel() for name in weight_shapes(sizes)])
    return flat, inputs, EMPTY if tied else outputs


def load_generator(path: str, dropout: float) -> tuple[SubwordTokenizer, Any, dict[str, Any]]:
    """Load the tokenizer and transformers' T5 of a folder or name, and its configuration with generation settings."""
    tokenizer, model = read_folder(path, dropout_rate=dropout)
    given = model.generation_config.to_dict()
    given = {key: value for key, value in given.items() if value not in (None, False) and key not in OURS_TO_SET}
    unknown = [key for key, value in given.items() if key not in GENERATION or not GENERATION[key].holds(value)]
    if unknown:
        known = ", ".join(GENERATION)
        raise _refuse(path, f"generates with {unknown[0]}={given[unknown[0]]!r}, and may set only {known}")
    extra = {key: getattr(model.config, key) for key in OF_TRANSFORMERS}
    unknown = [key for key, constraint in OF_TRANSFORMERS.items() if not constraint.holds(extra[key])]
    if unknown:
        raise _refuse(path, f"has {unknown[0]}={extra[unknown[0]]!r}")
    return tokenizer, model, {**asdict(t5_sizes(model.config)), **extra, "generation": given}


def build_t5(saved: Mapping[str, Any], weights: Floats, inputs: Floats, outputs: Floats) -> Any:  # noqa: ANN401
    """Build transformers' T5 with a saved configuration and weights."""
    sizes = own_config(saved)
    t5_config: Any = transformers.T5Config
    config: Any = t5_config(
        vocab_size=len(inputs),
        dropout_rate=0.0,
        tie_word_embeddings=sizes.scaled_output,
        decoder_start_token_id=START,
        **{theirs: saved[ours] for ours, theirs in SIZES.items()},
        **{key: saved[key] for key in OF_TRANSFORMERS},
    )
    with torch.random.fork_rng(devices=[]):  # the random weights are replaced
        model: Any = T5ForConditionalGeneration(config)
    if outputs.size:
        model.lm_head.weight = torch.nn.Parameter(torch.from_numpy(outputs.copy()))
    own, shapes = dict(model.named_parameters()), weight_shapes(sizes)
    with torch.no_grad():
        own["shared.weight"].copy_(torch.from_numpy(inputs))
        ends = np.cumsum([shape.numel() for shape in shapes.values()])
        for (name, shape), part in zip(shapes.items(), np.split(weights, ends[:-1]), strict=True):
            own[name].copy_(torch.from_numpy(part).view(shape))
    return model.eval().requires_grad_(False)


def _refuse(path: str, reason: str) -> ParameterError:
    return ParameterError(
        f"pretrained must be a folder or the name of a T5 with its tokenizer and weights in safetensors, but {path!r} "
        f"{reason}; give one that transformers' save_pretrained wrote, or leave pretrained out"
    )


@contextmanager
def silent() -> Iterator[None]:
    """Suppress the progress bars and warnings of transformers and the hub."""
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
