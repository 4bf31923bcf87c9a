import numpy as np

from labelspace.kernels.stacking import (
    COLUMNS_PER_MEMBER,
    SHARED_COLUMNS,
    count_candidates,
    fill_table,
    rank_candidates,
)


def lists(seed=0, members=3, n=20, places=6, labels=15):
    rng = np.random.default_rng(seed)
    listed = np.stack([[rng.permutation(labels)[:places] for _ in range(n)] for _ in range(members)]).astype(np.int32)
    scores = -np.sort(-rng.random((members, n, places)).astype(np.float32), axis=2)
    listed[1, 3, 2:], scores[1, 3, 2:] = -1, -np.inf  # a list that ends early
    listed[2, 4], scores[2, 4] = -1, -np.inf  # and one with nothing on it
    return listed, scores, np.log1p(np.arange(labels)).astype(np.float32)


def slow_table(listed, scores, depth, log_counts, row):
    members, _, places = listed.shape
    labels = sorted({int(label) for label in listed[:, row, :depth].ravel() if label >= 0})
    table = []
    for label in labels:
        line, found = [], []
        for member in range(members):
            best = max(scores[member, row, 0], 0.0)
            at = np.flatnonzero(listed[member, row] == label)
            score, rank = (scores[member, row, at[0]], at[0]) if len(at) else (0.0, places)
            line += [score, rank, score / best if best else 0.0, best]
            found += [score] * len(at)
        table.append([*line, log_counts[label], sum(found), len(found)])
    return labels, np.array(table, np.float32)


def test_the_table_says_what_the_lists_say():
    listed, scores, log_counts = lists()
    n, depth = listed.shape[1], 3
    counts = np.zeros(n, np.int64)
    count_candidates(listed, 0, n, depth, counts)
    ends = np.concatenate([[0], np.cumsum(counts)])
    labels, table = (
        np.empty(ends[-1], np.int32),
        np.empty((ends[-1], 3 * COLUMNS_PER_MEMBER + SHARED_COLUMNS), np.float32),
    )
    fill_table(listed, scores, 0, n, depth, log_counts, ends, labels, table)
    for row in range(n):
        expected, lines = slow_table(listed, scores, depth, log_counts, row)
        assert labels[ends[row] : ends[row + 1]].tolist() == expected
        np.testing.assert_allclose(table[ends[row] : ends[row + 1]], lines, rtol=1e-5)


def test_the_best_of_a_table_ties_to_the_smaller_label():
    labels, chances = np.array([1, 4, 6, 2], np.int32), np.array([0.2, 0.9, 0.9, 0.5], np.float32)
    out_labels, out_scores = np.empty((2, 2), np.int32), np.empty((2, 2), np.float32)
    rank_candidates(labels, chances, np.array([0, 3, 4]), 0, 2, out_labels, out_scores)
    assert out_labels.tolist() == [[4, 6], [2, -1]]
    assert np.isneginf(out_scores[1, 1])
