"""Phrases of labels found in documents: light stems, a trie of phrases, and words that phrase and document share.

The trie is a table of edges, as of ``kernels.ngrams.index_keys``: the key of the edge from node n by word w is
n * (number of words) + w + 1, its place is the node it leads to; node 0 is the root. A word is the id of a stem, -1 for
one in no phrase. A form is the hash of a word less its plural ending: phrases match by stems, and exactly by forms.

What is found of a label in a document becomes a bucket, a number that stands for one kind of evidence:
a whole phrase by kind, words in it, standing free or only inside longer phrases, exact or by stems, how often, how
early; else some words of a phrase by their share of its weight, last word among them, more than one, how often, how
early.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from labelspace.kernels.ngrams import find_key
from labelspace.kernels.tokenize import Bytes, Ids, Offsets, hash_bytes
from labelspace.kernels.topk import push, sort_best_first
from labelspace.types import Floats

WHOLE = (3, 3, 2, 2, 4, 4)
"""Grades of a whole phrase: kind, words, free, exact, times, place."""
SOME = (4, 2, 2, 4, 4)
"""Grades of some words of a phrase: share, last word, words, times, place."""
N_WHOLE, N_SOME = 576, 256
N_BUCKETS = N_WHOLE + N_SOME
N_LEVELS = 5
LEAST_SHARE = 0.3  # of a phrase's weight: less says next to nothing
ONE = 2**16  # a probability of one, in whole numbers: their sums do not depend on the order

_LABEL, _KIND, _WORDS, _FREE, _EXACT, _TIMES, _PLACE, _SHARE, _LAST, _HITS, _SOME_TIMES, _SOME_PLACE, _RIGHT = range(13)
_S, _E, _Y, _I, _D, _N, _G, _U, _L, _Z, _X, _H, _O = (np.uint8(ord(letter)) for letter in "seyidngulzxho")


class Phrases(NamedTuple):
    """The phrases of all labels, indexed; phrases stand in order of their labels."""

    stems: Offsets  # table from the hash of a stem to its word
    edges: Offsets  # table of the trie
    node_ends: Offsets  # (n_nodes + 1,) phrases that end at the nodes before
    node_phrases: Ids  # phrases by node
    owners: Ids  # (n_phrases,) the label of each
    kinds: Ids  # (n_phrases,) 0 name, 1 synonym, 2 part of one
    ends: Offsets  # (n_phrases + 1,) words up to each phrase
    words: Ids  # of all phrases
    forms: Offsets  # of these words
    totals: Ids  # (n_phrases,) sum of the weights of the words
    post_ends: Offsets  # (n_words + 1,)
    posts: Ids  # phrases of several words, by word
    weights: Ids  # (n_words,) the rarer among phrases, the heavier


class Scratch(NamedTuple):
    """Room for one document; slots and weights are 0 before and after each."""

    label_slot: Ids  # (n_labels,) the row of a label in ``found``, plus one
    word_slot: Ids  # (n_words,) the row of a word in ``heard``, plus one
    shared: Ids  # (n_phrases,) weight of the words that a phrase and the document share
    found: Ids  # (n_labels, 13) evidence
    heard: Ids  # (n_words, 3) word, times, place
    touched: Ids  # (n_phrases,) phrases that share a word


def scratch(phrases: Phrases, n_labels: int) -> Scratch:
    """Fresh room; memory is taken by what is touched of it."""
    n_phrases, n_words = phrases.owners.size, phrases.weights.size
    return Scratch(
        np.zeros(n_labels, np.int32),
        np.zeros(n_words, np.int32),
        np.zeros(n_phrases, np.int32),
        np.empty((n_labels, 13), np.int32),
        np.empty((n_words, 3), np.int32),
        np.empty(n_phrases, np.int32),
    )


@njit(cache=True, nogil=True, inline="always")
def _undoubled(text: Bytes, start: int, stop: int) -> int:
    """Without the second of two equal last letters, as in cutt(ing); l, s and z are double by themselves."""
    last = text[stop - 1]
    double = stop - start > 3 and last == text[stop - 2] and last != _L and last != _S and last != _Z
    return stop - 1 if double else stop


@njit(cache=True, nogil=True)
def form_stop(text: Bytes, start: int, stop: int) -> int:
    """Where a word ends without its plural: s, es, ies, and the y of the singular."""
    n = stop - start
    if n > 3 and text[stop - 1] == _S:
        before, third = text[stop - 2], text[stop - 3]
        if before == _E and n > 4 and third == _I:
            return stop - 3
        if before == _E and n > 4 and (third == _S or third == _X or third == _Z or third == _H or third == _O):
            stop -= 2
        elif before != _S and before != _U and before != _I:
            stop -= 1
    return stop - 1 if stop - start > 3 and text[stop - 1] == _Y else stop


@njit(cache=True, nogil=True)
def stem_stop(text: Bytes, start: int, stop: int) -> int:
    """Where the form of a word ends without ing, ed and a last e."""
    n = stop - start
    if n > 5 and text[stop - 1] == _G and text[stop - 2] == _N and text[stop - 3] == _I:
        stop = _undoubled(text, start, stop - 3)
    elif n > 4 and text[stop - 1] == _D and text[stop - 2] == _E:
        stop = _undoubled(text, start, stop - 2)
    return stop - 1 if stop - start > 3 and text[stop - 1] == _E else stop


@njit(cache=True, nogil=True)
def hash_stems(text: Bytes, starts: Offsets, stops: Offsets, stemmed: bool) -> tuple[Offsets, Offsets]:
    """The hashes of the stem and of the form of each word; both are of the whole word unless ``stemmed``."""
    stems, forms = np.empty(starts.size, np.int64), np.empty(starts.size, np.int64)
    for t in range(starts.size):
        start, stop = starts[t], stops[t]
        if stemmed:
            stop = form_stop(text, start, stop)
        forms[t] = np.int64(hash_bytes(text, start, stop))
        if stemmed:
            stop = stem_stop(text, start, stop)
        stems[t] = np.int64(hash_bytes(text, start, stop))
    return stems, forms


@njit(cache=True, nogil=True, inline="always")
def _row_of(label: int, room: Scratch, n: int) -> tuple[int, int]:
    """The evidence row of a label, a new one where it has none, and the number of rows."""
    slot = room.label_slot[label]
    if slot == 0:
        n += 1
        slot = n
        room.label_slot[label] = n
        for i in range(13):
            room.found[n - 1, i] = 0
        room.found[n - 1, _LABEL], room.found[n - 1, _KIND] = label, 2
    return slot - 1, n


@njit(cache=True, nogil=True)
def _find_whole(words: Ids, forms: Offsets, begin: int, end: int, phrases: Phrases, room: Scratch) -> int:
    """Evidence of every phrase that stands in words begin..end; gives the number of labels found."""
    n, reach, n_words = 0, -1, phrases.weights.size
    for at in range(begin, end):
        node, stop, longest = 0, at, at
        while stop < end and words[stop] >= 0:
            node = find_key(phrases.edges, node * n_words + words[stop] + 1)
            if node < 0:
                break
            stop += 1
            if phrases.node_ends[node + 1] > phrases.node_ends[node]:
                longest = stop
        node, stop = 0, at
        while stop < longest:
            node = find_key(phrases.edges, node * n_words + words[stop] + 1)
            stop += 1
            free = stop == longest and longest > reach
            for j in range(phrases.node_ends[node], phrases.node_ends[node + 1]):
                phrase = phrases.node_phrases[j]
                exact = True
                for i in range(1, stop - at + 1):
                    exact &= forms[stop - i] == phrases.forms[phrases.ends[phrase + 1] - i]
                row, n = _row_of(phrases.owners[phrase], room, n)
                seen = room.found[row]
                if seen[_TIMES] == 0:
                    seen[_PLACE] = at - begin
                seen[_KIND] = min(seen[_KIND], phrases.kinds[phrase])
                seen[_WORDS] = max(seen[_WORDS], stop - at)
                seen[_FREE] |= free
                seen[_EXACT] |= exact
                seen[_TIMES] += 1
        reach = max(reach, longest)
    return n


@njit(cache=True, nogil=True)
def _find_some(words: Ids, begin: int, end: int, phrases: Phrases, room: Scratch, n: int) -> int:
    """Add the evidence of phrases of which some words stand in words begin..end, in any order."""
    n_heard, n_touched = 0, 0
    for at in range(begin, end):
        word = words[at]
        if word < 0:
            continue
        slot = room.word_slot[word]
        if slot == 0:
            room.heard[n_heard, 0], room.heard[n_heard, 1], room.heard[n_heard, 2] = word, 1, at - begin
            n_heard += 1
            room.word_slot[word] = n_heard
        else:
            room.heard[slot - 1, 1] += 1
    for i in range(n_heard):
        word = room.heard[i, 0]
        weight = phrases.weights[word]
        for j in range(phrases.post_ends[word], phrases.post_ends[word + 1]):
            phrase = phrases.posts[j]
            if room.shared[phrase] == 0:
                room.touched[n_touched] = phrase
                n_touched += 1
            room.shared[phrase] += weight
    for i in range(n_touched):
        phrase = room.touched[i]
        if room.shared[phrase] >= LEAST_SHARE * phrases.totals[phrase]:
            row, n = _row_of(phrases.owners[phrase], room, n)
            if room.found[row, _TIMES] == 0:  # whole phrases say more
                _grade_some(phrase, phrases, room, room.found[row])
        room.shared[phrase] = 0
    for i in range(n_heard):
        room.word_slot[room.heard[i, 0]] = 0
    return n


@njit(cache=True, nogil=True)
def _grade_some(phrase: int, phrases: Phrases, room: Scratch, seen: Ids) -> None:
    """Take the shared words of a phrase as the evidence, if their share is larger than what was seen so far."""
    weight, hits, heaviest, slot = 0, 0, 0, 0
    for i in range(phrases.ends[phrase], phrases.ends[phrase + 1]):
        word = phrases.words[i]
        slot = room.word_slot[word]
        if slot:
            weight, hits = weight + phrases.weights[word], hits + 1
            if heaviest == 0 or phrases.weights[word] > phrases.weights[room.heard[heaviest - 1, 0]]:
                heaviest = slot
    share = 1000 * weight // phrases.totals[phrase]
    if share > seen[_SHARE]:
        seen[_SHARE], seen[_LAST], seen[_HITS] = share, slot > 0, hits
        seen[_SOME_TIMES], seen[_SOME_PLACE] = room.heard[heaviest - 1, 1], room.heard[heaviest - 1, 2]


@njit(cache=True, nogil=True, inline="always")
def _times_grade(times: int) -> int:
    return (times > 1) + (times > 2) + (times > 5)


@njit(cache=True, nogil=True, inline="always")
def _place_grade(place: int) -> int:
    return (place >= 4) + (place >= 12) + (place >= 32)


@njit(cache=True, nogil=True)
def _bucket(seen: Ids) -> tuple[int, int]:
    """The bucket of an evidence row, and its level: what a label's own record is kept by."""
    if seen[_TIMES] > 0:
        bucket = (seen[_KIND] * 3 + min(seen[_WORDS], 3) - 1) * 2 + seen[_FREE]
        bucket = ((bucket * 2 + seen[_EXACT]) * 4 + _times_grade(seen[_TIMES])) * 4 + _place_grade(seen[_PLACE])
        return bucket, (0 if seen[_EXACT] else 1) if seen[_FREE] else 2
    share = (seen[_SHARE] >= 450) + (seen[_SHARE] >= 600) + (seen[_SHARE] >= 800)
    bucket = (share * 2 + seen[_LAST]) * 2 + (seen[_HITS] > 1)
    bucket = (bucket * 4 + _times_grade(seen[_SOME_TIMES])) * 4 + _place_grade(seen[_SOME_PLACE])
    return N_WHOLE + bucket, 3 if seen[_SHARE] >= 500 else 4


