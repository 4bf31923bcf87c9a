from itertools import pairwise

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from labelspace.labels.codes import Codes, CodeTree  # noqa: E402
from labelspace.models.secseq.sequence_search import Generation  # noqa: E402
from labelspace.models.secseq.sequence_search import generate_sequences as generate  # noqa: E402
from tests.models.secseq.decoder_twin import (  # noqa: E402
    code_tree,
    next_digits,
    one_document,
    prefix_of,
    random_decoder,
    random_states,
)

CODES = {
    1: np.array([[0], [2], [1]], np.int32),
    2: np.array([[0, 0], [0, 1], [1, 2], [2, 0]], np.int32),  # prefixes 1 and 2 have one code each
    3: np.array([[0, 0, 0], [0, 0, 1], [1, 0, 2]], np.int32),
}


def all_sequences(decoder, encoder_states, codes, max_labels, h=None, generated=()):
    """Every sequence with its probability and those of its codes: [(codes, probability, [probability of a code])]."""
    h = decoder.initial_state(1, 1) if h is None else h
    if len(generated) == max_labels:
        return [((), 1.0, [])]
    a = decoder.attend(encoder_states, h)[0, 0]
    remaining = np.array([code for code in codes.tolist() if tuple(code) not in generated]).reshape(-1, codes.shape[1])
    sequences, end = [], decoder.config.code_size
    end_probability = 0.0

    def next_steps(p, prefix):
        nonlocal end_probability
        exist = next_digits(remaining, prefix)
        if not prefix and generated:
            exist = [*exist, end]
        probabilities = decoder.digit_logits(a, p, len(prefix))[exist].softmax(0).tolist()
        if exist[-1] == end:
            end_probability = probabilities.pop()
            exist = exist[:-1]
        return zip(exist, probabilities, strict=True)

    def extend(p, prefix, probability):
        if len(prefix) == codes.shape[1]:
            after = decoder.code_states((p - h[0, 0])[None, None], h[:, 0])
            rest = all_sequences(decoder, encoder_states, codes, max_labels, after, (*generated, prefix))
            for more, factor, each in rest:
                sequences.append(((prefix, *more), probability * factor, [probability, *each]))
            return
        for digit, step in next_steps(p, prefix):
            extend(p + decoder.embed_digits(torch.tensor(digit), len(prefix)), (*prefix, digit), probability * step)

    extend(h[0, 0], (), 1.0)
    return [*sequences, ((), end_probability, [])] if generated else sequences


def codes_of(tree, leaves):
    """The codes of one sequence of leaves."""
    return tuple(tuple(prefix_of(tree, leaf)) for leaf in leaves if leaf >= 0)


def generating(max_sequence):
    """``generate_sequences`` with this maximum."""

    def generate_sequences(decoder, encoder_states, tree, m, seed=None):
        return generate(decoder, encoder_states, tree, Generation(m, max_sequence * tree.code_length, seed))

    return generate_sequences


def case(code_length, encoder="bag", seed=0, n=2):
    decoder = random_decoder(code_length, sequences=True, encoder=encoder, seed=seed, spread=0.8).requires_grad_(False)
    return decoder, random_states(decoder, n), CodeTree.from_codes(Codes(CODES[code_length], 3))


@pytest.mark.parametrize(
    ("encoder", "code_length", "max_labels"),
    [("bag", *size) for size in [(1, 2), (1, 3), (2, 2), (2, 3), (3, 2), (3, 3), (1, 6), (2, 6)]]
    + [("gru", 2, 3), ("convolution", 2, 3)],
)
def test_a_beam_of_all_sequences_has_each_with_its_probability(encoder, code_length, max_labels):
    generate_sequences = generating(max_labels)
    decoder, encoder_states, tree = case(code_length, encoder)
    exact = [
        all_sequences(decoder, one_document(encoder_states, row), CODES[code_length], max_labels) for row in range(2)
    ]
    leaves, weights = generate_sequences(decoder, encoder_states, tree, len(exact[0]) + 3)
    assert leaves.shape == weights.shape
    assert leaves.shape[:2] == (2, len(exact[0]) + 3)
    assert leaves.shape[2] <= max_labels
    for row in range(2):
        assert sum(probability for _, probability, _ in exact[row]) == pytest.approx(1, abs=1e-5)
        expected = {codes: (probability, each) for codes, probability, each in exact[row]}
        beam = {}
        for sequence, counts in zip(leaves[row], weights[row], strict=True):
            if not counts.any():
                continue
            codes = codes_of(tree, sequence)
            assert codes not in beam, "each sequence once"
            beam[codes] = counts[sequence >= 0]
            assert not counts[sequence < 0].any()
            assert (sequence[len(codes) :] == -1).all(), "-1 after the last"
        assert beam.keys() == expected.keys()
        for codes, counts in beam.items():
            probability, each = expected[codes]
            assert counts == pytest.approx(probability * np.array(each), rel=2e-3, abs=1e-6)


