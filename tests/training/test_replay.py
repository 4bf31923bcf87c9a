import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.errors import ParameterError
from labelspace.training import replay as module
from labelspace.training.replay import Examples, GradientRoots, Replay, Squares, check_finite, expected_biases

PLENTY = 10**6


def rows(n, seed=0, n_features=20, n_labels=7):
    """Documents whose first feature tells their number."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, n_features)) * (rng.random((n, n_features)) < 0.4)
    X[:, 0] = 1.0
    Y = sp.csr_matrix((rng.random((n, n_labels)) < 0.3).astype(np.float32))
    return sp.csr_matrix(X.astype(np.float32)), Y


def test_documents_are_kept_in_8_bits_with_their_labels():
    X, Y = rows(30)
    kept = Replay.of(X, Y, PLENTY, np.random.default_rng(0))
    order = np.random.default_rng(0).permutation(30)
    found_X, found_Y = kept.documents(20, 7)
    assert np.abs(found_X - X[order]).max() <= 1 / 254 + 1e-6
    assert (found_Y != Y[order]).nnz == 0
    kept.check_state()


def test_documents_take_no_more_bytes_than_they_may():
    X, Y = rows(300)
    for limit in (0, 100, 2000):
        kept = Replay.of(X, Y, limit, np.random.default_rng(0))
        assert sum(part.nbytes for part in kept[:-1]) <= limit + 8, "and the first offsets"
        later = kept.with_documents(*rows(300, seed=1), limit, np.random.default_rng(1))
        assert sum(part.nbytes for part in later[:-1]) <= limit + 8
        assert later.n_learned == 600


def test_each_document_is_as_likely_to_be_kept_as_any_other(monkeypatch):
    monkeypatch.setattr(module, "MAX_DOCUMENTS", 20)
    times, n = np.zeros(100), 400
    for seed in range(n):
        rng = np.random.default_rng(seed)
        numbers = sp.csr_matrix(np.arange(1.0, 101.0, dtype=np.float32)[:, None])
        Y = sp.csr_matrix((100, 1), dtype=np.float32)
        kept = Replay.of(numbers[:30], Y[:30], PLENTY, rng)
        for start in (30, 45, 90):
            stop = {30: 45, 45: 90, 90: 100}[start]
            kept = kept.with_documents(numbers[start:stop], Y[start:stop], PLENTY, rng)
        assert (kept.n, kept.n_learned) == (20, 100)
        times[np.rint(kept.documents(1, 1)[0].data).astype(int) - 1] += 1
    assert np.abs(times.reshape(10, 10).mean(axis=1) / n - 0.2).max() < 0.03


def test_fewer_documents_than_may_be_kept_are_all_kept():
    kept = Replay.of(*rows(5), PLENTY, np.random.default_rng(0))
    assert kept.with_documents(*rows(9, seed=1), PLENTY, np.random.default_rng(1)).n == 14


def test_features_are_inserted_as_numpy_does():
    X, Y = rows(12)
    kept, at = Replay.of(X, Y, PLENTY, np.random.default_rng(0)), np.array([0, 3, 3, 20])
    before, after = kept.documents(20, 7)[0], kept.insert_features(at, 24).documents(24, 7)[0]
    assert np.array_equal(after.toarray(), np.insert(before.toarray(), at, 0, axis=1))


def test_sums_of_squares_come_back_for_any_size_of_batch():
    squares = Squares(*(np.array(values, np.float32) for values in ([0.0, 0.5], [2.0, 1e-6], [3.0, 0.1])))
    roots = GradientRoots.of(squares, 64, np.zeros(2, bool))
    for one, other in zip(roots.squares(64), squares, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-3)
    np.testing.assert_allclose(roots.squares(32).labels, 4 * squares.labels, rtol=2e-3)
    wider = roots.with_labels(3).insert_features(np.array([1]))
    assert wider.features.tolist() == [0.0, 0.0, roots.features[1]]
    assert wider.is_new.tolist() == [False, False, True]
    assert wider.labels[2] == np.median(roots.labels)
    assert GradientRoots.of(Squares(*[np.full(1, 1e12, np.float32)] * 3), 9, np.zeros(1, bool)).labels[0] < np.inf


def test_labels_without_documents_have_the_sums_of_a_usual_one():
    squares = Squares(np.ones(1, np.float32), np.array([4, 0, 4], np.float32), np.array([1, 0, 1], np.float32))
    assert GradientRoots.of(squares, 1, np.array([False, True, False])).labels.tolist() == [2, 2, 2]


def examples(n_new=6, n_replayed=40):
    X, Y = rows(n_new)
    kept = Replay.of(*rows(n_replayed, seed=1), PLENTY, np.random.default_rng(0))
    rejected = sp.csr_matrix((n_new, 7), dtype=np.float32).tolil()
    rejected[1, 2] = float(Y[1, 2] == 0)
    complete = np.arange(n_new) != 1
    return Examples.of(X, Y, rejected.tocsr(), complete, kept), X, Y


def test_an_epoch_has_all_new_documents_and_a_share_of_the_others():
    found, X, _ = examples()
    assert np.allclose(found.X[:6].toarray(), X.toarray()[:, found.features])
    batches = list(found.batches(2, 10, np.random.default_rng(0)))
    in_all = np.bincount(np.concatenate([chosen for chosen, _ in batches]), minlength=46)
    assert (in_all[:6] == 2).all()
    assert in_all[6:].sum() == 2 * 32, "as many as an epoch has at least"
    assert np.allclose([decay for _, decay in batches], 1 - np.arange(len(batches)) / len(batches))


def test_what_is_not_known_of_a_document_teaches_nothing():
    found, _, Y = examples()
    gradient = np.ones((3, 7), np.float32)
    found.forget_unknown(gradient, np.array([0, 1, 30]), slice(0, 7))
    known = Y[1].toarray().ravel() > 0
    known[2] = True
    assert gradient.tolist() == [[1.0] * 7, known.astype(float).tolist(), [1.0] * 7]
    part = np.ones((1, 2), np.float32)
    found.forget_unknown(part, np.array([1]), np.array([2, 5]))
    assert part.tolist() == [[1.0, float(known[5])]]


def test_probabilities_add_up_to_the_number_of_documents():
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((200, 3)).astype(np.float32)
    has_label = rng.random((200, 3)) < 0.1
    counts = np.array([5.0, 40.0, 300.0], np.float32)
    biases = expected_biases(scores, has_label, 50, counts, 1000)
    others = ~has_label
    others[:50] = False
    for at in range(3):
        p = 1 / (1 + np.exp(-(scores[:, at] + biases[at])))
        total = counts[at] * p[has_label[:, at]].mean() + (1000 - counts[at]) * p[others[:, at]].mean()
        assert total == pytest.approx(counts[at], rel=0.01)


def test_weights_that_overflow_are_refused():
    check_finite(np.zeros(3, np.float32))
    with pytest.raises(ParameterError, match="must stay finite .* smaller learning_rate"):
        check_finite(np.zeros(3, np.float32), np.array([np.inf], np.float32))