@njit(cache=True, nogil=True)
def find_stems(stems: Offsets, phrases: Phrases) -> Ids:
    """The word of each stem, by its hash."""
    words = np.empty(stems.size, np.int32)
    for t in range(stems.size):
        words[t] = find_key(phrases.stems, stems[t])
    return words


@njit(cache=True, nogil=True)
def count_matches(
    words: Ids,
    forms: Offsets,
    ends: Offsets,
    truth: Ids,
    truth_ends: Offsets,
    phrases: Phrases,
    room: Scratch,
    chances: Offsets,
    by_bucket: Offsets,
    by_label: Offsets,
) -> None:
    """Count how often each kind of evidence was found, and was right.

    Args:
        words: word of each token.
        forms: form of each token.
        ends: tokens up to the end of each document.
        truth: labels of all documents, one after the other.
        truth_ends: (n + 1,) labels up to each document.
        phrases: what to look for.
        room: scratch.
        chances: (n_buckets,) expected share of right ones, in units of 1 / ONE.
        by_bucket: (n_buckets, 2) found and right; added to.
        by_label: (n_labels, n_levels, 3) found, right, expected right in units of 1 / ONE; added to, may have no rows.
    """
    begin = 0
    for doc in range(ends.size):
        n = _find_whole(words, forms, begin, ends[doc], phrases, room)
        n = _find_some(words, begin, ends[doc], phrases, room, n)
        begin = ends[doc]
        for i in range(truth_ends[doc], truth_ends[doc + 1]):
            slot = room.label_slot[truth[i]]
            if slot:
                room.found[slot - 1, _RIGHT] = 1
        for row in range(n):
            seen = room.found[row]
            label = seen[_LABEL]
            room.label_slot[label] = 0
            bucket, level = _bucket(seen)
            by_bucket[bucket, 0] += 1
            by_bucket[bucket, 1] += seen[_RIGHT]
            if by_label.shape[0]:
                by_label[label, level, 0] += 1
                by_label[label, level, 1] += seen[_RIGHT]
                by_label[label, level, 2] += chances[bucket]


