"""Beam search and sampling of sequences for target ``sequence``: of codes that exist, none twice, or of any digits."""

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
import torch  # so import this module only after ``errors.require``
from torch import Tensor
from torch.nn.functional import pad

from labelspace.kernels.random_numbers import uniform_from_key
from labelspace.labels.codes import CodeTree
from labelspace.models.secseq.config import MAX_SEQUENCE
from labelspace.models.secseq.network import EncoderStates, SequenceDecoder
from labelspace.models.secseq.objectives import digit_mask
from labelspace.types import Floats, Longs

STEP_KEYS = 3200  # steps of a seed with random numbers of their own; later steps share those of the next seed


@dataclass
class Hypotheses:
    """Partial sequences, m per document."""

    log_probabilities: Tensor  # (n, m) of the sequence so far
    states: tuple[Tensor, ...]  # of the decoder, each (n, m, dim)
    nodes: Tensor  # (n, m) the prefix of the current code
    prefix_probabilities: Tensor  # (n, m) of that prefix
    ended: Tensor  # (n, m)
    leaves: Tensor  # (n, m, codes so far) the codes, then -1
    leaf_probabilities: Tensor  # (n, m, codes so far) of each code given those before it

    @classmethod
    def empty(cls, decoder: SequenceDecoder, encoder_states: EncoderStates, m: int) -> Self:
        """Start sequences without codes."""
        zeros = torch.zeros(len(encoder_states.states), m)
        no_codes = torch.zeros(*zeros.shape, 0)
        states = decoder.start(encoder_states, m)
        return cls(zeros, states, zeros.long(), torch.ones_like(zeros), zeros.bool(), no_codes.long(), no_codes)

    def select(self, index: Tensor) -> Self:
        """Return these hypotheses (n, m) of each document; one may be selected several times."""
        rows = torch.arange(len(index))[:, None]
        names = [part.name for part in fields(self) if part.name != "states"]
        states = tuple(state[rows, index] for state in self.states)
        return type(self)(states=states, **{name: getattr(self, name)[rows, index] for name in names})


def generate_sequences(
    decoder: SequenceDecoder,
    encoder_states: EncoderStates,
    tree: CodeTree,
    m: int,
    seed: int | None = None,
    max_sequence: int = MAX_SEQUENCE,
    count: bool = False,
) -> tuple[Longs, Floats]:
    """Generate m sequences per document: the most probable by beam search, or, with a seed, at random.

    Codes exist, and none occurs twice. Return the leaves of the sequences (n, m, codes), at most ``max_sequence`` and
    -1 after the last, and the weight of each leaf: see ``leaf_weights``.
    """
    beam = Hypotheses.empty(decoder, encoder_states, m)
    if seed is None:
        beam.log_probabilities[:, 1:] = -torch.inf  # all hypotheses start as one
    for n_codes in range(max_sequence):
        beam.nodes, beam.prefix_probabilities = torch.zeros_like(beam.nodes), torch.ones_like(beam.prefix_probabilities)
        for d in range(tree.code_length):
            log_probabilities = _digit_log_probabilities(decoder, tree, beam, d, n_codes)
            if seed is None:
                index, digits = best_continuations(beam.log_probabilities, log_probabilities)
            else:
                index, digits = sample_digits(log_probabilities, seed, n_codes * tree.code_length + d)
            chosen = log_probabilities[torch.arange(len(index))[:, None], index, digits]
            beam = beam.select(index)
            beam.log_probabilities = beam.log_probabilities + chosen
            _append_digits(beam, decoder, encoder_states, tree, digits, chosen.exp(), d)
        complete = (beam.nodes > 0) & ~beam.ended
        leaves = torch.where(complete, beam.nodes, -1)[:, :, None]
        beam.leaves = torch.cat([beam.leaves, leaves], 2)
        probabilities = torch.where(complete, beam.prefix_probabilities, 0.0)[:, :, None]
        beam.leaf_probabilities = torch.cat([beam.leaf_probabilities, probabilities], 2)
        if bool(beam.ended.all()):
            break
    weights = leaf_weights(beam.leaves, beam.leaf_probabilities, beam.log_probabilities, seed is not None, count)
    return beam.leaves.numpy(), weights.numpy()