def test_sequences_of_a_narrow_beam_are_weighted_by_their_share_of_its_probability():
    generate_sequences = generating(3)
    decoder, encoder_states, tree = case(2)
    leaves, weights = generate_sequences(decoder, encoder_states, tree, 3)
    for row in range(2):
        sequences = all_sequences(decoder, one_document(encoder_states, row), CODES[2], 3)
        exact = {codes: (probability, each) for codes, probability, each in sequences}
        beam = [exact[codes_of(tree, sequence)] for sequence in leaves[row]]
        total = sum(probability for probability, _ in beam)
        assert total < 0.7
        for (probability, each), sequence, counts in zip(beam, leaves[row], weights[row], strict=True):
            assert counts[sequence >= 0] == pytest.approx(probability / total * np.array(each), rel=1e-3)


@pytest.mark.parametrize("code_length", [1, 2, 3])
@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("m", [1, 2, 5])
def test_sequences_have_existing_codes_none_twice_and_every_document_has_one(code_length, seed, m):
    generate_sequences = generating(6)
    for decoder_seed in range(3):
        decoder, encoder_states, tree = case(code_length, seed=decoder_seed, n=4)
        leaves, weights = generate_sequences(decoder, encoder_states, tree, m, seed)
        assert np.isfinite(weights).all()
        for row in range(4):
            assert weights[row, :, 0].sum() > 0
            for sequence in leaves[row]:
                codes = sequence[sequence >= 0]
                assert (codes >= tree.level_starts[-2]).all(), "complete codes"
                assert len(set(codes)) == len(codes)
                assert (sequence[len(codes) :] == -1).all()
        first = np.where(leaves[:, :, 0] >= 0, weights[:, :, 0], 0)
        assert (first.sum(axis=1) <= 1 + 1e-5).all()


def test_a_beam_of_one_leaves_a_prefix_whose_codes_are_used_up():
    """A decoder that prefers one prefix: after its only code it must take another one, or end."""
    generate_sequences = generating(3)
    decoder, encoder_states, tree = case(2)
    for layer, bias in ((decoder.outputs[0], [0.0, 50.0, 0.0, -50.0]), (decoder.outputs[1], [0.0, 0.0, 0.0])):
        layer.weight.zero_()
        layer.bias[:] = torch.tensor(bias)
    leaves, weights = generate_sequences(decoder, encoder_states, tree, 1)
    codes = codes_of(tree, leaves[0, 0])
    assert codes[0] == (1, 2)
    assert len(set(codes)) == 3
    assert np.isfinite(weights).all()
    sampled, _ = generate_sequences(decoder, encoder_states, tree, 20, seed=0)
    assert all(len(set(codes_of(tree, sequence))) == 3 for sequence in sampled[0])


def test_the_end_is_never_first_and_ends_the_sequence():
    generate_sequences = generating(4)
    decoder, encoder_states, tree = case(2)
    decoder.outputs[0].bias[-1] = 50.0
    for seed in (None, 1):
        leaves, _ = generate_sequences(decoder, encoder_states, tree, 4, seed)
        assert (leaves[:, 0, 0] >= 0).all()
        assert (leaves[:, 0, 1:] == -1).all()


@pytest.mark.parametrize("code_length", [1, 2])
def test_samples_have_the_exact_probabilities(code_length):
    generate_sequences = generating(2)
    decoder, encoder_states, tree = case(code_length)
    m = 3000
    leaves, weights = generate_sequences(decoder, encoder_states, tree, m, seed=5)
    assert weights[leaves >= 0] == pytest.approx(1 / m)
    assert not weights[leaves < 0].any()
    for row in range(2):
        sampled = [codes_of(tree, sequence) for sequence in leaves[row]]
        exact = all_sequences(decoder, one_document(encoder_states, row), CODES[code_length], 2)
        for codes, probability, _ in exact:
            error = np.sqrt(probability * (1 - probability) / m)
            assert abs(sampled.count(codes) / m - probability) < 4.5 * error + 1e-6


def test_samples_depend_on_the_seed_and_not_on_other_documents():
    generate_sequences = generating(3)
    decoder, encoder_states, tree = case(2, n=3)
    one, same, other = (generate_sequences(decoder, encoder_states, tree, 30, seed)[0] for seed in (2, 2, 3))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    for row in range(3):
        alone = one_document(encoder_states, row)
        sampled = generate_sequences(decoder, alone, tree, 30, 2)[0][0]  # without codes after the end of all
        assert np.array_equal(sampled, one[row, :, : sampled.shape[1]])
        assert (one[row, :, sampled.shape[1] :] == -1).all()
        beams = [generate_sequences(decoder, documents, tree, 4) for documents in (encoder_states, alone)]
        assert np.array_equal(beams[0][0][row], beams[1][0][0])
        assert beams[0][1][row] == pytest.approx(beams[1][1][0], rel=1e-4)


def test_children_by_their_digit():
    tree = code_tree()
    for node, child in pairwise(tree.ancestors()[2]):
        assert tree.child(np.array([node]), np.array([tree.digit[child]])).tolist() == [child]
    children = np.arange(1, tree.n_nodes)
    assert np.array_equal(tree.child(tree.parent[1:].astype(np.int64), tree.digit[1:].astype(np.int64)), children)
