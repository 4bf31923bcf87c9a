"""Views side by side: ``words+chars`` has the columns of both, so that a linear classifier reads words and their parts.

The rows of each have norm 1. The first has a quarter of the squared norm of the joined row: words are few and say
much, and character n-grams are many and say the same again.
"""

from collections.abc import Sequence

import scipy.sparse as sp

from labelspace.errors import DataError
from labelspace.features.normalize import mark_unit_rows, normalize_rows
from labelspace.features.sparse_matrix import csr_matrix
from labelspace.kernels.join_columns import join_rows
from labelspace.types import Csr

FIRST_SHARE = 0.25


def parts(name: str) -> list[str]:
    """The views that a view is joined of.

    >>> parts("words+chars"), parts("words")
    (['words', 'chars'], ['words'])
    """
    return name.split("+")


def join(tables: Sequence[Csr]) -> Csr:
    """The columns of two sparse matrices side by side, in rows of norm 1.

    >>> a, b = sp.csr_matrix([[1.0, 0.0]], dtype="float32"), sp.csr_matrix([[0.0, 1.0]], dtype="float32")
    >>> join([a, b]).toarray().round(2).tolist()
    [[0.5, 0.0, 0.0, 0.8700000047683716]]
    """
    left, right = tables
    if not (sp.issparse(left) and sp.issparse(right)):
        raise DataError("views that are joined must be sparse, but one is dense; give the member one view")
    left, right = normalize_rows(left), normalize_rows(right)
    rows = join_rows(
        left.data, left.indices, left.indptr, right.data, right.indices, right.indptr, left.shape[1], FIRST_SHARE
    )
    return mark_unit_rows(csr_matrix(*rows, left.shape[1] + right.shape[1]))