def leaf_weights(
    leaves: Tensor, probabilities: Tensor, log_probabilities: Tensor, sampled: bool, count: bool
) -> Tensor:
    """Weight each leaf (n, m, codes) in m sequences with these log-probabilities (n, m); 0 for no leaf.

    With ``count`` each leaf weighs 1. Otherwise it weighs 1 / m if the sequences are samples; in a beam, the
    probability of the sequence among those of the beam, times the probability of the code in the sequence.
    """
    if count:
        return ((leaves >= 0) & log_probabilities.isfinite()[:, :, None]).float()
    if sampled:
        return (leaves >= 0) / leaves.shape[1]
    return probabilities * log_probabilities.softmax(1)[:, :, None]


def best_continuations(log_probabilities: Tensor, of_digits: Tensor) -> tuple[Tensor, Tensor]:
    """Return the m best continuations of m sequences (n, m) by a digit (n, m, values): sequence and digit, (n, m)."""
    continuations, n_values = (log_probabilities[:, :, None] + of_digits).flatten(1), of_digits.shape[2]
    best = continuations.topk(log_probabilities.shape[1], 1).indices
    return best // n_values, best % n_values


def _digit_log_probabilities(
    decoder: SequenceDecoder, tree: CodeTree, beam: Hypotheses, d: int, n_codes: int
) -> Tensor:
    """Return the log-probabilities of each value of digit d; the last value is the end. Shape (n, m, code_size + 1)."""
    end = decoder.config.code_size
    logits = decoder.next_logits(beam.states, d)
    prefixes, prefix_of = np.unique(beam.nodes.numpy(), return_inverse=True)
    mask = torch.from_numpy(digit_mask(tree, prefixes, end + 1))[prefix_of.reshape(beam.nodes.shape)]
    if d == 0:
        mask[:, :, end] = n_codes > 0
    logits = pad(logits, (0, end + 1 - logits.shape[2]))  # the end is no value of every digit
    if n_codes:
        _mask_generated(mask, tree, beam, d, n_codes)
    log_probabilities = logits.masked_fill(~mask, -torch.inf).log_softmax(2).masked_fill(~mask, -torch.inf)
    log_probabilities[beam.ended] = -torch.inf
    log_probabilities[:, :, end][beam.ended] = 0.0
    return log_probabilities


def _mask_generated(mask: Tensor, tree: CodeTree, beam: Hypotheses, d: int, n_codes: int) -> None:
    """Mask digits that lead only to codes that are in the sequence already, so that no code occurs twice."""
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


def sample_digits(log_probabilities: Tensor, seed: int, step: int) -> tuple[Tensor, Tensor]:
    """Draw a digit for every hypothesis; draws depend only on the seed, the hypothesis and the step."""
    n, m, n_values = log_probabilities.shape
    draws = [uniform_from_key(np.uint64((seed * STEP_KEYS + step) * m + number)) for number in range(m)]
    cumulative = log_probabilities.exp().cumsum(2)
    thresholds = torch.tensor(draws, dtype=cumulative.dtype)[None, :, None] * cumulative[:, :, -1:]
    digits = (cumulative <= thresholds).sum(2).clamp(max=n_values - 1)
    return torch.arange(m).expand(n, m), digits


def _append_digits(
    beam: Hypotheses,
    decoder: SequenceDecoder,
    encoder_states: EncoderStates,
    tree: CodeTree,
    digits: Tensor,
    probabilities: Tensor,
    d: int,
) -> None:
    """Append digit d to each hypothesis; the value after the last ends the sequence."""
    end = decoder.config.code_size
    beam.ended = beam.ended | (digits == end)
    digits = digits.clamp(max=end - 1)
    beam.states = decoder.append(encoder_states, beam.states, digits, d)
    beam.prefix_probabilities = beam.prefix_probabilities * probabilities
    nodes, children = beam.nodes.numpy(), np.zeros(beam.nodes.shape, np.int64)
    alive = ~beam.ended.numpy() & np.isfinite(beam.log_probabilities.numpy())
    children[alive] = tree.child(nodes[alive], digits.numpy()[alive])
    beam.nodes = torch.from_numpy(children)


