import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch")

from labelspace.labels.codes import Codes  # noqa: E402
from labelspace.models.secseq.config import MAX_SEQUENCE  # noqa: E402
from labelspace.models.secseq.objectives import PrefixObjective, SequenceObjective, digit_mask, group_counts  # noqa: E402
from tests.models.secseq.decoder_twin import (  # noqa: E402
    CODES,
    code_tree,
    next_digits,
    one_document,
    prefix_state,
    random_decoder,
    random_labels,
    random_states,
)

N = 8
ROWS = np.array([6, 1, 0, 3, 7], np.int32)
ALL_ROWS = np.arange(N, dtype=np.int32)
CHAINS = np.array([[0, 0, 0], [0, 1, 2]], np.int32)  # one possible value of the first and the last digit
ENCODERS = ("bag", "gru", "convolution")
TARGETS = ("set", "label", "sequence")


def labels_in(Y, row):
    return Y[row].indices.tolist()


def rng_of(seed=0):
    return np.random.default_rng(seed)


def slow_prefix_loss(decoder, a, codes, labels, softmax):
    """The loss of one document, label by label and prefix by prefix; and the number of its target digits."""
    total, n_tokens = torch.zeros(()), 0
    positive = [tuple(codes[label].tolist()) for label in labels]
    for d in range(codes.shape[1]):
        for prefix in sorted({code[:d] for code in positive} if d else {()}):
            exist = next_digits(codes, prefix)
            if len(exist) == 1:
                continue
            logits = decoder.digit_logits(a, prefix_state(decoder, prefix), d)[exist]
            targets = [code[d] for code in positive if code[:d] == prefix]
            n_tokens += len(set(targets))
            if softmax:
                total = total - sum(logits.log_softmax(0)[exist.index(digit)] for digit in targets)
            else:
                for digit, probability in zip(exist, torch.sigmoid(logits), strict=True):
                    total = total - torch.log(probability if digit in targets else 1 - probability)
    return total, n_tokens


@pytest.mark.parametrize("softmax", [False, True])
@pytest.mark.parametrize("encoder", ENCODERS)
def test_the_prefix_loss_is_that_of_going_through_prefixes_one_by_one(softmax, encoder):
    decoder, Y = random_decoder(encoder=encoder), random_labels(N, 9, unseen=[3])
    encoder_states = random_states(decoder, len(ROWS))
    loss, n_tokens = PrefixObjective(Codes(CODES, 3), Y, softmax).loss(decoder, encoder_states, ROWS)
    a = decoder.initial_context(encoder_states)
    slow = [slow_prefix_loss(decoder, a[i], CODES, labels_in(Y, row), softmax) for i, row in enumerate(ROWS)]
    assert n_tokens == sum(count for _, count in slow) > 10
    assert loss.item() == pytest.approx(sum(part.item() for part, _ in slow) / len(ROWS), rel=1e-5)


