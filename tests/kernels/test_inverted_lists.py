import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from labelspace.kernels.bit_planes import choose_lists


def twin(scores, starts, n_rows):
    """The lists by score, then by number, until they have enough rows."""
    sizes, kept, total = np.diff(starts), [], 0
    for at in np.lexsort([np.arange(len(scores)), -scores]):
        if total >= n_rows:
            break
        kept.append(at)
        total += sizes[at]
    return sorted(kept)


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=40), st.integers(1, 200), st.integers(0, 2**32 - 1),
    st.booleans(),
)  # fmt: skip
def test_the_lists_of_highest_score_are_read_until_they_have_enough_rows(sizes, n_rows, seed, ties):
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal((3, len(sizes))).astype(np.float32)
    if ties:
        scores = np.round(scores)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    out = np.empty(scores.shape, np.int32)
    choose_lists(scores, starts, n_rows, out)
    for row, found in zip(scores, out, strict=True):
        expected = twin(row, starts, n_rows)
        assert found[: len(expected)].tolist() == expected
        assert (found[len(expected) :] == -1).all()