def generate_free(
    decoder: SequenceDecoder,
    encoder_states: EncoderStates,
    tree: CodeTree,
    m: int,
    seed: int | None,
    max_sequence: int,
    count: bool,
) -> tuple[Longs, Floats]:
    """Generate m sequences of any digits per document; return what ``generate_sequences`` returns.

    1. Generate a sequence of digits, by beam search or at random, until its end: every value may follow every other.
    2. Segment the sequence s into floor(|s| / D) chunks of D digits; the digits that remain are ignored.
    3. Follow each chunk down the code tree to a leaf; the leaf is -1 if no label has the code.
    """
    max_digits = max_sequence * tree.code_length
    digits, steps, log_probabilities = generate_digits(decoder, encoder_states, m, max_digits, seed)  # step 1
    chunks = segment(digits, tree.code_length)  # step 2
    leaves = torch.from_numpy(tree.leaves_of(chunks.numpy()))  # step 3
    probabilities = segment(steps, tree.code_length).sum(3).exp() * (leaves >= 0)
    return leaves.numpy(), leaf_weights(leaves, probabilities, log_probabilities, seed is not None, count).numpy()


def generate_digits(
    decoder: SequenceDecoder, encoder_states: EncoderStates, m: int, max_digits: int, seed: int | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Generate m sequences of digits per document: the most probable by beam search, or, with a seed, at random.

    Return the digits (n, m, steps), -1 from the end on, the log-probability of each, and those of the sequences.
    """
    end, n = decoder.config.code_size, len(encoder_states.states)
    states = decoder.start(encoder_states, m)
    log_probabilities, ended = torch.zeros(n, m), torch.zeros(n, m, dtype=torch.bool)
    if seed is None:
        log_probabilities[:, 1:] = -torch.inf  # all sequences start as one
    history: list[tuple[Tensor, Tensor, Tensor]] = []  # of each step: the sequence continued, digit, log-probability
    for step in range(max_digits):
        d, rows = step % decoder.config.code_length, torch.arange(n)[:, None]
        logits = decoder.next_logits(states, d)
        of_digits = pad(logits.log_softmax(2), (0, end + 1 - logits.shape[2]), value=-torch.inf)
        of_digits[ended] = -torch.inf
        of_digits[:, :, end][ended] = 0.0
        if seed is None:
            index, digits = best_continuations(log_probabilities, of_digits)
        else:
            index, digits = sample_digits(of_digits, seed, step)
        chosen = of_digits[rows, index, digits]
        log_probabilities, ended = log_probabilities[rows, index] + chosen, digits == end
        history.append((index, torch.where(ended, -1, digits), chosen))
        if bool((ended | log_probabilities.isinf()).all()):
            break
        selected = tuple(state[rows, index] for state in states)
        states = decoder.append(encoder_states, selected, digits.clamp(max=end - 1), d)
    return *_trace_back(history, n, m), log_probabilities


def segment(sequences: Tensor, code_length: int) -> Tensor:
    """Split sequences (n, m, steps) into chunks (n, m, steps // code_length, code_length), without the rest.

    >>> segment(torch.arange(8)[None, None], 3).tolist()
    [[[[0, 1, 2], [3, 4, 5]]]]
    """
    n, m, steps = sequences.shape
    n_chunks = steps // code_length
    return sequences[:, :, : n_chunks * code_length].reshape(n, m, n_chunks, code_length)


def _trace_back(history: list[tuple[Tensor, Tensor, Tensor]], n: int, m: int) -> tuple[Tensor, Tensor]:
    """Return the digits and log-probabilities (n, m, steps) of the sequences that remain after the last step."""
    rows, at = torch.arange(n)[:, None], torch.arange(m).expand(n, m)
    digits, log_probabilities = [], []
    for index, of_step, chosen in reversed(history):
        digits.append(of_step[rows, at])
        log_probabilities.append(chosen[rows, at])
        at = index[rows, at]
    return torch.stack(digits[::-1], 2), torch.stack(log_probabilities[::-1], 2)
