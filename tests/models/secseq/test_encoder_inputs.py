import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.features.sequences import PAD, UNKNOWN
from labelspace.models.secseq.encoder_inputs import EncoderInputs

IDS = np.array([[3, UNKNOWN, 4, PAD], [PAD] * 4, [5, 5, 3, 2], [UNKNOWN, PAD, PAD, PAD]], np.int32)


def tokens_of(reading):
    """The tokens of each document, None for one that is not known."""
    rows = [row.indices.tolist() for row in reading.table]
    assert all(len(row) <= 1 for row in rows)
    assert (reading.table.data == 1).all()
    flat = [row[0] if row else None for row in rows]
    return [flat[a:b] for a, b in zip(reading.starts[:-1], reading.starts[1:], strict=True)]


def test_words_in_a_row_become_a_row_each():
    reading = EncoderInputs.of_tokens(IDS, n_tokens=6)
    assert reading.n == 4
    assert reading.table.shape == (8, 6)
    assert reading.table.dtype == np.float32
    assert tokens_of(reading) == [[3, None, 4], [], [5, 5, 3, 2], [None]]


def test_features_are_one_row_a_document():
    X = sp.random(5, 7, 0.5, "csr", np.float32, rng=np.random.default_rng(0))
    reading = EncoderInputs.of_features(X)
    assert reading.n == 5
    assert reading.table is X
    assert reading.starts.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("documents", [[2, 0], [1], [3, 3, 1, 2], [], [0, 1, 2, 3]])
def test_a_part_has_the_documents_asked_for_in_their_order(documents):
    reading, asked = EncoderInputs.of_tokens(IDS, n_tokens=6), np.array(documents, np.int32)
    part = reading.part(asked)
    whole = tokens_of(reading)
    assert part.n == len(documents)
    assert tokens_of(part) == [whole[at] for at in documents]
    given, sizes = reading.batch(asked, 0.0, np.random.default_rng(0))
    assert sizes.dtype == np.int32
    assert sizes.tolist() == [len(whole[at]) for at in documents]
    batch = sp.csr_matrix(given, shape=part.table.shape)
    assert (batch != part.table).nnz == 0


def test_a_part_of_a_part_is_a_part():
    reading = EncoderInputs.of_tokens(IDS, n_tokens=6).part(np.array([2, 0, 1], np.int32))
    assert tokens_of(reading.part(np.array([1, 2], np.int32))) == [[3, None, 4], []]


def test_what_is_left_out_of_a_batch_goes_by_the_generator_and_sizes_stay():
    reading = EncoderInputs.of_tokens(np.full((4, 300), 3, np.int32), n_tokens=4)
    one, same, other = (reading.batch(np.arange(4), 0.4, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert one[1].tolist() == [300] * 4, "a word that is left out keeps its place"
    assert len(one[0][2]) == 1201
    assert all(np.array_equal(a, b) for a, b in zip(one[0], same[0], strict=True))
    assert not np.array_equal(one[0][2], other[0][2])
    kept = one[0][0]
    assert 0.5 < len(kept) / 1200 < 0.7
    assert kept == pytest.approx(1 / 0.6)
