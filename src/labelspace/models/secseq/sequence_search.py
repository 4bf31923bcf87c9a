"""Beam search and sampling of sequences for target ``sequence``: of codes that exist, none twice, or of any digits."""

from functools import reduce
from typing import NamedTuple

import numpy as np
import torch  # so import this module only after ``errors.require``
from torch import Tensor
from torch.nn.functional import pad

from labelspace.kernels.random_numbers import uniform_from_key
from labelspace.labels.codes import CodeTree
from labelspace.models.secseq.network import EncoderStates, SequenceDecoder
from labelspace.models.secseq.objectives import digit_mask
from labelspace.types import Bools, Floats, Ints, Longs

STEP_KEYS = 3200  # steps of a seed with random numbers of their own; later steps share those of the next seed


class CodeConstraint:
    """The codes of m sequences per document so far: all exist, and none occurs twice in a sequence."""

    def __init__(self, tree: CodeTree, code_size: int, n: int, m: int) -> None:
        self.tree, self.end = tree, code_size
        self.nodes: Longs = np.zeros((n, m), np.int64)  # the prefix of the current code
        self.leaves: Longs = np.zeros((n, m, 0), np.int64)  # the codes, then -1

    def mask(self, d: int) -> Tensor:
        """Mark the values that digit d may have; the last value is the end. Shape (n, m, code_size + 1)."""
        prefixes, prefix_of = np.unique(self.nodes, return_inverse=True)
        mask = digit_mask(self.tree, prefixes, self.end + 1)[prefix_of.reshape(self.nodes.shape)]
        n_codes = self.leaves.shape[2]
        if d == 0:
            mask[:, :, self.end] = n_codes > 0
        if n_codes:
            self._mask_generated(mask, d)
        return torch.from_numpy(mask)

    def _mask_generated(self, mask: Bools, d: int) -> None:
        """Mask digits that lead only to codes that are in the sequence already."""
        tree = self.tree
        ancestors: Ints | Longs = self.leaves  # at the level of digit d
        for _ in range(tree.code_length - 1 - d):
            ancestors = tree.parent[ancestors]
        first_leaf: Ints | Longs = ancestors
        last_leaf: Ints | Longs = ancestors + 1
        for _ in range(tree.code_length - 1 - d):
            first_leaf, last_leaf = tree.first_child[first_leaf], tree.last_child[last_leaf - 1]
        below = (self.leaves >= 0) & (tree.parent[ancestors] == self.nodes[:, :, None])
        counts = ((ancestors[:, :, :, None] == ancestors[:, :, None]) & below[:, :, None]).sum(3)
        used_up = below & (counts >= last_leaf - first_leaf)
        rows, hypotheses, _ = np.nonzero(used_up)
        mask[rows, hypotheses, tree.digit[ancestors[used_up]]] = False

    def append(self, index: Longs, digits: Longs, d: int) -> None:
        """Continue the sequences ``index`` (n, m) by digit d; -1 is that of a sequence that has ended."""
        rows = np.arange(len(index))[:, None]
        above, leaves = self.nodes[rows, index], self.leaves[rows, index]
        nodes, alive = np.zeros_like(above), digits >= 0
        nodes[alive] = self.tree.child(above[alive], digits[alive])
        self.nodes, self.leaves = nodes, leaves
        if d == self.tree.code_length - 1:
            self.leaves = np.concatenate([leaves, np.where(nodes > 0, nodes, -1)[:, :, None]], 2)
            self.nodes = np.zeros_like(nodes)


class Generation(NamedTuple):
    """How sequences are generated: by beam search, or, with a seed, at random."""

    m: int  # sequences per document
    max_digits: int
    seed: int | None = None


def generate_sequences(
    decoder: SequenceDecoder, encoder_states: EncoderStates, tree: CodeTree, options: Generation, count: bool = False
) -> tuple[Longs, Floats]:
    """Generate m sequences per document: the most probable by beam search, or, with a seed, at random.

    Codes exist, and none occurs twice. Return the leaves of the sequences (n, m, codes), at most ``max_sequence`` and
    -1 after the last, and the weight of each leaf: see ``leaf_weights``.
    """
    codes = CodeConstraint(tree, decoder.config.code_size, len(encoder_states.states), options.m)
    _, steps, log_probabilities = generate_digits(decoder, encoder_states, options, codes)
    leaves = torch.from_numpy(codes.leaves)
    probabilities = reduce(torch.mul, segment(steps, tree.code_length).exp().unbind(3)) * (leaves >= 0)
    return codes.leaves, leaf_weights(leaves, probabilities, log_probabilities, options.seed is not None, count).numpy()


