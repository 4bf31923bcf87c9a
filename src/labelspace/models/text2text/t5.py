"""T5 (Raffel et al., 2020): an encoder-decoder transformer with relative positions.

It is written out here because constrained decoding needs more than the ``generate`` of ``transformers``: dropout from a
generator of its own, probabilities over the tokens that may follow and no others, in training too, and many prefixes of
one document at once (``engine=transformers`` uses that package, several times slower in decoding).
``transformers_name`` maps our names of weights to those of that package, and tests compare the two networks.
"""

import math
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, relu
from torch.nn.utils import vector_to_parameters

from labelspace.models.text2text.config import T5Config

KeysValues = tuple[Tensor, Tensor]  # keys and values of attention, each (n, n_heads, length, head_dim)


class Dropout:
    """Dropout whose mask is drawn from ``rng``; off while ``rng`` is None."""

    def __init__(self) -> None:
        self.p = 0.0  # in steps of 1/256: a byte is drawn per unit
        self.rng: np.random.Generator | None = None

    def __call__(self, x: Tensor) -> Tensor:
        """Set some units to 0, and scale the others up to the same mean."""
        dropped = round(256 * self.p)
        if self.rng is None or not dropped:
            return x
        drawn = np.frombuffer(self.rng.bytes(x.numel()), np.uint8).reshape(x.shape)
        return x * torch.from_numpy(drawn >= dropped) * (256 / (256 - dropped))


class RMSNorm(nn.Module):
    """Root mean square normalization with a weight per unit."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        """Normalize x. Shape (..., dim) in and out."""
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Attention(nn.Module):
    """Multi-head attention; the first layer of encoder and decoder holds the biases of relative positions."""

    def __init__(self, config: T5Config, dropout: Dropout, has_position_bias: bool = False) -> None:
        super().__init__()
        self.n_heads, self.dropout = config.n_heads, dropout
        inner = config.n_heads * config.head_dim
        self.norm = RMSNorm(config.embedding_dim)
        self.q, self.k, self.v = (nn.Linear(config.embedding_dim, inner, bias=False) for _ in range(3))
        self.o = nn.Linear(inner, config.embedding_dim, bias=False)
        if has_position_bias:
            self.position_bias = nn.Embedding(config.n_distance_buckets, config.n_heads)

    def keys_values(self, x: Tensor) -> KeysValues:
        """Return the keys and values of tokens (n, length, embedding_dim)."""
        return self._split_heads(self.k(x)), self._split_heads(self.v(x))

    def forward(self, x: Tensor, keys_values: KeysValues, bias: Tensor) -> Tensor:
        """Let normed queries (n, length, embedding_dim) attend to keys; the bias is added to the attention scores."""
        keys, values = keys_values
        scores = self._split_heads(self.q(x)) @ keys.transpose(2, 3) + bias  # (n, n_heads, length, n_keys)
        attended = self.dropout(scores.softmax(-1)) @ values
        return self.dropout(self.o(attended.transpose(1, 2).flatten(2)))

    def _split_heads(self, x: Tensor) -> Tensor:
        """Reshape (n, length, n_heads * head_dim) to (n, n_heads, length, head_dim)."""
        return x.view(*x.shape[:2], self.n_heads, -1).transpose(1, 2)


class FeedForward(nn.Module):
    """Two linear layers, applied to each token."""

    def __init__(self, config: T5Config, dropout: Dropout) -> None:
        super().__init__()
        dim, hidden = config.embedding_dim, config.hidden_dim
        self.dropout = dropout
        self.norm = RMSNorm(dim)
        self.gate = nn.Linear(dim, hidden, bias=False) if config.gated else None
        self.wi = nn.Linear(dim, hidden, bias=False)
        self.wo = nn.Linear(hidden, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Transform each token by itself. Shape (..., embedding_dim) in and out."""
        x = self.norm(x)
        hidden = relu(self.wi(x)) if self.gate is None else gelu(self.gate(x), approximate="tanh") * self.wi(x)
        return self.dropout(self.wo(self.dropout(hidden)))


