"""MinHash against plain Python: sets of word triples."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelspace.data.checks.kernels import (
    compare_in_band,
    folded_hashes,
    minhash_signatures,
    shingle_hashes,
    shingle_similarities,
)
from tests.kernels.hash_twin import MASK, PRIME, SEED, hash_word, mix_bits

WORD = re.compile(r"[a-z0-9\x80-\U0010ffff]+")
TEXTS = st.lists(st.text("ab1é日 -\t\n."), min_size=1, max_size=6)


def encoded(texts):
    parts = [text.encode() for text in texts]
    return np.frombuffer(bytearray().join(parts), np.uint8), np.cumsum([len(part) for part in parts], dtype=np.int64)


def shingles(text, width):
    words = [hash_word(word) for word in WORD.findall(text)]
    hashes = []
    for start in range(max(len(words) - width + 1, min(len(words), 1))):
        h = SEED
        for word in words[start : start + width]:
            h = mix_bits((h ^ word) * PRIME & MASK)
        hashes.append(h)
    return hashes


def signature(hashes, n_bins):
    smallest = [None] * n_bins
    for h in hashes:
        at, value = ((h >> 32) * n_bins) >> 32, h & 0xFFFFFFFF
        smallest[at] = value if smallest[at] is None else min(smallest[at], value)
    if len(hashes) < 2:
        return [0] * n_bins
    out = []
    for b in range(n_bins):
        at, tries = b, 0
        while smallest[at] is None:
            tries += 1
            h = mix_bits(((b + 1) * 0x9E3779B97F4A7C15 & MASK) ^ (tries * PRIME & MASK))
            at = ((h >> 32) * n_bins) >> 32
        out.append(smallest[at] & 0xFFFF)
    return out


@given(TEXTS, st.integers(1, 4))
def test_shingles(texts, width):
    text, ends = encoded(texts)
    for document, stop, start in zip(texts, ends, [0, *ends], strict=False):
        out = np.zeros((stop - start) // 2 + 1, np.uint64)
        n = shingle_hashes(text, start, stop, width, out)
        assert out[:n].tolist() == shingles(document, width)


@given(TEXTS)
def test_signatures(texts):
    signatures = np.zeros((len(texts), 12), np.uint16)
    sizes = minhash_signatures(*encoded(texts), 2, 2, signatures)
    assert sizes.tolist() == [len(shingles(text, 2)) for text in texts]
    assert signatures.tolist() == [signature(shingles(text, 2), 12) for text in texts]


@given(TEXTS)
def test_folded_hashes(texts):
    assert folded_hashes(*encoded(texts)).tolist() == [hash_word(" ".join(text.split())) for text in texts]


@given(st.text("ab .", max_size=30), st.text("ab .", max_size=30), st.integers(1, 3))
def test_similarities(a, b, width):
    first, second = set(shingles(a, width)), set(shingles(b, width))
    expected = len(first & second) / max(len(first | second), 1)
    assert shingle_similarities(*encoded([a, b, b, a]), width).tolist() == [expected, expected]


def test_bins_agree_as_often_as_shingles():
    words = [f"w{i}" for i in range(400)]
    texts = [" ".join(words[:300]), " ".join(words[100:])]
    signatures = np.zeros((2, 4096), np.uint16)
    minhash_signatures(*encoded(texts), 1, 1, signatures)
    assert (signatures[0] == signatures[1]).mean() == pytest.approx(0.5, abs=0.05)


def test_a_query_is_compared_with_the_first_and_the_last_target_of_its_band():
    signatures = np.array([[1, 1, 1, 1], [1, 1, 1, 2], [1, 1, 2, 2], [1, 1, 1, 1], [9, 9, 9, 9]], np.uint16)
    keys = np.array([5, 5, 5, 5, 7], np.uint64)
    best, agreement = np.full(5, -1, np.int32), np.full(5, 1, np.int32)
    every = np.ones(5, bool)
    compare_in_band(np.arange(5), keys, every, every & (np.arange(5) < 3), signatures, best, agreement)
    assert best.tolist() == [-1, 0, 1, 0, -1]
    assert agreement.tolist() == [1, 3, 3, 4, 1]
