"""Phrases in text against a plain twin: strings, sets and loops, no trie, no hashes."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelspace.estimator.state_constraints import StateError
from labelspace.features.stems import NO_STEMMING
from labelspace.kernels.knn import LabelSets
from labelspace.kernels.ngrams import lookup_keys
from labelspace.models.lexical.kernels import (
    FULL_GRADES,
    MIN_SHARE,
    N_BUCKETS,
    N_FULL_BUCKETS,
    N_LEVELS,
    N_PARTIAL_BUCKETS,
    PARTIAL_GRADES,
    bucket_grades,
    empty_scratch,
    find_matches,
    form_stop,
    match_keys,
    stem_stop,
    topk_matches,
)
from labelspace.models.lexical.phrases import MAX_LABELS_PER_PHRASE, WordStems, index_phrases, phrases_of
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
    assert np.prod(FULL_GRADES) == N_FULL_BUCKETS
    assert np.prod(PARTIAL_GRADES) == N_PARTIAL_BUCKETS
    assert bucket_grades(np.array([0, N_PARTIAL_BUCKETS - 1]), PARTIAL_GRADES).tolist() == [[0] * 5, [3, 1, 1, 3, 3]]


def forms_of(text):
    """Words of a text without their plural, and their stems."""
    buckets = []
    for word in re.findall(r"\w+", text.lower()):
        raw = np.frombuffer(bytearray(word.encode()), np.uint8)
        stop = form_stop(raw, 0, raw.size)
        buckets.append((raw[:stop].tobytes(), raw[: stem_stop(raw, 0, stop)].tobytes()))
    return [form for form, _ in buckets], [stem for _, stem in buckets]


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
        if shared.count(stems) <= MAX_LABELS_PER_PHRASE
    ]


def count_grade(count):
    return int(np.searchsorted([2, 3, 6], count, side="right"))


def position_grade(position):
    return int(np.searchsorted([4, 12, 32], position, side="right"))


def is_inside_longer(at, stop, spots):
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
    buckets = {}
    for label in {spot[0] for spot in spots}:
        matches = [spot for spot in spots if spot[0] == label]
        inside = [is_inside_longer(at, stop, spots) for _, at, stop, _, _ in matches]
        grade = (
            min(kind for *_, kind, _ in matches), min(max(stop - at for _, at, stop, _, _ in matches), 3) - 1,
            not all(inside), any(exact for *_, exact in matches), count_grade(len(matches)),
            position_grade(min(at for _, at, *_ in matches)),
        )  # fmt: skip
        buckets[label] = int(np.ravel_multi_index(tuple(map(int, grade)), FULL_GRADES))
    partial = {}
    for label, phrase, _, _ in phrases:
        weight = [weights[words[stem]] for stem in phrase]
        matched = [stem in stems for stem in phrase]
        once = sum(weights[words[stem]] for stem in set(phrase) & set(stems))
        share = 1000 * int(np.dot(weight, matched)) // sum(weight)
        if label not in buckets and len(phrase) > 1 and once >= MIN_SHARE * sum(weight):
            heaviest = max((stem for stem in phrase if stem in stems), key=lambda stem: weights[words[stem]])
            grade = (
                np.searchsorted([450, 600, 800], share, side="right"), matched[-1], sum(matched) > 1,
                count_grade(stems.count(heaviest)), position_grade(stems.index(heaviest)),
            )  # fmt: skip
            bucket = N_FULL_BUCKETS + int(np.ravel_multi_index(tuple(map(int, grade)), PARTIAL_GRADES))
            partial.setdefault(label, []).append((share, bucket))
    return buckets, partial


WORDS = ["bread", "breads", "bake", "baking", "olive", "oil", "oils", "free", "gluten", "a", "x1"]
TEXT = st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join)
NAMES = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map("-".join), min_size=1, max_size=12, unique=True
)


@given(NAMES, st.lists(TEXT, min_size=1, max_size=4))
def test_buckets_equal_those_of_the_plain_twin(names, texts):
    labels = LabelSpace(names, [[name.split("-")[0] + ", " + name.replace("-", " ")] for name in names])
    phrases = index_phrases(labels, WordStems())
    stems, forms, ends = WordStems().read(texts)
    every = " ".join(text for text, _, _ in phrases_of(labels))
    words = dict(zip(forms_of(every)[1], lookup_keys(phrases.stems, WordStems().read([every])[0]), strict=True))
    scratch, is_true = empty_scratch(phrases, len(labels)), np.zeros(len(labels), bool)
    for row, text in enumerate(texts):
        tokens = slice(ends[row - 1] if row else 0, ends[row])
        full, partial = plain_buckets(text, labels, phrases.weights, words)
        one_end = np.array([ends[row] - tokens.start])
        found = find_matches(lookup_keys(phrases.stems, stems[tokens]), forms[tokens], one_end, phrases, scratch)
        for label in range(len(labels)):
            by_bucket = np.zeros((N_BUCKETS, 2), np.int64)
            truth = LabelSets(np.array([label], np.int32), np.array([0, 1]))
            keys = match_keys(*found, truth, is_true, np.ones(1, bool), by_bucket)
            assert not is_true.any()
            correct = np.flatnonzero(by_bucket[:, 1]).tolist()
            if label in full:
                assert correct == [full[label]]
            elif label in partial:
                best_share = max(share for share, _ in partial[label])
                assert correct[0] in [bucket for share, bucket in partial[label] if share == best_share]
            else:
                assert correct == []
            matched, bucket, level, hit = np.unravel_index(keys, (len(labels), N_BUCKETS, N_LEVELS, 2))
            assert np.array_equal(np.stack([matched, bucket, level], axis=1), found[0])
            assert np.array_equal(hit, matched == label)
            assert by_bucket[:, 0].sum() == len(keys) == len({*full, *partial})
        assert not scratch.label_slot.any()
        assert not scratch.word_slot.any()
        assert not scratch.shared.any()


def test_the_best_come_first_and_the_rest_is_padding():
    labels = LabelSpace(["bread", "olive oil", "fish"])
    phrases = index_phrases(labels, WordStems())
    stems, forms, ends = WordStems().read(["bread and olive oil", ""])
    shift = np.zeros((3, N_LEVELS), np.float32)
    shift[1] = 1
    top, scores = np.full((2, 3), 7, np.int32), np.zeros((2, 3), np.float32)
    scratch = empty_scratch(phrases, 3)
    log_odds = np.zeros(N_BUCKETS, np.float32)
    found = find_matches(lookup_keys(phrases.stems, stems), forms, ends, phrases, scratch)
    topk_matches(*found, log_odds, shift, top, scores)
    assert top.tolist() == [[1, 0, -1], [-1, -1, -1]]
    np.testing.assert_allclose(scores[0, :2], [1 / (1 + np.exp(-1)), 0.5], rtol=1e-6)
    assert np.isneginf(scores[1]).all()


def spoiled(phrases, **arrays):
    return phrases._replace(**{name: np.array(values, np.int32) for name, values in arrays.items()})


def test_a_trie_that_a_stranger_wrote_is_refused_where_a_walk_would_leave_it():
    phrases = index_phrases(LabelSpace(["red wine", "red fish"]), WordStems(NO_STEMMING))
    phrases.check_state()
    assert phrases.children.tolist() == [0, 1, 3, 3, 3]  # red, then fish and wine
    for children in ([0, 0, 3, 3, 3], [0, 1, 1, 3, 3], [0, 1, 3, 3, 4], [0], [0, 1, 3, 3]):
        with pytest.raises(StateError, match="trie"):
            spoiled(phrases, children=children).check_state()
    with pytest.raises(StateError, match="order of their words"):
        spoiled(phrases, edge_words=phrases.edge_words[[0, 2, 1]]).check_state()
    with pytest.raises(StateError, match="depth"):
        spoiled(phrases, node_phrases=[1, 0], ends=[0, 1, 4]).check_state()
