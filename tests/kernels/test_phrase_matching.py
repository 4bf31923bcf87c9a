"""Phrases in text against a plain twin: strings, sets and loops, no trie, no hashes."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelspace.kernels.phrase_matching import (
    LEAST_SHARE,
    N_BUCKETS,
    N_LEVELS,
    N_SOME,
    N_WHOLE,
    ONE,
    SOME,
    WHOLE,
    best_matches,
    count_matches,
    find_stems,
    form_stop,
    grades,
    scratch,
    stem_stop,
)
from labelspace.models.lexical.phrases import MOST_SHARING, index_phrases, phrases_of, read_stems
from labelspace.types import LabelSpace

ENDINGS = [
    ("eggs", "egg", "egg"),
    ("berries", "berr", "berr"),
    ("berry", "berr", "berr"),
    ("dishes", "dish", "dish"),
    ("potatoes", "potato", "potato"),
    ("glass", "glass", "glass"),
    ("asparagus", "asparagus", "asparagus"),
    ("analysis", "analysis", "analysis"),
    ("gas", "gas", "gas"),
    ("pies", "pie", "pie"),
    ("baking", "baking", "bak"),
    ("bake", "bake", "bak"),
    ("baked", "baked", "bak"),
    ("cutting", "cutting", "cut"),
    ("grilling", "grilling", "grill"),
    ("ring", "ring", "ring"),
    ("crème", "crème", "crèm"),
    ("c", "c", "c"),
    ("", "", ""),
]


@pytest.mark.parametrize(("word", "form", "stem"), ENDINGS)
def test_endings_are_cut(word, form, stem):
    text = np.frombuffer(bytearray(word.encode()), np.uint8)
    stop = form_stop(text, 0, text.size)
    assert text[:stop].tobytes().decode() == form
    assert text[: stem_stop(text, 0, stop)].tobytes().decode() == stem


def test_buckets_are_the_products_of_their_grades():
    assert np.prod(WHOLE) == N_WHOLE
    assert np.prod(SOME) == N_SOME
    assert grades(np.array([0, N_SOME - 1]), SOME).tolist() == [[0] * 5, [3, 1, 1, 3, 3]]


def forms_of(text):
    """Words of a text without their plural, and their stems."""
    found = []
    for word in re.findall(r"\w+", text.lower()):
        raw = np.frombuffer(bytearray(word.encode()), np.uint8)
        stop = form_stop(raw, 0, raw.size)
        found.append((raw[:stop].tobytes(), raw[: stem_stop(raw, 0, stop)].tobytes()))
    return [form for form, _ in found], [stem for _, stem in found]


def plain_phrases(labels):
    """(stems, forms, kind) of each phrase by label; phrases that too many labels share are left out."""
    best = {}
    for text, label, kind in phrases_of(labels):
        forms, stems = forms_of(text)
        if stems and kind < best.get((label, tuple(stems)), (9,))[0]:
            best[label, tuple(stems)] = (kind, forms)
    shared = [stems for _, stems in best]
    return [
        (label, list(stems), forms, kind)
        for (label, stems), (kind, forms) in best.items()
        if shared.count(stems) <= MOST_SHARING
    ]


def times_grade(times):
    return int(np.searchsorted([2, 3, 6], times, side="right"))


def place_grade(place):
    return int(np.searchsorted([4, 12, 32], place, side="right"))


def inside_longer(at, stop, spots):
    return any(a <= at and stop <= b and b - a > stop - at for _, a, b, _, _ in spots)


def plain_buckets(text, labels, weights, words):
    """Label -> bucket of one document."""
    phrases = plain_phrases(labels)
    forms, stems = forms_of(text)
    spots = [
        (label, at, at + len(phrase), kind, forms[at : at + len(phrase)] == phrase_forms)
        for label, phrase, phrase_forms, kind in phrases
        for at in range(len(stems))
        if stems[at : at + len(phrase)] == phrase
    ]
    found = {}
    for label in {spot[0] for spot in spots}:
        own = [spot for spot in spots if spot[0] == label]
        inside = [
            any(a <= at and stop <= b and b - a > stop - at for _, a, b, _, _ in spots) for _, at, stop, _, _ in own
        ]
        grade = (
            min(kind for *_, kind, _ in own), min(max(stop - at for _, at, stop, _, _ in own), 3) - 1, not all(inside),
            any(exact for *_, exact in own), times_grade(len(own)), place_grade(min(at for _, at, *_ in own)),
        )  # fmt: skip
        found[label] = int(np.ravel_multi_index(tuple(map(int, grade)), WHOLE))
    some = {}
    for label, phrase, _, _ in phrases:
        weight = [weights[words[stem]] for stem in phrase]
        hits = [stem in stems for stem in phrase]
        once = sum(weights[words[stem]] for stem in set(phrase) & set(stems))
        share = 1000 * int(np.dot(weight, hits)) // sum(weight)
        if label not in found and len(phrase) > 1 and once >= LEAST_SHARE * sum(weight):
            heaviest = max((stem for stem in phrase if stem in stems), key=lambda stem: weights[words[stem]])
            grade = (
                np.searchsorted([450, 600, 800], share, side="right"), hits[-1], sum(hits) > 1,
                times_grade(stems.count(heaviest)), place_grade(stems.index(heaviest)),
            )  # fmt: skip
            bucket = N_WHOLE + int(np.ravel_multi_index(tuple(map(int, grade)), SOME))
            some.setdefault(label, []).append((share, bucket))
    return found, some


WORDS = ["bread", "breads", "bake", "baking", "olive", "oil", "oils", "free", "gluten", "a", "x1"]
TEXT = st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join)
NAMES = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map("-".join), min_size=1, max_size=12, unique=True
)


@given(NAMES, st.lists(TEXT, min_size=1, max_size=4))
def test_buckets_equal_those_of_the_plain_twin(names, texts):
    labels = LabelSpace(names, [[name.split("-")[0] + ", " + name.replace("-", " ")] for name in names])
    phrases = index_phrases(labels, True)
    stems, forms, ends = read_stems(texts, True)
    every = " ".join(text for text, _, _ in phrases_of(labels))
    words = dict(zip(forms_of(every)[1], find_stems(read_stems([every], True)[0], phrases), strict=True))
    room = scratch(phrases, len(labels))
    for row, text in enumerate(texts):
        here = slice(ends[row - 1] if row else 0, ends[row])
        whole, some = plain_buckets(text, labels, phrases.weights, words)
        for label in range(len(labels)):
            by_bucket, by_label = np.zeros((N_BUCKETS, 2), np.int64), np.zeros((len(labels), N_LEVELS, 3), np.int64)
            count_matches(
                find_stems(stems[here], phrases), forms[here], np.array([ends[row] - here.start]),
                np.array([label], np.int32), np.array([0, 1]), phrases, room, np.full(N_BUCKETS, ONE),
                by_bucket, by_label,
            )  # fmt: skip
            right = np.flatnonzero(by_bucket[:, 1]).tolist()
            if label in whole:
                assert right == [whole[label]]
            elif label in some:
                most = max(share for share, _ in some[label])
                assert right[0] in [bucket for share, bucket in some[label] if share == most]
            else:
                assert right == []
            assert by_label[label, :, 1].sum() == len(right)
            assert (by_label[:, :, 2] == ONE * by_label[:, :, 0]).all()
            assert by_label[:, :, 0].sum() == by_bucket[:, 0].sum() == len({*whole, *some})
        assert not room.label_slot.any()
        assert not room.word_slot.any()
        assert not room.shared.any()


def test_the_best_come_first_and_the_rest_is_padding():
    labels = LabelSpace(["bread", "olive oil", "fish"])
    phrases = index_phrases(labels, True)
    stems, forms, ends = read_stems(["bread and olive oil", ""], True)
    shift = np.zeros((3, N_LEVELS), np.float32)
    shift[1] = 1
    top, scores = np.full((2, 3), 7, np.int32), np.zeros((2, 3), np.float32)
    room = scratch(phrases, 3)
    log_odds = np.zeros(N_BUCKETS, np.float32)
    best_matches(find_stems(stems, phrases), forms, ends, phrases, room, log_odds, shift, top, scores)
    assert top.tolist() == [[1, 0, -1], [-1, -1, -1]]
    np.testing.assert_allclose(scores[0, :2], [1 / (1 + np.exp(-1)), 0.5], rtol=1e-6)
    assert np.isneginf(scores[1]).all()
