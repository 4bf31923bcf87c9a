"""Free beam search and sampling of digits, for target ``sequence``: any digits, then the labels that have them.

1. Generate a sequence of digits, by beam search or at random, until its end: every value may follow every other.
2. Segment the sequence s into floor(|s| / D) chunks of D digits; the digits that remain are ignored.
3. Each chunk leads down the code tree to a leaf; there is none where no label has the code.
"""

import torch  # so import this module only after ``errors.require``
from torch import Tensor
from torch.nn.functional import pad

from labelspace.labels.codes import CodeTree
from labelspace.models.secseq.decoder import SequenceDecoder
from labelspace.models.secseq.encoder import EncoderStates
from labelspace.models.secseq.sequence_search import best_continuations, leaf_weights, sample_digits
from labelspace.types import Floats, Longs


def generate_free(
    decoder: SequenceDecoder, encoder_states: EncoderStates, tree: CodeTree, m: int, seed: int | None,
    max_sequence: int, count: bool,
) -> tuple[Longs, Floats]:  # fmt: skip
    """The leaves (n, m, codes) of m sequences per document, -1 where there is none, and their weights.

    As ``sequence_search.generate_sequences``, with any digits.
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

    Returns the digits (n, m, steps), -1 from the end on, the log-probability of each, and those of the sequences.
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
    """Sequences (n, m, steps) in chunks (n, m, steps // code_length, code_length), without the rest.

    >>> segment(torch.arange(8)[None, None], 3).tolist()
    [[[[0, 1, 2], [3, 4, 5]]]]
    """
    n, m, steps = sequences.shape
    n_chunks = steps // code_length
    return sequences[:, :, : n_chunks * code_length].reshape(n, m, n_chunks, code_length)


def _trace_back(history: list[tuple[Tensor, Tensor, Tensor]], n: int, m: int) -> tuple[Tensor, Tensor]:
    """The digits and log-probabilities (n, m, steps) of the sequences that remain after the last step."""
    rows, at = torch.arange(n)[:, None], torch.arange(m).expand(n, m)
    digits, log_probabilities = [], []
    for index, of_step, chosen in reversed(history):
        digits.append(of_step[rows, at])
        log_probabilities.append(chosen[rows, at])
        at = index[rows, at]
    return torch.stack(digits[::-1], 2), torch.stack(log_probabilities[::-1], 2)
