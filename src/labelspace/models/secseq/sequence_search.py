"""Beam search and sampling of sequences of codes, for target ``sequence``: only codes that exist, none twice."""

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
import torch  # so import this module only after ``errors.require``
from torch import Tensor
from torch.nn.functional import pad

from labelspace.kernels.random_numbers import uniform_from_key
from labelspace.labels.codes import CodeTree
from labelspace.models.secseq.decoder import CodeDecoder, EncoderStates
from labelspace.models.secseq.objectives import MAX_LABELS, digit_mask
from labelspace.types import Floats, Longs


@dataclass
class Hypotheses:
    """Partial sequences, m per document; a, h and p as in ``decoder``."""

    log_probabilities: Tensor  # (n, m) of the sequence so far
    h: Tensor  # (n, m, decoder_dim)
    a: Tensor  # (n, m, hidden_dim)
    p: Tensor  # (n, m, decoder_dim)
    nodes: Tensor  # (n, m) the prefix of the current code
    prefix_probabilities: Tensor  # (n, m) of that prefix
    ended: Tensor  # (n, m)
    leaves: Tensor  # (n, m, MAX_LABELS) the codes so far, then -1
    leaf_probabilities: Tensor  # (n, m, MAX_LABELS) of each code given those before it

    @classmethod
    def empty(cls, decoder: CodeDecoder, n: int, m: int) -> Self:
        """Sequences without codes."""
        h, a = decoder.initial_state(n, m), torch.zeros(n, m, decoder.config.hidden_dim)
        return cls(
            torch.zeros(n, m), h, a, h, torch.zeros(n, m, dtype=torch.long), torch.ones(n, m),
            torch.zeros(n, m, dtype=torch.bool), torch.full((n, m, MAX_LABELS), -1), torch.zeros(n, m, MAX_LABELS),
        )  # fmt: skip

    def select(self, index: Tensor) -> Self:
        """These hypotheses (n, m) of each document; one may be selected several times."""
        rows = torch.arange(len(index))[:, None]
        return type(self)(*(getattr(self, field.name)[rows, index] for field in fields(self)))


def generate_sequences(
    decoder: CodeDecoder, encoder_states: EncoderStates, tree: CodeTree, m: int, seed: int | None = None
) -> tuple[Longs, Floats]:
    """Generate m sequences per document: the most probable by beam search, or, with a seed, at random.

    Returns their leaves (n, m, MAX_LABELS), -1 after the last, and the weight of each: with a beam, the probability of
    the sequence among those of the beam, times that of the code in it; with sampling, 1 / m.
    """
    beam = Hypotheses.empty(decoder, len(encoder_states.states), m)
    if seed is None:
        beam.log_probabilities[:, 1:] = -torch.inf  # all hypotheses start as one
    for n_codes in range(MAX_LABELS):
        beam.a, beam.p = decoder.attend(encoder_states, beam.h), beam.h
        beam.nodes, beam.prefix_probabilities = torch.zeros_like(beam.nodes), torch.ones_like(beam.prefix_probabilities)
        for d in range(tree.code_length):
            log_probabilities = _digit_log_probabilities(decoder, tree, beam, d, n_codes)
            if seed is None:
                continuations = (beam.log_probabilities[:, :, None] + log_probabilities).flatten(1)
                best, n_values = continuations.topk(m, 1).indices, log_probabilities.shape[2]
                index, digits = best // n_values, best % n_values
            else:
                index, digits = _sample_digits(log_probabilities, seed, n_codes * tree.code_length + d)
            chosen = log_probabilities[torch.arange(len(index))[:, None], index, digits]
            beam = beam.select(index)
            beam.log_probabilities = beam.log_probabilities + chosen
            _append_digits(beam, decoder, tree, digits, chosen.exp(), d)
        complete = (beam.nodes > 0) & ~beam.ended
        beam.leaves[:, :, n_codes] = torch.where(complete, beam.nodes, -1)
        beam.leaf_probabilities[:, :, n_codes] = torch.where(complete, beam.prefix_probabilities, 0.0)
        codes = (beam.p - beam.h).flatten(0, 1)[:, None]
        beam.h = decoder.code_states(codes, beam.h.flatten(0, 1)).view_as(beam.h)
        if bool(beam.ended.all()):
            break
    if seed is None:
        weights = beam.leaf_probabilities * beam.log_probabilities.softmax(1)[:, :, None]
    else:
        weights = (beam.leaves >= 0) / m
    return beam.leaves.numpy(), weights.numpy()


