from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch")

from labelspace.labels.codes import Codes, CodeTree  # noqa: E402
from labelspace.models.secseq.config import MAX_SEQUENCE, DecoderConfig  # noqa: E402
from labelspace.models.secseq.decoding import leaf_counts, leaf_histogram  # noqa: E402
from labelspace.models.secseq.network import build_decoder  # noqa: E402
from labelspace.models.secseq.objectives import SequenceObjective  # noqa: E402
from labelspace.models.secseq.sequence_search import Generation, generate_digits, generate_free, segment  # noqa: E402
from labelspace.training.torch_optimizer import FlatAdam, single_thread  # noqa: E402
from tests.models.secseq.decoder_twin import CODES, code_tree, one_document  # noqa: E402
from tests.models.secseq.test_recurrent_decoder import CONFIG, documents, random_decoder  # noqa: E402

PLAIN = replace(CONFIG, code_length=2, shared_outputs=True, shared_embeddings=True)
KINDS = [
    PLAIN,
    replace(PLAIN, decoder="lstm", shared_outputs=False),
    replace(PLAIN, decoder="gated", shared_embeddings=False),
]


@pytest.fixture(autouse=True)
def one_thread():
    """Threads would take longer than such small networks."""
    with single_thread():
        yield


def sequence_probability(decoder, encoder_states, digits, ends):
    """Of one document's sequence of digits, and its end; and the probabilities of its digits."""
    states, each, length = decoder.start(encoder_states, 1), [], decoder.config.code_length
    for t, digit in enumerate([*digits, decoder.config.code_size] if ends else digits):
        each.append(decoder.next_logits(states, t % length)[0, 0].softmax(0)[digit].item())
        if t < len(digits):
            states = decoder.append(encoder_states, states, torch.tensor([[digit]]), t % length)
    return np.prod(each), each[: len(digits)]


def all_sequences(decoder, encoder_states, max_digits):
    """Every sequence of digits with its probability."""
    shared, length = decoder.config.shared_outputs, decoder.config.code_length
    found = {}
    for n_digits in range(max_digits + 1):
        ends = n_digits < max_digits
        if ends and not shared and n_digits % length:
            continue  # the end is a value of the first digit alone
        for digits in product(range(decoder.config.code_size), repeat=n_digits):
            found[digits] = sequence_probability(decoder, encoder_states, digits, ends)
    return found


def as_tuple(row):
    return tuple(digit for digit in row.tolist() if digit >= 0)


@pytest.mark.parametrize("config", KINDS, ids=lambda config: config.decoder)
@pytest.mark.parametrize("max_digits", [3, 4])
def test_a_wide_beam_has_every_sequence_with_its_probability(config, max_digits):
    decoder, encoder_states = random_decoder(config), documents()
    exact = [all_sequences(decoder, one_document(encoder_states, row), max_digits) for row in range(2)]
    m = len(exact[0]) + 5
    digits, steps, log_probabilities = generate_digits(decoder, encoder_states, Generation(m, max_digits))
    for row in range(2):
        assert sum(probability for probability, _ in exact[row].values()) == pytest.approx(1, abs=1e-5)
        finite = log_probabilities[row].isfinite()
        found = [as_tuple(sequence) for sequence in digits[row][finite]]
        assert len(found) == len(set(found))
        assert set(found) == set(exact[row])
        for sequence, log_probability, each in zip(found, log_probabilities[row], steps[row], strict=False):
            probability, of_digits = exact[row][sequence]
            assert log_probability.exp().item() == pytest.approx(probability, rel=1e-4)
            assert each[: len(sequence)].exp().tolist() == pytest.approx(of_digits, rel=1e-4)


def test_a_beam_of_one_is_greedy():
    decoder, encoder_states = random_decoder(PLAIN), documents()
    digits, _, _ = generate_digits(decoder, encoder_states, Generation(1, 6))
    for row in range(2):
        alone, greedy = one_document(encoder_states, row), []
        states = decoder.start(alone, 1)
        while len(greedy) < 6 and (best := int(decoder.next_logits(states, len(greedy) % 2).argmax())) < 3:
            states = decoder.append(alone, states, torch.tensor([[best]]), len(greedy) % 2)
            greedy.append(best)
        assert as_tuple(digits[row, 0]) == tuple(greedy)


