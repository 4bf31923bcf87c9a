"""The architecture of a T5; torch is not needed to know it."""

from dataclasses import dataclass, fields
from typing import Any

from labelspace.parameter_constraints import Constraint, boolean, integer

USUAL_BATCH_SIZE = 64


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
        """The number of weights of a ``T5``, without its token embeddings."""
        dim = self.embedding_dim
        attention = dim + 4 * dim * self.n_heads * self.head_dim
        feed_forward = dim + (2 + self.gated) * dim * self.hidden_dim
        encoder = self.n_encoder_layers * (attention + feed_forward)
        decoder = self.n_decoder_layers * (2 * attention + feed_forward)
        return encoder + decoder + 2 * self.n_distance_buckets * self.n_heads + 2 * dim


def _holds(value: Any) -> bool:  # noqa: ANN401 - whatever was saved
    if not isinstance(value, dict) or value.keys() != {field.name for field in fields(T5Config)}:
        return False
    flags = ("gated", "scaled_output")
    known = all((boolean() if key in flags else integer(1)).holds(number) for key, number in value.items())
    return known and 4 <= value["n_distance_buckets"] < value["max_distance"]


T5_CONFIG = Constraint("the sizes of a T5", _holds)
