"""The architecture of a T5, and the settings that are saved with it; this module does not import torch."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from labelspace.estimator.parameter_constraints import Constraint, boolean, integer, one_of, real

USUAL_BATCH_SIZE = 64
FOLDER_OR_NAME = Constraint("a folder or the name of a T5", lambda value: isinstance(value, str) and value != "")


@dataclass(frozen=True)
class T5Config:
    """The architecture."""

    embedding_dim: int
    n_heads: int
    head_dim: int
    hidden_dim: int  # of feed-forward layers
    n_encoder_layers: int
    n_decoder_layers: int
    gated: bool = False  # T5 1.1 and later: gated gelu instead of relu
    scaled_output: bool = True  # decoder outputs are multiplied by embedding_dim^-0.5
    n_distance_buckets: int = 32  # of relative positions
    max_distance: int = 128

    @property
    def n_weights(self) -> int:
        """Return the number of weights of a ``T5``, without its token embeddings."""
        dim = self.embedding_dim
        attention = dim + 4 * dim * self.n_heads * self.head_dim
        feed_forward = dim + (2 + self.gated) * dim * self.hidden_dim
        encoder = self.n_encoder_layers * (attention + feed_forward)
        decoder = self.n_decoder_layers * (2 * attention + feed_forward)
        return encoder + decoder + 2 * self.n_distance_buckets * self.n_heads + 2 * dim


def own_config(saved: Mapping[str, Any]) -> T5Config:
    """Return the sizes in a saved configuration, of either engine."""
    return T5Config(**{field.name: saved[field.name] for field in fields(T5Config)})


ACTIVATIONS = ("relu", "gelu", "gelu_new", "silu")
OF_TRANSFORMERS = {
    "feed_forward_proj": one_of(*ACTIVATIONS, *(f"gated-{name}" for name in ACTIVATIONS)),
    "layer_norm_epsilon": real(above=0, below=1),
}
"""What the configuration of transformers says beyond the sizes."""

GENERATION = {
    "num_beams": integer(1, at_most=1000),
    "length_penalty": real(at_least=-100, at_most=100),
    "early_stopping": one_of(True, False, "never"),
    "no_repeat_ngram_size": integer(0),
    "encoder_no_repeat_ngram_size": integer(0),
    "repetition_penalty": real(above=0),
    "encoder_repetition_penalty": real(above=0),
    "min_length": integer(0),
    "min_new_tokens": integer(0),
    "renormalize_logits": boolean(),
}
"""The settings of transformers' generation that a pretrained model may bring along."""


def _has_sizes(value: Any) -> bool:  # noqa: ANN401 - whatever was saved
    if not isinstance(value, dict) or value.keys() != {field.name for field in fields(T5Config)}:
        return False
    flags = ("gated", "scaled_output")
    known = all((boolean() if key in flags else integer(1)).holds(number) for key, number in value.items())
    return known and 4 <= value["n_distance_buckets"] < value["max_distance"]


def _is_of_transformers(value: Any) -> bool:  # noqa: ANN401 - whatever was saved
    if not isinstance(value, dict) or not isinstance(value.get("generation"), dict):
        return False
    sizes = {key: number for key, number in value.items() if key not in (*OF_TRANSFORMERS, "generation")}
    return (
        _has_sizes(sizes)
        and all(constraint.holds(value.get(key)) for key, constraint in OF_TRANSFORMERS.items())
        and all(key in GENERATION and GENERATION[key].holds(setting) for key, setting in value["generation"].items())
        and value["gated"] == value["feed_forward_proj"].startswith("gated-")
    )


T5_CONFIG = Constraint("the sizes of a T5", lambda value: _has_sizes(value) or _is_of_transformers(value))