def test_samples_have_the_exact_probabilities_and_depend_on_the_seed():
    decoder, encoder_states, m = random_decoder(PLAIN), documents(), 3000
    digits, _, _ = generate_digits(decoder, encoder_states, Generation(m, 3, seed=5))
    same, other = (generate_digits(decoder, encoder_states, Generation(m, 3, seed))[0] for seed in (5, 6))
    assert torch.equal(digits, same)
    assert not torch.equal(digits, other)
    for row in range(2):
        sampled = [as_tuple(sequence) for sequence in digits[row]]
        for sequence, (probability, _) in all_sequences(decoder, one_document(encoder_states, row), 3).items():
            error = np.sqrt(probability * (1 - probability) / m)
            assert abs(sampled.count(sequence) / m - probability) < 4.5 * error + 1e-6


# ---- decompression by hand


def test_a_sequence_is_cut_into_chunks_without_the_rest():
    sequence = torch.tensor([[[0, 0, 2, 1, 1, 0, 2, 0]]])
    assert segment(sequence, 3).tolist() == [[[[0, 0, 2], [1, 1, 0]]]]
    assert segment(sequence, 9).shape == (1, 1, 0, 9)


def test_codes_lead_to_leaves_which_may_be_empty():
    tree = code_tree()
    codes = np.array([[0, 0, 2], [2, 0, 1], [2, 0, 2], [1, 0, 0], [0, 2, -1], [0, 0, 3], [9, 0, 0]])
    assert tree.leaves_of(codes).tolist() == [tree.leaf_of[1], tree.leaf_of[5], -1, -1, -1, -1, -1]
    assert tree.leaves_of(CODES.astype(np.int64).reshape(3, 3, 3)).tolist() == tree.leaf_of.reshape(3, 3).tolist()
    assert tree.leaves_of(np.zeros((2, 0, 3), np.int64)).shape == (2, 0)


@pytest.mark.parametrize(
    ("kind", "expected"), [("labels", [0, 2, 0, 0, 0, 1, 1, 0, 0]), ("documents", [0, 6, 0, 0, 0, 2, 1, 0, 0])]
)
def test_the_histograms_of_the_leaves_are_added(kind, expected):
    """Sequences 002 201 20 and 002 222: label 1 twice; labels 5, 6 and 7 share 201, and 7 has no document."""
    Y = np.zeros((3, 9), np.float32)
    Y[:, 1], Y[:2, 5], Y[0, 6] = 1, 1, 1
    tree = code_tree()
    digits = torch.tensor([[[0, 0, 2, 2, 0, 1, 2, 0], [0, 0, 2, 2, 2, 2, -1, -1]]])
    leaves = tree.leaves_of(segment(digits, 3).numpy())
    assert leaves.tolist() == [[[tree.leaf_of[1], tree.leaf_of[5]], [tree.leaf_of[1], -1]]]
    counts = leaf_counts(kind, tree, sp.csr_matrix(Y), of_documents=True)
    histogram = leaf_histogram(leaves, (leaves >= 0).astype(np.float32), tree, counts)
    assert histogram.toarray().tolist() == [expected]


