"""Holding documents out."""

import pytest
import scipy.sparse as sp

from labelspace.data.splits import hold_out
from labelspace.errors import DataError, ParameterError
from labelspace.types import Dataset, LabelSpace


def documents(n):
    return Dataset(sp.identity(n, format="csr", dtype="f4"), LabelSpace.numbered(n), texts=[str(i) for i in range(n)])


def test_parts_are_disjoint_ordered_and_whole():
    rest, held_out = hold_out(documents(100), 0.3, seed=1)
    assert (len(rest), len(held_out)) == (70, 30)
    numbers = [int(text) for text in rest.texts], [int(text) for text in held_out.texts]
    assert all(part == sorted(part) for part in numbers)
    assert sorted(numbers[0] + numbers[1]) == list(range(100))
    assert held_out.Y.indices.tolist() == numbers[1]  # labels go with their documents


def test_the_seed_decides():
    first, again, other = (hold_out(documents(50), 0.5, seed)[1].texts for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize(
    ("n", "fraction", "held_out"), [(2, 0.001, 1), (2, 0.999, 1), (3, 0.5, 2), (10, 0.01, 1), (10, 0.99, 9)]
)
def test_no_part_is_empty(n, fraction, held_out):
    assert [len(part) for part in hold_out(documents(n), fraction, seed=0)] == [n - held_out, held_out]


def test_one_document_cannot_be_split():
    with pytest.raises(DataError, match="a split needs at least 2 documents, but there are 1; give more"):
        hold_out(documents(1), 0.5, seed=0)


@pytest.mark.parametrize("fraction", [0, 1, -0.1, 1.5, float("nan")])
def test_the_fraction_lies_between_0_and_1(fraction):
    with pytest.raises(
        ParameterError, match="the held-out fraction must be between 0 and 1, but is .*; set for example 0.1"
    ):
        hold_out(documents(10), fraction, seed=0)
