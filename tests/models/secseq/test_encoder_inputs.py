import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.features.sequences import PAD, UNKNOWN
from labelspace.models.secseq.config import EncoderInputs

IDS = np.array([[3, UNKNOWN, 4, PAD], [PAD] * 4, [5, 5, 3, 2], [UNKNOWN, PAD, PAD, PAD]], np.int32)
TOKENS = [[3, None, 4], [], [5, 5, 3, 2], [None]]  # None is a row of zeros


def tokens_of(table, starts):
    """The token of each row, document by document."""
    rows = [row.indices.tolist() for row in table]
    assert all(len(row) <= 1 for row in rows)
    assert (table.data == 1).all()
    flat = [row[0] if row else None for row in rows]
    return [flat[start:stop] for start, stop in zip(starts[:-1], starts[1:], strict=True)]


def test_token_ids_become_one_row_per_token():
    inputs = EncoderInputs.from_token_ids(IDS, n_tokens=6)
    assert inputs.n == 4
    assert inputs.table.shape == (8, 6)
    assert inputs.table.dtype == np.float32
    assert tokens_of(inputs.table, inputs.starts) == TOKENS


def test_features_are_one_row_per_document():
    X = sp.random(5, 7, 0.5, "csr", np.float32, rng=np.random.default_rng(0))
    inputs = EncoderInputs.from_features(X)
    assert inputs.n == 5
    assert inputs.table is X
    assert inputs.starts.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("documents", [[2, 0], [1], [3, 3, 1, 2], [], [0, 1, 2, 3]])
def test_a_batch_has_the_rows_of_its_documents_in_their_order(documents):
    inputs = EncoderInputs.from_token_ids(IDS, n_tokens=6)
    batch, lengths = inputs.batch(np.array(documents, np.int32), 0.0, np.random.default_rng(0))
    assert lengths.dtype == np.int32
    assert lengths.tolist() == [len(TOKENS[document]) for document in documents]
    table = sp.csr_matrix(batch, shape=(lengths.sum(), 6))
    assert tokens_of(table, np.append(0, np.cumsum(lengths))) == [TOKENS[document] for document in documents]


def test_dropout_of_a_batch_depends_on_the_generator_and_leaves_lengths_as_they_are():
    inputs = EncoderInputs.from_token_ids(np.full((4, 300), 3, np.int32), n_tokens=4)
    one, same, other = (inputs.batch(np.arange(4), 0.4, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert one[1].tolist() == [300] * 4, "a word that is dropped is a row of zeros"
    assert len(one[0][2]) == 1201
    assert all(np.array_equal(a, b) for a, b in zip(one[0], same[0], strict=True))
    assert not np.array_equal(one[0][2], other[0][2])
    kept = one[0][0]
    assert 0.5 < len(kept) / 1200 < 0.7
    assert kept == pytest.approx(1 / 0.6)