@pytest.mark.parametrize("softmax", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_prefix_loss_on_random_codes(softmax, seed):
    rng = rng_of(seed)
    codes = rng.integers(0, 3, (11, 1 + seed)).astype(np.int32)
    decoder, Y = random_decoder(code_length=1 + seed, seed=seed), random_labels(N, 11, seed)
    rows = rng.permutation(N).astype(np.int32)
    encoder_states = random_states(decoder, N)
    loss, n_tokens = PrefixObjective(Codes(codes, 3), Y, softmax).loss(decoder, encoder_states, rows)
    a = decoder.initial_context(encoder_states)
    slow = [slow_prefix_loss(decoder, a[i], codes, labels_in(Y, row), softmax) for i, row in enumerate(rows)]
    assert n_tokens == sum(count for _, count in slow)
    assert loss.item() == pytest.approx(sum(part.item() for part, _ in slow) / N, rel=1e-5)


def test_a_prefix_with_one_possible_digit_has_no_loss():
    decoder, Y = random_decoder(), random_labels(N, 2)
    objective = PrefixObjective(Codes(CHAINS, 3), Y, softmax=False)
    assert len(objective.levels) == 2, "levels below the last branching prefix are not stored"
    loss, n_tokens = objective.loss(decoder, random_states(decoder, N), ALL_ROWS)
    assert n_tokens == objective.n_tokens == Y.nnz
    loss.backward()
    for name, weights in decoder.named_parameters():
        used = ".1." in name or name in ("encoder_bias", "digit_embeddings.weight")
        assert bool(weights.grad is not None and weights.grad.any()) == used, name
    assert digits_with_gradient(decoder) == {0}, "no embeddings of later digits"
    single = PrefixObjective(Codes(CHAINS[:1], 3), Y[:, :1], softmax=False)
    assert single.n_tokens == 0
    loss, n_tokens = single.loss(decoder, random_states(decoder, 3), ROWS[:3])
    assert (loss.item(), n_tokens) == (0, 0)


def digits_with_gradient(decoder):
    """The rows of the digit embeddings that have a gradient."""
    return set(np.flatnonzero(decoder.digit_embeddings.weight.grad.abs().sum(1).numpy()).tolist())


@pytest.mark.parametrize("softmax", [False, True])
@pytest.mark.parametrize("encoder", ENCODERS)
def test_gradients_of_the_prefix_loss_reach_every_weight_that_is_used(softmax, encoder):
    decoder, Y = random_decoder(encoder=encoder), random_labels(N, 9)
    loss, _ = PrefixObjective(Codes(CODES, 3), Y, softmax).loss(decoder, random_states(decoder, N), ALL_ROWS)
    loss.backward()
    for name, weights in decoder.named_parameters():
        used = name not in ("attention.weight", "gates.0.0.weight", "priors.0.0.weight")  # their input is 0
        assert bool(weights.grad is not None and weights.grad.any()) == used, name
    assert digits_with_gradient(decoder) == {0, 3}, "those of the prefixes 0 and 00"


@pytest.mark.parametrize("softmax", [False, True])
def test_a_document_without_labels_has_negative_targets_only(softmax):
    decoder, Y = random_decoder(), random_labels(N, 9)
    loss, n_tokens = PrefixObjective(Codes(CODES, 3), Y, softmax).loss(decoder, random_states(decoder, 1), ROWS[1:2])
    assert n_tokens == 0
    assert (loss.item() > 0) == (not softmax)


# ---- sequences


def slow_order(Y, label_order, rng):
    """All labels in the order of sequences."""
    counts = Y.sum(axis=0).A1
    keys = {"frequent": -counts, "rare": counts, "random": rng.permutation(Y.shape[1])}[label_order]
    return sorted(range(Y.shape[1]), key=lambda label: (keys[label], label))


def without_repeated_codes(labels):
    return [label for at, label in enumerate(labels) if CODES[label].tolist() not in CODES[labels[:at]].tolist()]


def slow_sequence_loss(decoder, encoder_states, codes, labels, max_labels=50):
    """The loss of one document, code by code and digit by digit; no end where labels are cut off, or there are none."""
    total, h, end = torch.zeros(()), decoder.initial_state(1, 1), decoder.config.code_size
    for step, label in enumerate(labels[:max_labels] + [None] * (0 < len(labels) <= max_labels)):
        a = decoder.attend(encoder_states, h)[0, 0]
        p = h[0, 0]
        for d in range(codes.shape[1]):
            prefix = [] if label is None else codes[label, :d].tolist()
            exist = next_digits(codes, prefix)
            if d == 0 and step > 0:
                exist = [*exist, end]
            digit = end if label is None else codes[label, d]
            logits = decoder.digit_logits(a, p, d)[exist]
            total = total - logits.log_softmax(0)[exist.index(digit)]
            if label is None:
                break
            p = p + decoder.embed_digits(torch.tensor(digit), d)
        if label is not None:
            h = decoder.code_states((p - h[0, 0])[None, None], h[:, 0])
    return total


@pytest.mark.parametrize("label_order", ["frequent", "rare", "random"])
@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("max_labels", [50, 2])
def test_the_sequence_loss_is_that_of_going_code_by_code(label_order, encoder, max_labels):
    decoder, Y = random_decoder(sequences=True, encoder=encoder), random_labels(N, 9, unseen=[3])
    objective = SequenceObjective(Codes(CODES, 3), Y, label_order, rng_of(4), max_labels)
    encoder_states = random_states(decoder, len(ROWS))
    loss, n_tokens = objective.loss(decoder, encoder_states, ROWS)
    ranked, expected, count = slow_order(Y, label_order, rng_of(4)), 0.0, 0
    for i, row in enumerate(ROWS):
        labels = without_repeated_codes(sorted(labels_in(Y, row), key=ranked.index))
        expected += slow_sequence_loss(decoder, one_document(encoder_states, i), CODES, labels, max_labels).item()
        count += 3 * min(len(labels), max_labels)
    assert n_tokens == count
    assert max(np.diff(Y.indptr)) > 2
    assert loss.item() == pytest.approx(expected / len(ROWS), rel=1e-5)


@pytest.mark.parametrize("code_length", [1, 2])
def test_the_sequence_loss_of_short_codes(code_length):
    codes = np.unique(CODES[:, :code_length], axis=0)
    decoder, Y = random_decoder(code_length=code_length, sequences=True), random_labels(N, len(codes), seed=2)
    objective = SequenceObjective(Codes(codes, 3), Y, "frequent", rng_of(), MAX_SEQUENCE)
    encoder_states, ranked = random_states(decoder, N), slow_order(Y, "frequent", rng_of())
    expected = [
        slow_sequence_loss(
            decoder, one_document(encoder_states, i), codes, sorted(labels_in(Y, i), key=ranked.index)
        ).item()
        for i in ALL_ROWS
    ]
    loss, n_tokens = objective.loss(decoder, encoder_states, ALL_ROWS)
    assert loss.item() == pytest.approx(sum(expected) / N, rel=1e-5)
    assert n_tokens == objective.n_tokens == Y.nnz * code_length


@pytest.mark.parametrize("encoder", ENCODERS)
def test_gradients_of_the_sequence_loss_reach_every_weight(encoder):
    decoder, Y = random_decoder(sequences=True, encoder=encoder), random_labels(N, 9)
    objective = SequenceObjective(Codes(CODES, 3), Y, "rare", rng_of(), MAX_SEQUENCE)
    objective.loss(decoder, random_states(decoder, N), ALL_ROWS)[0].backward()
    for name, weights in decoder.named_parameters():
        assert weights.grad is not None, name
        assert weights.grad.any(), name


def test_a_batch_of_documents_without_labels_has_no_sequence_loss():
    decoder, Y = random_decoder(sequences=True), random_labels(N, 9)
    objective = SequenceObjective(Codes(CODES, 3), Y, "frequent", rng_of(), MAX_SEQUENCE)
    loss, n_tokens = objective.loss(decoder, random_states(decoder, 1), ROWS[1:2])
    assert n_tokens == 0
    assert loss.item() == 0.0


def test_a_random_order_depends_on_the_generator():
    Y = random_labels(N, 9)
    one, same, other = (
        SequenceObjective(Codes(CODES, 3), Y, "random", rng_of(seed), MAX_SEQUENCE).labels for seed in (1, 1, 2)
    )
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


# ---- both


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("max_labels", [50, 2])
def test_tokens_are_the_target_digits_of_all_documents_and_y_is_left_as_it_is(target, max_labels):
    decoder, Y = random_decoder(sequences=target == "sequence"), random_labels(N, 9, unseen=[0])
    before = Y.copy()
    if target == "sequence":
        objective = SequenceObjective(Codes(CODES, 3), Y, "frequent", rng_of(0), max_labels)
    else:
        objective = PrefixObjective(Codes(CODES, 3), Y, softmax=target == "label")
    encoder_states = random_states(decoder, 4)
    counts = [objective.loss(decoder, encoder_states, rows)[1] for rows in ALL_ROWS.reshape(2, 4)]
    assert objective.n_tokens == sum(counts) > 0
    assert all(np.array_equal(getattr(Y, part), getattr(before, part)) for part in ("data", "indices", "indptr"))


def test_the_digits_that_exist_after_prefixes():
    tree = code_tree()
    nodes = np.array([0, 1, 2, 4, 0, tree.n_nodes - 1], np.int64)
    expected = [[0, 1, 2], [0, 1, 2], [1], [0, 1, 2], [0, 1, 2], []]
    assert [np.flatnonzero(row).tolist() for row in digit_mask(tree, nodes, 4)] == expected


def test_labels_of_a_group_are_counted():
    Y = sp.csr_matrix(np.array([[1, 1, 0, 1], [0, 0, 0, 0], [0, 1, 1, 0]], np.float32))
    counts = group_counts(Y, np.array([2, 0, 2, 2], np.int32), 3)
    assert counts.toarray().tolist() == [[1, 0, 2], [0, 0, 0], [1, 0, 1]]
    assert counts.has_sorted_indices


# ---- initial biases


def test_biases_start_at_the_log_odds_of_digits_where_they_can_follow():
    decoder, Y = random_decoder(), random_labels(N, 9, unseen=[3])
    PrefixObjective(Codes(CODES, 3), Y, softmax=False).init_biases(decoder)
    documents = [{tuple(CODES[label].tolist()) for label in labels_in(Y, row)} for row in range(N)]
    for d in range(3):
        positive, negative = np.full(3, 0.5), np.full(3, 0.5)
        for codes in documents:
            for prefix in {code[:d] for code in codes} if d else {()}:
                exist = next_digits(CODES, prefix)
                targets = {code[d] for code in codes if code[:d] == prefix}
                for digit in exist if len(exist) > 1 else ():
                    (positive if digit in targets else negative)[digit] += 1
        assert decoder.outputs[d].bias.tolist() == pytest.approx(np.log(positive / negative).tolist(), rel=1e-5)


def test_biases_of_sequences_start_at_the_frequency_of_digits():
    decoder, Y = random_decoder(sequences=True), random_labels(N, 9)
    objective = SequenceObjective(Codes(CODES, 3), Y, "frequent", rng_of(), MAX_SEQUENCE)
    objective.init_biases(decoder)
    digits = CODES[objective.labels]
    for d in range(3):
        counts = np.bincount(digits[:, d], minlength=3) + 0.5
        expected = np.log([*counts, N + 0.5] if d == 0 else counts) - np.log(N + 1)
        assert decoder.outputs[d].bias.tolist() == pytest.approx(expected.tolist(), rel=1e-5)


def test_biases_stay_where_there_is_one_label_alone():
    decoder, Y = random_decoder(), sp.csr_matrix(np.ones((N, 1), np.float32))
    before = [layer.bias.tolist() for layer in decoder.outputs]
    PrefixObjective(Codes(CODES[:1], 3), Y, softmax=False).init_biases(decoder)
    assert [layer.bias.tolist() for layer in decoder.outputs] == before