class Layer(nn.Module):
    """Self-attention, cross-attention to the document (decoder only), feed-forward; each with a residual connection."""

    def __init__(self, config: T5Config, dropout: Dropout, first: bool, is_decoder: bool) -> None:
        super().__init__()
        self.self_attention = Attention(config, dropout, first)
        self.cross_attention = Attention(config, dropout) if is_decoder else None
        self.feed_forward = FeedForward(config, dropout)

    def forward(
        self, x: Tensor, bias: Tensor, document: tuple[KeysValues, Tensor] | None = None, past: KeysValues | None = None
    ) -> tuple[Tensor, KeysValues]:
        """Return the output for tokens (n, length, embedding_dim), and the keys and values of past and these tokens."""
        normed = self.self_attention.norm(x)
        keys, values = self.self_attention.keys_values(normed)
        if past is not None:
            keys, values = torch.cat([past[0], keys], 2), torch.cat([past[1], values], 2)
        x = x + self.self_attention(normed, (keys, values), bias)
        if self.cross_attention is not None and document is not None:
            x = x + self.cross_attention(self.cross_attention.norm(x), *document)
        return x + self.feed_forward(x), (keys, values)


class EncodedDocuments(NamedTuple):
    """Encoder outputs: keys and values for the cross-attention of each decoder layer, and the padding mask."""

    keys_values: list[KeysValues]
    mask: Tensor  # (n, 1, 1, length): 0, or -inf for padding

    def take(self, rows: Tensor) -> Self:
        """Return some documents, perhaps repeated."""
        keys_values = [(keys[rows], values[rows]) for keys, values in self.keys_values]
        return self._replace(keys_values=keys_values, mask=self.mask[rows])


class T5(nn.Module):
    """Encoder and decoder without the token embeddings: a step touches few rows of those."""

    def __init__(self, config: T5Config) -> None:
        super().__init__()
        self.config, self.dropout = config, Dropout()
        dim, dropout = config.embedding_dim, self.dropout
        self.encoder = nn.ModuleList(Layer(config, dropout, i == 0, False) for i in range(config.n_encoder_layers))
        self.encoder_norm = RMSNorm(dim)
        self.decoder = nn.ModuleList(Layer(config, dropout, i == 0, True) for i in range(config.n_decoder_layers))
        self.decoder_norm = RMSNorm(dim)

    @classmethod
    def from_weights(cls, config: T5Config, weights: npt.NDArray[np.floating]) -> Self:
        """Build a T5 with these weights (n_weights,), in the order of its parameters."""
        net = cls(config)
        vector_to_parameters(torch.from_numpy(weights.astype(np.float32)), net.parameters())
        return net

    def init_weights(self, rng: np.random.Generator) -> None:
        """Draw random weights as T5 initializes them, from ``rng`` only."""
        with torch.no_grad():
            for name, weights in self.named_parameters():
                if weights.ndim == 1:
                    continue
                std = weights.shape[1] ** -0.5
                if name.endswith(".q.weight"):
                    std *= self.config.head_dim**-0.5
                if name.endswith(".position_bias.weight"):
                    std = self.config.embedding_dim**-0.5
                weights.copy_(torch.from_numpy(std * rng.standard_normal(weights.shape, np.float32)))

    def encode(self, embedded: Tensor, is_token: Tensor) -> EncodedDocuments:
        """Encode documents by token embeddings (n, length, embedding_dim); ``is_token`` (n, length) is not padding."""
        mask = torch.zeros(is_token.shape).masked_fill(~is_token, -torch.inf)[:, None, None]
        positions = torch.arange(is_token.shape[1])
        bias = self._position_bias(self.encoder, positions - positions[:, None], True) + mask
        x = self.dropout(embedded)
        for layer in self.encoder:
            x, _ = layer(x, bias)
        x = self.dropout(self.encoder_norm(x))
        keys_values = [layer.cross_attention.keys_values(x) for layer in self.decoder]  # type: ignore[union-attr, operator]
        return EncodedDocuments(keys_values, mask)

    def decode(
        self, embedded: Tensor, documents: EncodedDocuments, past: list[KeysValues] | None = None
    ) -> tuple[Tensor, list[KeysValues]]:
        """Return the decoder's outputs for tokens that follow ``past`` ones, and the keys and values of all, by layer.

        Inner products with output embeddings are the logits of the next token. Shape (n, length, embedding_dim), in
        and out.
        """
        length, n_past = embedded.shape[1], 0 if past is None else past[0][0].shape[2]
        distance = torch.arange(n_past + length) - torch.arange(n_past, n_past + length)[:, None]
        bias = self._position_bias(self.decoder, distance, False).masked_fill(distance > 0, -torch.inf)
        x, cache = self.dropout(embedded), []
        for i, layer in enumerate(self.decoder):
            document = documents.keys_values[i], documents.mask
            x, keys_values = layer(x, bias, document, None if past is None else past[i])
            cache.append(keys_values)
        x = self.dropout(self.decoder_norm(x))
        return (x * self.config.embedding_dim**-0.5 if self.config.scaled_output else x), cache

    def _position_bias(self, layers: nn.ModuleList, distance: Tensor, bidirectional: bool) -> Tensor:
        """Return the attention bias by relative position, shared by all layers. Shape (1, n_heads, *distance.shape)."""
        buckets = distance_buckets(distance, bidirectional, self.config.n_distance_buckets, self.config.max_distance)
        return layers[0].self_attention.position_bias(buckets).permute(2, 0, 1)[None]  # type: ignore[union-attr, operator, no-any-return]


