import numpy as np
import pytest

torch = pytest.importorskip("torch")

from labelspace.models.secseq import decoding  # noqa: E402
from labelspace.models.secseq.decoding import score_prefixes  # noqa: E402
from labelspace.models.secseq.kernels import sample_codes, search_codes  # noqa: E402
from labelspace.types import TopK  # noqa: E402
from tests.models.secseq.decoder_twin import (  # noqa: E402
    CODES,
    HIDDEN_DIM,
    code_tree,
    next_digits,
    prefix_of,
    prefix_state,
    random_decoder,
)

SHARES = np.array([1, 1, 1, 1, 1, 0.5, 0.25, 0.75, 1], np.float32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("sequences", [False, True])
@pytest.mark.parametrize("block", [4096, 2])
def test_the_prefix_table_gives_the_logits_of_the_decoder(monkeypatch, sequences, block):
    monkeypatch.setattr(decoding, "NODE_BLOCK", block)
    decoder, tree = random_decoder(sequences=sequences).requires_grad_(False), code_tree()
    table = score_prefixes(decoder, tree, SHARES)
    a = torch.from_numpy(np.random.default_rng(1).standard_normal(HIDDEN_DIM).astype(np.float32))
    assert table.outputs.shape == (3, 3, HIDDEN_DIM), "without the end"
    n_branching = 0
    for node in range(tree.level_starts[-2]):
        prefix = prefix_of(tree, node)
        digits = next_digits(CODES, prefix)
        assert (table.gate_row[node] >= 0) == (len(digits) > 1)
        children = np.arange(table.first_child[node], table.last_child[node])
        assert table.digit[children].tolist() == digits
        if len(digits) == 1:
            assert np.isposinf(table.fixed_logit[children]).all(), "certain"
            continue
        n_branching += 1
        gated = a.numpy() * table.gates[table.gate_row[node]]
        logits = table.outputs[len(prefix)][digits] @ gated + table.prior[children]
        expected = decoder.digit_logits(a, prefix_state(decoder, prefix), len(prefix))[digits]
        assert np.allclose(logits, expected, atol=1e-5)
    assert len(table.gates) == n_branching == 3


def test_labels_are_the_leaves_and_those_that_share_a_code_have_their_share():
    tree = code_tree()
    table = score_prefixes(random_decoder().requires_grad_(False), tree, SHARES)
    for label, leaf in enumerate(tree.leaf_of):
        assert table.gate_row[leaf] == -1
        if label not in (5, 6, 7):
            assert table.label[leaf] == label
            assert table.first_child[leaf] == table.last_child[leaf] == 0
            continue
        assert table.label[leaf] == -1
        children = np.arange(table.first_child[leaf], table.last_child[leaf])
        assert table.label[children].tolist() == [5, 6, 7]
        assert sigmoid(table.fixed_logit[children]) == pytest.approx(SHARES[5:8])
    assert sorted(table.label[table.label >= 0]) == list(range(9))
    assert len(table.label) == tree.n_nodes + 3


def test_labels_of_two_shared_codes_are_kept_apart():
    codes = np.array([[1, 0], [0, 2], [1, 0], [0, 2], [0, 1], [1, 0]], np.int32)
    tree = code_tree(codes)
    shares = np.array([0.1, 0.2, 0.3, 0.4, 1.0, 0.6], np.float32)
    table = score_prefixes(random_decoder(code_length=2).requires_grad_(False), tree, shares)
    for labels in ([0, 2, 5], [1, 3]):
        leaf = tree.leaf_of[labels[0]]
        children = np.arange(table.first_child[leaf], table.last_child[leaf])
        assert table.label[children].tolist() == labels
        assert sigmoid(table.fixed_logit[children]) == pytest.approx(shares[labels])


def slow_probabilities(decoder, a, shares, softmax):
    """The probability of each label, prefix by prefix."""
    probabilities = []
    for label, code in enumerate(CODES.tolist()):
        probability = 1.0
        for d, digit in enumerate(code):
            exist = [
                other for other in next_digits(CODES, code[:d])
                if shares[(CODES[:, : d + 1] == [*code[:d], other]).all(axis=1)].any() or not softmax
            ]  # fmt: skip
            if digit not in exist:
                probability = 0.0
                break
            if len(next_digits(CODES, code[:d])) > 1:
                logits = decoder.digit_logits(a, prefix_state(decoder, code[:d]), d)[exist]
                steps = logits.softmax(0) if softmax else logits.sigmoid()
                probability *= steps[exist.index(digit)].item()
        unshared = (CODES == code).all(axis=1).sum() == 1
        probabilities.append(probability * (shares[label] > 0 if unshared else shares[label]))
    return np.array(probabilities)


@pytest.mark.parametrize("softmax", [False, True])
@pytest.mark.parametrize("unseen", [[], [0], [4], [6], [5, 6, 7]])
def test_beam_search_and_sampling_give_the_probabilities_of_labels(softmax, unseen):
    decoder = random_decoder(spread=0.8).requires_grad_(False)
    shares = SHARES.copy()
    shares[unseen] = 0
    if softmax:
        shares[5:8] /= max(shares[5:8].sum(), 1)
    table = score_prefixes(decoder, code_tree(), shares)
    contexts = np.random.default_rng(2).standard_normal((3, HIDDEN_DIM)).astype(np.float32)
    top, sampled = TopK.empty(3, 9), TopK.empty(3, 9)
    search_codes(contexts, table, softmax, min(32, len(table.label)), top.labels, top.scores)
    sample_codes(contexts, table, softmax, 2000, 1, sampled.labels, sampled.scores)
    for row, a in enumerate(contexts):
        expected = slow_probabilities(decoder, torch.from_numpy(a), shares, softmax)
        labels = top.labels[row][top.labels[row] >= 0]
        assert set(labels) == set(range(9)) - set(unseen)
        assert top.scores[row, : len(labels)] == pytest.approx(expected[labels], rel=1e-4)
        frequencies = np.zeros(9)
        drawn = sampled.labels[row] >= 0
        frequencies[sampled.labels[row][drawn]] = sampled.scores[row][drawn]
        assert (np.abs(frequencies - expected) <= 5 * np.sqrt(expected * (1 - expected) / 2000) + 1e-6).all()
        assert not frequencies[unseen].any()
