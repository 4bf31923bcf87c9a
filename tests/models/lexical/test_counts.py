"""What training counts, against NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.estimator.state_constraints import StateError
from labelspace.kernels.knn import LabelSets
from labelspace.models.lexical.counts import FIRST_SLOTS, MAX_BUCKET_COUNT, MAX_COUNT, Counts, Tally, matches_among
from labelspace.models.lexical.kernels import N_BUCKETS, N_LEVELS

N_LABELS = 50


def drawn(n_documents, seed=0):
    """Matches as ``find_matches`` returns them, and labels of documents."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 60, n_documents)
    shape = (sizes.sum(),)
    # Some label matches in thousands of cells, and some cells match often.
    label = np.minimum(rng.integers(0, N_LABELS, shape), rng.integers(0, N_LABELS, shape))
    bucket = np.where(label % 2, rng.integers(0, 7, shape), rng.integers(0, N_BUCKETS, shape))
    found = np.stack([label, bucket, rng.integers(0, N_LEVELS, shape)], axis=1).astype(np.int32)
    Y = sp.random(n_documents, N_LABELS, 0.2, "csr", rng=rng)
    return found, np.cumsum(sizes), Y


def tallied(found, ends, Y, in_sample):
    tally = Tally()
    tally.add(found, ends, LabelSets(Y.indices, Y.indptr.astype(np.int64)), N_LABELS, in_sample)
    return tally


def dense(found, ends, Y, in_sample):
    """Matches and hits by label, bucket and level; and by bucket."""
    document = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
    hit = Y.toarray()[document, found[:, 0]] != 0
    cells = np.zeros((N_LABELS, N_BUCKETS, N_LEVELS, 2), int)
    np.add.at(cells, (*found.T, 0), 1)
    np.add.at(cells, (*found.T, 1), hit)
    by_bucket = np.zeros((N_BUCKETS, 2), int)
    sampled = in_sample[document]
    np.add.at(by_bucket, (found[sampled, 1], 0), 1)
    np.add.at(by_bucket, (found[sampled, 1], 1), hit[sampled])
    return cells, by_bucket


def opened(counts):
    cells = np.zeros((N_LABELS * N_BUCKETS * N_LEVELS, 2), int)
    at = np.repeat(np.arange(N_LABELS), np.diff(counts.starts)) * N_BUCKETS * N_LEVELS + counts.cells
    cells[at] = np.stack([counts.matches, counts.hits], axis=1)
    return cells.reshape(N_LABELS, N_BUCKETS, N_LEVELS, 2)


@pytest.mark.parametrize("n_documents", [0, 1, 30, 3000])
def test_counts_equal_the_dense_ones(n_documents):
    found, ends, Y = drawn(n_documents)
    in_sample = np.arange(n_documents) % 3 == 0
    cells, by_bucket = dense(found, ends, Y, in_sample)
    tally = tallied(found, ends, Y, in_sample)
    counts = Counts.of_tallies([tally], N_LABELS)
    counts.check_state()
    assert np.array_equal(opened(counts), cells)
    assert np.array_equal(counts.by_bucket, by_bucket)
    if n_documents == 3000:
        assert len(counts.cells) > FIRST_SLOTS, "the hash table grew"
    expected = np.random.default_rng(1).integers(0, 2**16, N_BUCKETS)
    by_label = counts.by_label(expected)
    assert np.array_equal(by_label[:, :, :2], cells.sum(axis=1))
    assert np.array_equal(by_label[:, :, 2], (cells[..., 0] * expected[:, None]).sum(axis=1))


def same(one, other):
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_sums_do_not_depend_on_how_documents_are_split():
    found, ends, Y = drawn(900)
    in_sample = np.arange(900) % 2 == 0
    whole = Counts.of_tallies([tallied(found, ends, Y, in_sample)], N_LABELS)
    parts = []
    for rows in (slice(0, 1), slice(1, 500), slice(500, 900)):
        first = ends[rows.start - 1] if rows.start else 0
        parts.append(tallied(found[first : ends[rows.stop - 1]], ends[rows] - first, Y[rows], in_sample[rows]))
    assert same(Counts.of_tallies(parts, N_LABELS), whole)
    assert same(Counts.of_tallies(parts[::-1], N_LABELS), whole)
    summed = Counts.nothing(N_LABELS - 10)
    for part in parts:
        summed = summed.plus(Counts.of_tallies([part], N_LABELS))
    assert same(summed, whole)


def test_counts_stop_at_what_their_integers_hold():
    found, ends, Y = drawn(20)
    counts = Counts.of_tallies([tallied(found, ends, Y, np.ones(20, bool))], N_LABELS)
    full = counts._replace(
        by_bucket=np.full((N_BUCKETS, 2), MAX_BUCKET_COUNT - 1), matches=np.full_like(counts.matches, MAX_COUNT - 1)
    )
    more = full.plus(counts)
    assert (more.matches == MAX_COUNT - 1).all()
    assert (more.by_bucket == MAX_BUCKET_COUNT - 1).all()


def test_matches_of_some_pairs():
    found, ends, Y = drawn(200)
    kept, kept_ends = matches_among(found, ends, Y)
    document = np.repeat(np.arange(200), np.diff(ends, prepend=0))
    is_pair = Y.toarray()[document, found[:, 0]] != 0
    assert 0 < is_pair.sum() < len(found)
    assert np.array_equal(kept, found[is_pair])
    assert np.array_equal(np.diff(kept_ends, prepend=0), np.bincount(document[is_pair], minlength=200))


@pytest.mark.parametrize(
    ("field", "change", "rule"),
    [
        ("cells", lambda counts: counts.cells[::-1], "the cells of each label in order"),
        ("hits", lambda counts: counts.matches + 1, "at most as many hits as matches of a label"),
        ("by_bucket", lambda counts: counts.by_bucket[:, ::-1] * [1, 2], "at most as many hits as matches in a bucket"),
    ],
)
def test_counts_that_cannot_be_are_refused(field, change, rule):
    found, ends, Y = drawn(50)
    counts = Counts.of_tallies([tallied(found, ends, Y, np.ones(50, bool))], N_LABELS)
    with pytest.raises(StateError, match=rule):
        counts._replace(**{field: change(counts)}).check_state()