def distance_buckets(distance: Tensor, bidirectional: bool, n_buckets: int, max_distance: int) -> Tensor:
    """Return the bucket of each relative position: one per small distance, then logarithmic.

    Later tokens have buckets of their own if ``bidirectional``, and bucket 0 otherwise.

    >>> distance_buckets(torch.tensor([-40, -2, 0, 3]), bidirectional=False, n_buckets=8, max_distance=16).tolist()
    [7, 2, 0, 0]
    """
    first = torch.zeros_like(distance)
    if bidirectional:
        n_buckets //= 2
        first = (distance > 0) * n_buckets
    far = distance.abs() if bidirectional else (-distance).clamp(min=0)
    exact = n_buckets // 2
    log_ratio = torch.log(far.clamp(min=1) / exact) / math.log(max_distance / exact)
    wide = exact + (log_ratio * (n_buckets - exact)).long()
    return first + torch.where(far < exact, far, wide.clamp(max=n_buckets - 1))


def transformers_name(name: str, gated: bool) -> str:
    """Return the name that ``transformers`` gives to a weight of ours.

    >>> transformers_name("decoder.3.cross_attention.q.weight", gated=False)
    'decoder.block.3.layer.1.EncDecAttention.q.weight'
    """
    if name in ("encoder_norm.weight", "decoder_norm.weight"):
        return name.replace("_norm", ".final_layer_norm")
    stack, layer, part, rest = name.split(".", 3)
    sublayer, module = {
        "self_attention": (0, "SelfAttention"),
        "cross_attention": (1, "EncDecAttention"),
        "feed_forward": (1 if stack == "encoder" else 2, "DenseReluDense"),
    }[part]
    if gated:
        rest = rest.replace("gate.", "wi_0.").replace("wi.", "wi_1.")
    rest = rest.replace("position_bias.", "relative_attention_bias.")
    rest = rest.replace("norm.", "layer_norm.") if rest.startswith("norm.") else f"{module}.{rest}"
    return f"{stack}.block.{layer}.layer.{sublayer}.{rest}"
