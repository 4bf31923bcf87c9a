import numpy as np
import scipy.sparse as sp

from labelspace.models.text2text.embedding_init import cooccurrence_init


def made(n=400, seed=0):
    """Documents of one name of four: token t < 4 stands with name t, 4 with any, 5 in one document, 6 in none."""
    rng = np.random.default_rng(seed)
    given = rng.integers(0, 4, n)
    tokens = np.zeros((n, 7), np.float32)
    tokens[np.arange(n), given] = 1
    tokens[::2, 4] = 1
    tokens[3, 5] = 2
    return sp.csr_matrix(tokens), sp.csr_matrix(np.eye(4, dtype=np.float32)[given]), given, rng


def cosine(a, b):
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_a_token_is_near_the_names_it_stands_with_the_more_so_the_more_often():
    tokens, names, given, rng = made()
    of_names, by_chance = (rng.standard_normal((size, 64)).astype(np.float32) for size in (4, 7))
    before = tokens.copy()
    found = cooccurrence_init(tokens, names, of_names, by_chance)
    for token in range(4):
        assert cosine(found[token], of_names[token]) > 0.8
    assert max(abs(cosine(found[4], of_names[name])) for name in range(4)) < 0.8
    assert cosine(found[5], by_chance[5]) > 0.8, "one document is hardly a reason"
    assert cosine(found[5], of_names[given[3]]) > cosine(by_chance[5], of_names[given[3]])
    assert np.array_equal(found[6], by_chance[6])
    assert (tokens != before).nnz == 0
    assert np.allclose(np.sqrt((found**2).mean(axis=1)), 1.0, atol=0.4)