def leaf_weights(leaves: Tensor, probabilities: Tensor, log_sequences: Tensor, sampled: bool, count: bool) -> Tensor:
    """Weight each leaf (n, m, codes) in m sequences with the log-probabilities ``log_sequences`` (n, m); 0 for no leaf.

    With ``count`` each leaf weighs 1. Otherwise it weighs 1 / m if the sequences are samples; in a beam, the
    probability of the sequence among those of the beam, times the probability of the code in the sequence.
    """
    if count:
        return ((leaves >= 0) & log_sequences.isfinite()[:, :, None]).float()
    if sampled:
        return (leaves >= 0) / leaves.shape[1]
    return probabilities * log_sequences.softmax(1)[:, :, None]


def best_continuations(log_probabilities: Tensor, of_digits: Tensor) -> tuple[Tensor, Tensor]:
    """Return the m best continuations of m sequences (n, m) by a digit (n, m, values): sequence and digit, (n, m)."""
    continuations, n_values = (log_probabilities[:, :, None] + of_digits).flatten(1), of_digits.shape[2]
    best = continuations.topk(log_probabilities.shape[1], 1).indices
    return best // n_values, best % n_values


def sample_digits(log_probabilities: Tensor, seed: int, step: int) -> tuple[Tensor, Tensor]:
    """Draw a digit for every hypothesis; draws depend only on the seed, the hypothesis and the step."""
    n, m, n_values = log_probabilities.shape
    draws = [uniform_from_key(np.uint64((seed * STEP_KEYS + step) * m + number)) for number in range(m)]
    cumulative = log_probabilities.exp().cumsum(2)
    thresholds = torch.tensor(draws, dtype=cumulative.dtype)[None, :, None] * cumulative[:, :, -1:]
    digits = (cumulative <= thresholds).sum(2).clamp(max=n_values - 1)
    return torch.arange(m).expand(n, m), digits


def generate_free(
    decoder: SequenceDecoder, encoder_states: EncoderStates, tree: CodeTree, options: Generation, count: bool
) -> tuple[Longs, Floats]:
    """Generate m sequences of any digits per document; return what ``generate_sequences`` returns.

    1. Generate a sequence of digits, by beam search or at random, until its end: every value may follow every other.
    2. Segment the sequence s into floor(|s| / D) chunks of D digits; the digits that remain are ignored.
    3. Follow each chunk down the code tree to a leaf; the leaf is -1 if no label has the code.
    """
    digits, steps, log_probabilities = generate_digits(decoder, encoder_states, options)  # step 1
    chunks = segment(digits, tree.code_length)  # step 2
    leaves = torch.from_numpy(tree.leaves_of(chunks.numpy()))  # step 3
    probabilities = segment(steps, tree.code_length).sum(3).exp() * (leaves >= 0)
    return leaves.numpy(), leaf_weights(
        leaves, probabilities, log_probabilities, options.seed is not None, count
    ).numpy()


def generate_digits(
    decoder: SequenceDecoder, encoder_states: EncoderStates, options: Generation, codes: CodeConstraint | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Generate m sequences of digits per document: the most probable by beam search, or, with a seed, at random.

    Return the digits (n, m, steps), -1 from the end on, the log-probability of each, and those of the sequences. With
    ``codes`` only the digits that these allow are generated, and they get them.
    """
    m, max_digits, seed = options
    end, n = decoder.config.code_size, len(encoder_states.states)
    states = decoder.start(encoder_states, m)
    log_probabilities, ended = torch.zeros(n, m), torch.zeros(n, m, dtype=torch.bool)
    if seed is None:
        log_probabilities[:, 1:] = -torch.inf  # all sequences start as one
    history: list[tuple[Tensor, Tensor, Tensor]] = []  # of each step: the sequence continued, digit, log-probability
    for step in range(max_digits):
        d, rows = step % decoder.config.code_length, torch.arange(n)[:, None]
        logits = decoder.next_logits(states, d)
        lacking = (0, end + 1 - logits.shape[2])  # the end is no value of every digit
        if codes is None:
            of_digits = pad(logits.log_softmax(2), lacking, value=-torch.inf)
        else:
            excluded = ~codes.mask(d)
            of_digits = pad(logits, lacking).masked_fill(excluded, -torch.inf).log_softmax(2)
            of_digits = of_digits.masked_fill(excluded, -torch.inf)
        of_digits[ended] = -torch.inf
        of_digits[:, :, end][ended] = 0.0
        if seed is None:
            index, digits = best_continuations(log_probabilities, of_digits)
        else:
            index, digits = sample_digits(of_digits, seed, step)
        chosen = of_digits[rows, index, digits]
        log_probabilities, ended = log_probabilities[rows, index] + chosen, digits == end
        over = ended | log_probabilities.isinf()
        history.append((index, torch.where(over, -1, digits), chosen))
        if codes is not None:
            codes.append(index.numpy(), history[-1][1].numpy(), d)
        if bool(over.all()):
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
