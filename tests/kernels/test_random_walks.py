import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.kernels.random_walks import walk

MASK = 2**64 - 1


def draws(seed):
    """The xorshift generator in whole numbers."""
    state = (seed * 2 + 0x9E3779B97F4A7C15) & MASK
    while True:
        state ^= (state << 13) & MASK
        state ^= state >> 7
        state ^= (state << 17) & MASK
        yield state


def walk_twin(Y, begin, length, seed):
    """The same in words: list all the others of all the documents of a label, and draw one."""
    documents = [np.flatnonzero(row).tolist() for row in Y]
    others = [[m for d in documents if label in d for m in d if m != label] for label in range(Y.shape[1])]
    found = []
    for number, label in enumerate(begin):
        drawn = draws(seed + number)
        for _ in range(4):
            next(drawn)
        found.append([label])
        for _ in range(length - 1):
            near = others[found[-1][-1]]
            found[-1].append(near[next(drawn) % len(near)])
    return found


def walked(Y, begin, length, seed):
    Y = sp.csr_matrix(Y)
    by_label = Y.T.tocsr()
    ends = np.append(0, np.cumsum((np.diff(Y.indptr) - 1)[by_label.indices], dtype=np.int64))
    out = np.full((len(begin), length), -1, np.int32)
    walk(Y.indices, Y.indptr, by_label.indices, by_label.indptr, ends, np.array(begin, np.int32), seed, out)
    return out


@pytest.mark.parametrize("seed", range(4))
def test_walks_are_those_of_the_twin(seed):
    rng = np.random.default_rng(seed)
    Y = (rng.random((40, 15)) < 0.2).astype(np.float32)  # some documents have one label or none
    begin = np.flatnonzero((Y.T @ Y - np.diag(Y.sum(axis=0))).any(axis=1)).tolist() * 3
    assert walked(Y, begin, 12, seed).tolist() == walk_twin(Y, begin, 12, seed)


def test_steps_go_as_often_as_labels_share_documents():
    Y = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [1, 0, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]], np.float32)
    together = Y.T @ Y - np.diag(Y.sum(axis=0))
    for label in range(4):
        steps = np.bincount(walked(Y, [label] * 20_000, 2, seed=5)[:, 1], minlength=4) / 20_000
        assert np.allclose(steps, together[label] / together[label].sum(), atol=0.015)
