"""Feature strings to rows and back."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.data import sparse_rows
from labelspace.data.sparse_rows import SparseRows, format_features, format_rows, parse_features
from labelspace.errors import DataError


def test_rows_sorted_summed_without_zeros():
    X = parse_features(["17:1 3:0.5", "", "  2:1\t2:0.25 4:0  ", "5:1 5:-1"], n_features=20)
    assert X.shape == (4, 20)
    assert (X.dtype, X.indices.dtype, X.indptr.dtype) == (np.float32, np.int32, np.int32)
    assert X.indices.tolist() == [3, 17, 2]
    assert X.data.tolist() == [0.5, 1.0, 1.25]
    assert X.indptr.tolist() == [0, 2, 2, 3, 3]
    assert X.has_canonical_format


def test_width_is_the_largest_index_plus_one_unless_given():
    assert parse_features(["3:1", "9:1"]).shape == (2, 10)
    assert parse_features(["", ""]).shape == (2, 0)
    assert parse_features([], n_features=4).shape == (0, 4)


def test_more_strings_than_one_batch(monkeypatch):
    monkeypatch.setattr(sparse_rows, "_BATCH", 3)
    strings = [f"{row}:1" for row in range(10)]
    assert (parse_features(strings).toarray() == np.eye(10)).all()
    with pytest.raises(DataError, match="row 7: expected index:value"):
        parse_features([*strings[:7], "x", *strings[8:]])


@pytest.mark.parametrize(
    ("string", "message"),
    [
        (
            "5:1 20:1",
            r"row 1: expected index:value with an index from 0 to 19, but found '20:1'; correct .* count from 0",
        ),
        ("-1:1", r"row 1: expected index:value with an index from 0 to 19, but found '-1:1'"),
        ("wörd", r"row 1: expected index:value with an index from 0 to 19, but found 'wörd'"),
        ("3:nan", r"row 1: expected a finite number after the colon, but found '3:nan'; write it like 1, -0.5 or 1e-5"),
        ("3:1e999 4:1", r"row 1: expected a finite number after the colon, but found '3:1e999'"),
        (
            "3:2e38 3:2e38",
            r"row 1: expected a finite sum of the values of a repeated index, but found .*; write each index once",
        ),
        ("3:1\n4:1", r"row 1: expected features on one line, but '3:1\\n4:1' has a line end; separate"),
    ],
)
def test_malformed_strings(string, message):
    with pytest.raises(DataError, match=message):
        parse_features(["1:1", string], n_features=20)


def test_the_caller_says_where_rows_stand():
    with pytest.raises(DataError, match=r"^chat\.jsonl:40: expected a finite"):
        parse_features(["1:inf"], location=lambda row: f"chat.jsonl:{row + 40}")


def test_no_columns_at_all():
    with pytest.raises(DataError, match=r"expected label ids \(the header says there are none\) .*, but found '0'"):
        SparseRows(5, 0, str).add(b"0 1:1\n", limit=1)


def test_blocks_are_whole_lines_and_join_to_everything(monkeypatch):
    X = sp.random(50, 30, 0.3, format="csr", dtype=np.float32, random_state=1)
    Y = sp.random(50, 8, 0.3, format="csr", dtype=np.float32, random_state=2)
    joined = b"".join(format_rows(X, Y))
    monkeypatch.setattr(sparse_rows, "_BLOCK_ENTRIES", 16)
    blocks = list(format_rows(X, Y))
    assert len(blocks) > 20
    assert all(block.endswith(b"\n") for block in blocks)
    assert b"".join(blocks) == joined


def test_strings_read_back_exactly():
    X = sp.random(40, 25, 0.2, format="csr", dtype=np.float32, random_state=3)
    X.indices = X.indices.astype(np.int64)
    assert (parse_features(list(format_features(X)), n_features=25) != X).nnz == 0


def test_too_many_columns_to_write():
    with pytest.raises(
        DataError, match="at most 2147483647 features can be written, but there are 3000000000; hash them"
    ):
        list(format_features(sp.csr_matrix((1, 3_000_000_000), dtype=np.float32)))


def test_only_finite_features_are_written():
    with pytest.raises(
        DataError, match="features must be finite to be written, but some are NaN or infinite; replace them"
    ):
        list(format_features(sp.csr_matrix([[np.nan]])))