@pytest.mark.parametrize("config", KINDS, ids=lambda config: config.decoder)
@pytest.mark.parametrize("seed", [None, 3])
def test_leaves_and_weights_of_generated_sequences(config, seed):
    codes = np.array([[0, 0], [0, 1], [1, 2], [2, 0]], np.int32)
    tree = CodeTree.from_codes(Codes(codes, 3))
    decoder, encoder_states = random_decoder(config), documents()
    digits, steps, log_probabilities = generate_digits(decoder, encoder_states, Generation(12, 6, seed))
    shares = log_probabilities.softmax(1).numpy()
    leaves, counts = generate_free(decoder, encoder_states, tree, Generation(12, 6, seed), True)
    same, weights = generate_free(decoder, encoder_states, tree, Generation(12, 6, seed), False)
    assert np.array_equal(leaves, same)
    n_empty = 0
    for row, m in np.ndindex(2, 12):
        sequence = as_tuple(digits[row, m])
        for chunk in range(leaves.shape[2]):
            code = sequence[2 * chunk : 2 * chunk + 2]
            label = [list(code)] == [c for c in codes.tolist() if c == list(code)] and codes.tolist().index(list(code))
            is_leaf = len(code) == 2 and label is not False
            n_empty += len(code) == 2 and not is_leaf
            assert leaves[row, m, chunk] == (tree.leaf_of[label] if is_leaf else -1)
            assert counts[row, m, chunk] == is_leaf
            probability = steps[row, m, 2 * chunk : 2 * chunk + 2].sum().exp().item() * shares[row, m]
            expected = (probability if seed is None else 1 / 12) if is_leaf else 0
            assert weights[row, m, chunk] == pytest.approx(expected, rel=1e-4, abs=1e-9)
    assert n_empty > 0
    assert counts.sum() > 0


# ---- the limit of probabilistic classifier chains: K = 2, a digit per label


@pytest.mark.parametrize("kind", ["gru", "lstm", "gated"])
def test_with_a_bit_per_label_free_beam_search_is_exact_over_label_sets(kind):
    """P(y_1, ..., y_L | x) is the product of P(y_l | x, y_1, ..., y_{l-1}): eq. 1; D = L bits are one label set."""
    n_labels, n = 5, 40
    sets = np.array(list(product([0, 1], repeat=n_labels)), np.int32)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 6)).astype(np.float32)
    truth = (X[:, :n_labels] + X[:, [5]] > 0).astype(np.int64)  # bits that depend on each other
    number = truth @ 2 ** np.arange(n_labels)[::-1]
    Y = sp.csr_matrix((np.ones(n, np.float32), (np.arange(n), number)), shape=(n, len(sets)))
    shared = (kind != "gated", kind != "gated")
    decoder = build_decoder(DecoderConfig("bag", 6, 6, 8, 2, n_labels, True, kind, *shared), rng)
    objective = SequenceObjective(Codes(sets, 2), Y, "frequent", rng, MAX_SEQUENCE, masked=False)
    optimizer, rows = FlatAdam(decoder, "learning_rate"), np.arange(n, dtype=np.int32)
    for step in range(1, 41):
        encoder_states = decoder.encode(torch.from_numpy(X), np.ones(n, np.int32))
        optimizer.step(objective.loss(decoder, encoder_states, rows)[0], 10.0, 0.02, step)
    with torch.no_grad():
        encoder_states = decoder.encode(torch.from_numpy(X[:4]), np.ones(4, np.int32))
        # By brute force: the probability of each of the 2^L label sets of each document.
        pairs = np.repeat(np.arange(4), len(sets)), np.zeros(4 * len(sets), np.int64), np.ones(4 * len(sets), bool)
        bits = np.tile(sets, (4, 1)).astype(np.int64)
        wide = type(encoder_states)(encoder_states.states[pairs[0]], encoder_states.mask[pairs[0]])
        own_row = np.arange(4 * len(sets))
        logits = list(decoder.sequence_logits(wide, own_row, *pairs[1:], bits))
        steps = [z.log_softmax(1)[own_row, bits[:, d]] for d, z in enumerate(logits)]
        joint = torch.stack(steps).sum(0).view(4, -1)
        # A beam that holds all sets, and those that end too early.
        digits, _, log_probabilities = generate_digits(decoder, encoder_states, Generation(2 * len(sets), n_labels))
    for row in range(4):
        held = log_probabilities[row].isfinite()
        of_set = dict(zip(map(as_tuple, digits[row][held]), log_probabilities[row][held].tolist(), strict=True))
        for at, y in enumerate(sets.tolist()):
            assert of_set[tuple(y)] == pytest.approx(joint[row, at].item(), abs=1e-4)
        full = [y for y in of_set if len(y) == n_labels]
        assert max(full, key=of_set.get) == tuple(sets[int(joint[row].argmax())].tolist())
