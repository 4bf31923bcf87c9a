import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.models.secseq.kernels import LabelGraph, sample_walks

MASK = 2**64 - 1


def draws(seed):
    """The xorshift generator in Python integers."""
    state = (seed * 2 + 0x9E3779B97F4A7C15) & MASK
    while True:
        state ^= (state << 13) & MASK
        state ^= state >> 7
        state ^= (state << 17) & MASK
        yield state


def walk_twin(Y, first_labels, length, seed):
    """Twin: list all other labels of all documents of a label, and draw one."""
    documents = [np.flatnonzero(row).tolist() for row in Y]
    others = [[m for d in documents if label in d for m in d if m != label] for label in range(Y.shape[1])]
    walks = []
    for number, label in enumerate(first_labels):
        drawn = draws(seed + number)
        for _ in range(4):
            next(drawn)
        walks.append([label])
        for _ in range(length - 1):
            candidates = others[walks[-1][-1]]
            walks[-1].append(candidates[next(drawn) % len(candidates)])
    return walks


def run_walks(Y, first_labels, length, seed):
    Y = sp.csr_matrix(Y)
    by_label = Y.T.tocsr()
    ends = np.append(0, np.cumsum((np.diff(Y.indptr) - 1)[by_label.indices], dtype=np.int64))
    out = np.full((len(first_labels), length), -1, np.int32)
    graph = LabelGraph(Y.indices, Y.indptr, by_label.indices, by_label.indptr, ends)
    sample_walks(graph, np.array(first_labels, np.int32), seed, out)
    return out


@pytest.mark.parametrize("seed", range(4))
def test_walks_equal_the_twin(seed):
    rng = np.random.default_rng(seed)
    Y = (rng.random((40, 15)) < 0.2).astype(np.float32)  # some documents have one label or none
    first_labels = np.flatnonzero((Y.T @ Y - np.diag(Y.sum(axis=0))).any(axis=1)).tolist() * 3
    assert run_walks(Y, first_labels, 12, seed).tolist() == walk_twin(Y, first_labels, 12, seed)


def test_steps_are_weighted_by_shared_documents():
    Y = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [1, 0, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]], np.float32)
    shared = Y.T @ Y - np.diag(Y.sum(axis=0))
    for label in range(4):
        steps = np.bincount(run_walks(Y, [label] * 20_000, 2, seed=5)[:, 1], minlength=4) / 20_000
        assert np.allclose(steps, shared[label] / shared[label].sum(), atol=0.015)
