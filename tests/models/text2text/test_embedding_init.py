import numpy as np
import scipy.sparse as sp

from labelspace.models.text2text.training import cooccurrence_init


def documents(n=400, seed=0):
    """Documents with one of four labels: token t < 4 occurs with label t, 4 with any, 5 in one document, 6 in none."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 4, n)
    tokens = np.zeros((n, 7), np.float32)
    tokens[np.arange(n), label] = 1
    tokens[::2, 4] = 1
    tokens[3, 5] = 2
    return sp.csr_matrix(tokens), sp.csr_matrix(np.eye(4, dtype=np.float32)[label]), label, rng


def cosine(a, b):
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_a_token_is_near_the_labels_it_occurs_with_the_more_so_the_more_often():
    tokens, Y, label, rng = documents()
    of_labels, random = (rng.standard_normal((size, 64)).astype(np.float32) for size in (4, 7))
    before = tokens.copy()
    embeddings = cooccurrence_init(tokens, Y, of_labels, random)
    for token in range(4):
        assert cosine(embeddings[token], of_labels[token]) > 0.8
    assert max(abs(cosine(embeddings[4], of_labels[i])) for i in range(4)) < 0.8
    assert cosine(embeddings[5], random[5]) > 0.8, "one document is hardly a reason"
    assert cosine(embeddings[5], of_labels[label[3]]) > cosine(random[5], of_labels[label[3]])
    assert np.array_equal(embeddings[6], random[6])
    assert (tokens != before).nnz == 0
    assert np.allclose(np.sqrt((embeddings**2).mean(axis=1)), 1.0, atol=0.4)