def _digit_log_probabilities(decoder: CodeDecoder, tree: CodeTree, beam: Hypotheses, d: int, n_codes: int) -> Tensor:
    """The log-probabilities of each value of digit d; the last one is the end. Shape (n, m, code_size + 1)."""
    end = decoder.config.code_size
    logits = decoder.digit_logits(beam.a, beam.p, d)
    prefixes, prefix_of = np.unique(beam.nodes.numpy(), return_inverse=True)
    mask = torch.from_numpy(digit_mask(tree, prefixes, end + 1))[prefix_of.reshape(beam.nodes.shape)]
    if d == 0:
        mask[:, :, end] = n_codes > 0
    else:
        logits = pad(logits, (0, 1))
    if n_codes:
        _mask_generated(mask, tree, beam, d, n_codes)
    log_probabilities = logits.masked_fill(~mask, -torch.inf).log_softmax(2).masked_fill(~mask, -torch.inf)
    log_probabilities[beam.ended] = -torch.inf
    log_probabilities[:, :, end][beam.ended] = 0.0
    return log_probabilities


def _mask_generated(mask: Tensor, tree: CodeTree, beam: Hypotheses, d: int, n_codes: int) -> None:
    """No code twice: mask digits that lead only to codes that are in the sequence already."""
    leaves = beam.leaves[:, :, :n_codes].numpy()
    ancestors = leaves  # at the level of digit d
    for _ in range(tree.code_length - 1 - d):
        ancestors = tree.parent[ancestors]
    first_leaf, last_leaf = ancestors, ancestors + 1
    for _ in range(tree.code_length - 1 - d):
        first_leaf, last_leaf = tree.first_child[first_leaf], tree.last_child[last_leaf - 1]
    below = (leaves >= 0) & (tree.parent[ancestors] == beam.nodes.numpy()[:, :, None])
    counts = ((ancestors[:, :, :, None] == ancestors[:, :, None]) & below[:, :, None]).sum(3)
    used_up = below & (counts >= last_leaf - first_leaf)
    rows, hypotheses, _ = np.nonzero(used_up)
    mask[rows, hypotheses, tree.digit[ancestors[used_up]]] = False


def _sample_digits(log_probabilities: Tensor, seed: int, step: int) -> tuple[Tensor, Tensor]:
    """Every hypothesis, and a digit drawn at random for it; draws depend on seed, hypothesis and step alone."""
    n, m, n_values = log_probabilities.shape
    draws = [uniform_from_key(np.uint64((seed * MAX_LABELS * 64 + step) * m + number)) for number in range(m)]
    cumulative = log_probabilities.exp().cumsum(2)
    thresholds = torch.tensor(draws, dtype=cumulative.dtype)[None, :, None] * cumulative[:, :, -1:]
    digits = (cumulative <= thresholds).sum(2).clamp(max=n_values - 1)
    return torch.arange(m).expand(n, m), digits


def _append_digits(
    beam: Hypotheses, decoder: CodeDecoder, tree: CodeTree, digits: Tensor, probabilities: Tensor, d: int
) -> None:
    """Append digit d to each hypothesis; the value after the last ends the sequence."""
    end = decoder.config.code_size
    beam.ended = beam.ended | (digits == end)
    digits = digits.clamp(max=end - 1)
    beam.p = beam.p + decoder.embed_digits(digits, d)
    beam.prefix_probabilities = beam.prefix_probabilities * probabilities
    nodes, children = beam.nodes.numpy(), np.zeros(beam.nodes.shape, np.int64)
    alive = ~beam.ended.numpy() & np.isfinite(beam.log_probabilities.numpy())
    children[alive] = tree.child(nodes[alive], digits.numpy()[alive])
    beam.nodes = torch.from_numpy(children)