@njit(cache=True, nogil=True)
def best_matches(
    words: Ids,
    forms: Offsets,
    ends: Offsets,
    phrases: Phrases,
    room: Scratch,
    log_odds: Floats,
    shift: Floats,
    labels: Ids,
    scores: Floats,
) -> None:
    """The best labels of each document into rows of ``labels`` and ``scores``, best first.

    The score is the logistic function of the bucket's ``log_odds`` plus the label's ``shift`` at the bucket's level.
    """
    begin = 0
    for doc in range(ends.size):
        n = _find_whole(words, forms, begin, ends[doc], phrases, room)
        n = _find_some(words, begin, ends[doc], phrases, room, n)
        begin = ends[doc]
        size = 0
        for row in range(n):
            label = room.found[row, _LABEL]
            room.label_slot[label] = 0
            bucket, level = _bucket(room.found[row])
            score = np.float32(1.0 / (1.0 + np.exp(-np.float64(log_odds[bucket] + shift[label, level]))))
            size = push(scores[doc], labels[doc], size, score, label)
        sort_best_first(scores[doc], labels[doc], size)


def grades(bucket: npt.NDArray[np.int64], sizes: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """The grades a bucket stands for, one column each."""
    return np.stack(np.unravel_index(bucket, sizes), axis=1)
