"""Build the inverted index of ``kernels.py`` from rows, or from an index and further rows."""

import numpy as np

from labelspace.kernels.quantize import column_scales, round_columns
from labelspace.models.neighbors import kernels
from labelspace.models.neighbors.kernels import NewPostings, Postings
from labelspace.training.linear_weights import id_type
from labelspace.types import Csr, Floats, Longs

COMMON_SHARE = 0.25  # features in more documents than this are stored densely
# Features in a larger share of documents are stored by gaps of 8 bits; else a posting has 16 bits, or 32 bits above
# 2^16 documents. Below the share, so many gaps exceed 8 bits that they would take more memory.
FREQUENT_SHARE = (1 / 128, 1 / 384)
MIN_FREQUENT = 4  # documents of a frequent feature


def empty_index(n_features: int) -> Postings:
    """Return an index without rows."""
    nothing = np.zeros(n_features, np.int64)
    return _room_for(0, np.zeros(n_features, np.float32), nothing, nothing, np.dtype(np.int32))


def append_rows(index: Postings, X: Csr) -> Postings:
    """Return the index of the rows of an index, followed by the rows of X.

    It is as if built of all rows at once, except for numbers of the index that are rounded a second time: those of a
    feature of which X has the largest value.

    >>> import scipy.sparse as sp
    >>> first = append_rows(empty_index(1), sp.csr_matrix([[0.5]], dtype=np.float32))
    >>> append_rows(first, sp.csr_matrix([[1.0]], dtype=np.float32)).common.ravel().tolist()
    [64, 127]
    """
    n_before = len(index.common_norms)
    n = n_before + X.shape[0]
    by_feature = X.tocsc()
    scales = np.maximum(index.scales, column_scales(by_feature.data, by_feature.indptr))
    numbers = round_columns(by_feature.data, by_feature.indptr, scales)
    new = NewPostings(numbers, by_feature.indices + n_before, by_feature.indptr)
    factors = np.clip(index.scales / scales.astype(np.float64), 0, 1)  # a damaged index may have scales below 0
    df = np.empty(len(scales), np.int64)
    n_gaps = np.empty(len(scales), np.int64)
    kernels.posting_sizes(index, new, n, factors, df, n_gaps)
    joined = _room_for(n, scales, df, n_gaps, by_feature.indptr.dtype)
    kernels.write_postings(index, new, factors, joined)
    return joined


def _room_for(n: int, scales: Floats, df: Longs, n_gaps: Longs, start_type: np.dtype[np.generic]) -> Postings:
    """Return an index of n rows to write to, which says of each feature where it is stored.

    ``df`` are the postings of each feature, and ``n_gaps`` the gaps that they need if they are stored by gaps.
    """
    is_common = df > COMMON_SHARE * n
    is_frequent = df > max(FREQUENT_SHARE[n > 2**16] * n, MIN_FREQUENT)
    starts = np.append(0, np.cumsum(np.where(is_common | is_frequent, 0, df)))
    gap_starts = np.append(0, np.cumsum(np.where(is_frequent & ~is_common, n_gaps, 0)))
    n_values = int(starts[-1])
    n_stored_gaps = int(gap_starts[-1])
    return Postings(
        scales,
        np.empty(n_values, np.int8),
        np.empty(n_values, id_type(n)),
        starts.astype(start_type if n_values < 2**31 else np.int64),
        np.empty(n_stored_gaps, np.int8),
        np.empty(n_stored_gaps, np.uint8),
        gap_starts.astype(np.int32 if n_stored_gaps < 2**31 else np.int64),
        np.where(is_common, np.cumsum(is_common) - 1, -1).astype(np.int32),
        np.zeros((n, int(is_common.sum())), np.int8),
        np.empty(n, np.float32),
    )
