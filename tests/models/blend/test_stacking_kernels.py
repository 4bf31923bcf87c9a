import numpy as np

from labelspace.models.blend.kernels import (
    COLUMNS_PER_MEMBER,
    SHARED_COLUMNS,
    count_candidates,
    count_further,
    fill_candidate_features,
    fill_further_features,
    rank_candidates,
)
from labelspace.models.blend.stacking_table import MemberTopK, StackingTable


def random_rankings(seed=0, members=3, n=20, n_ranks=6, labels=15):
    rng = np.random.default_rng(seed)
    rankings = np.stack([[rng.permutation(labels)[:n_ranks] for _ in range(n)] for _ in range(members)]).astype(
        np.int32
    )
    scores = -np.sort(-rng.random((members, n, n_ranks)).astype(np.float32), axis=2)
    rankings[1, 3, 2:], scores[1, 3, 2:] = -1, -np.inf  # a list that ends early
    rankings[2, 4], scores[2, 4] = -1, -np.inf  # an empty list
    return rankings, scores, np.log1p(np.arange(labels)).astype(np.float32)


def table_twin(rankings, scores, depth, log_counts, row):
    members, _, n_ranks = rankings.shape
    labels = sorted({int(label) for label in rankings[:, row, :depth].ravel() if label >= 0})
    table = []
    for label in labels:
        columns, hits = [], []
        for member in range(members):
            best = max(scores[member, row, 0], 0.0)
            ranks = np.flatnonzero(rankings[member, row] == label)
            score, rank = (scores[member, row, ranks[0]], ranks[0]) if len(ranks) else (0.0, n_ranks)
            columns += [score, rank, score / best if best else 0.0, best]
            hits += [score] * len(ranks)
        table.append([*columns, log_counts[label], sum(hits), len(hits)])
    return labels, np.array(table, np.float32)


def test_candidate_features_equal_the_twin():
    rankings, scores, log_counts = random_rankings()
    n, depth = rankings.shape[1], 3
    counts = np.zeros(n, np.int64)
    count_candidates(rankings, 0, n, depth, counts)
    ends = np.concatenate([[0], np.cumsum(counts)])
    labels, table = (
        np.empty(ends[-1], np.int32),
        np.empty((ends[-1], 3 * COLUMNS_PER_MEMBER + SHARED_COLUMNS), np.float32),
    )
    out = StackingTable(labels, table, ends)
    fill_candidate_features(MemberTopK(rankings, scores), 0, n, depth, log_counts, out)
    for row in range(n):
        expected, features = table_twin(rankings, scores, depth, log_counts, row)
        assert labels[ends[row] : ends[row + 1]].tolist() == expected
        np.testing.assert_allclose(table[ends[row] : ends[row + 1]], features, rtol=1e-5)


def test_the_best_of_a_table_ties_to_the_smaller_label():
    labels, probabilities = np.array([1, 4, 6, 2], np.int32), np.array([0.2, 0.9, 0.9, 0.5], np.float32)
    out_labels, out_scores = np.empty((2, 2), np.int32), np.empty((2, 2), np.float32)
    rank_candidates(labels, probabilities, np.array([0, 3, 4]), 0, 2, out_labels, out_scores)
    assert out_labels.tolist() == [[4, 6], [2, -1]]
    assert np.isneginf(out_scores[1, 1])


def further_twin(rankings, scores, deep, deep_scores, known, log_counts, entry, row):
    """What members list in ``deep`` and is not known: scores of those lists, ranks and bests of ``rankings``."""
    members, _, n_ranks = rankings.shape
    labels = sorted({int(label) for label in deep[:, entry].ravel() if label >= 0} - set(known.tolist()))
    table = []
    for label in labels:
        columns, total, listed = [], 0.0, 0
        for member in range(members):
            best, at = max(scores[member, row, 0], 0.0), np.flatnonzero(deep[member, entry] == label)
            ranks = np.flatnonzero(rankings[member, row] == label)
            score = deep_scores[member, entry, at[0]] if len(at) else 0.0
            columns += [score, ranks[0] if len(ranks) else n_ranks, score / best if best else 0.0, best]
            total, listed = total + score, listed + len(ranks)
        table.append([*columns, log_counts[label], total, listed])
    return labels, np.array(table, np.float32).reshape(len(labels), members * COLUMNS_PER_MEMBER + SHARED_COLUMNS)


def test_features_of_further_candidates_equal_the_twin():
    rankings, scores, log_counts = random_rankings()
    deep, deep_scores, _ = random_rankings(seed=1, n_ranks=9)
    rows = np.array([3, 4, 11, 19], np.int64)
    deep, deep_scores = MemberTopK(deep, deep_scores).rows(rows)
    rng = np.random.default_rng(2)
    lists = [np.sort(rng.permutation(15)[: rng.integers(0, 9)]).astype(np.int32) for _ in range(20)]
    known, known_ends = np.concatenate(lists), np.concatenate([[0], np.cumsum([len(part) for part in lists])])
    counts = np.zeros(4, np.int64)
    listed = StackingTable(known, np.empty((len(known), 0), np.float32), known_ends)
    count_further(deep, rows, 0, 4, listed, counts)
    ends = np.concatenate([[0], np.cumsum(counts)])
    width = 3 * COLUMNS_PER_MEMBER + SHARED_COLUMNS
    labels, table = np.empty(ends[-1], np.int32), np.empty((ends[-1], width), np.float32)
    predicted, out = MemberTopK(rankings, scores), StackingTable(labels, table, ends)
    fill_further_features(predicted, MemberTopK(deep, deep_scores), rows, 0, 4, listed, log_counts, out)
    for entry, row in enumerate(rows):
        expected, features = further_twin(rankings, scores, deep, deep_scores, lists[row], log_counts, entry, row)
        assert labels[ends[entry] : ends[entry + 1]].tolist() == expected
        np.testing.assert_allclose(table[ends[entry] : ends[entry + 1]], features, rtol=1e-5)
    assert counts.min() > 0
