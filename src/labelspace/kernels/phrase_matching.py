"""Match label phrases in documents: light stems, a trie of phrases, and words that phrase and document share.

The trie is a table of edges, see ``kernels.ngrams.build_key_table``: the key of the edge from node n by word w is
n * (number of words) + w + 1, its value is the child node; node 0 is the root. A word is the id of a stem, -1 if it is
in no phrase. A form is the hash of a word without its plural ending: phrases match by stems, and exactly by forms.

The evidence for a label in a document becomes a bucket, a number for one combination of grades. For a full match of a
phrase: kind, number of words, free or only inside longer phrases, exact or by stems, count, position. Else, for a
partial match: share of the phrase's weight, last word matched, more than one word, count, position.
"""

from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt

from labelspace.kernels.compiled import integer, kernel, part
from labelspace.kernels.complete_link import node_levels
from labelspace.kernels.ngrams import is_key_table, lookup_key
from labelspace.kernels.tokenize import Bytes, Ids, Offsets, hash_bytes
from labelspace.kernels.topk import push, sort_best_first
from labelspace.state_constraints import are_sorted_spans, array, ids, must, offsets
from labelspace.types import Floats

FULL_GRADES = (3, 3, 2, 2, 4, 4)
"""Grades of a full match: kind, words, free, exact, count, position."""
PARTIAL_GRADES = (4, 2, 2, 4, 4)
"""Grades of a partial match: share, last word, words, count, position."""
N_FULL_BUCKETS, N_PARTIAL_BUCKETS = 576, 256
N_BUCKETS = N_FULL_BUCKETS + N_PARTIAL_BUCKETS
N_LEVELS = 5
MAX_WEIGHT = 100_000  # of a word, so that the weights of a phrase add up in 32 bits
MIN_SHARE = 0.3  # of a phrase's weight: less is no evidence
PROBABILITY_SCALE = 2**16  # probability 1 as an integer: integer sums do not depend on the order

_LABEL, _KIND, _WORDS, _FREE, _EXACT, _COUNT, _POS, _SHARE, _LAST, _HITS, _PART_COUNT, _PART_POS, _CORRECT = range(13)
_S, _E, _Y, _I, _D, _N, _G, _U, _L, _Z, _X, _H, _O = (np.uint8(ord(letter)) for letter in "seyidngulzxho")


class Phrases(NamedTuple):
    """The indexed phrases of all labels, ordered by label."""

    stems: Annotated[Offsets, array("int64", "stem_slots", 2)]  # table from the hash of a stem to its word
    edges: Annotated[Offsets, array("int64", "edge_slots", 2)]  # table of the trie
    node_ends: Annotated[Offsets, offsets("n_nodes", into="n_phrases")]  # number of phrases that end at earlier nodes
    node_phrases: Annotated[Ids, ids("n_phrases", below="n_phrases")]  # phrases by node
    owners: Annotated[Ids, ids("n_phrases", below="n_labels")]  # the label of each
    kinds: Annotated[Ids, ids("n_phrases", below=3)]  # 0 name, 1 synonym, 2 part of one
    ends: Annotated[Offsets, offsets("n_phrases", into="length")]  # words up to each phrase
    words: Annotated[Ids, ids("length", below="n_words")]  # of all phrases
    forms: Annotated[Offsets, array("int64", "length")]  # of these words
    totals: Annotated[Ids, array("int32", "n_phrases", at_least=1)]  # sum of the weights of the words
    post_ends: Annotated[Offsets, offsets("n_words", into="n_posts")]
    posts: Annotated[Ids, ids("n_posts", below="n_phrases")]  # phrases of several words, by word
    # Higher for words of fewer phrases.
    weights: Annotated[Ids, array("int32", "n_words", at_least=1, below=MAX_WEIGHT)]

    def check_state(self) -> None:
        """The tables have free rows and hold words and a trie; a phrase ends at the depth of its words."""
        n_words, n_nodes = len(self.weights), len(self.node_ends) - 1
        must(is_key_table(self.stems, n_words) and is_key_table(self.edges, n_nodes), "hash tables with a free row")
        depth = _trie_depths(self.edges, n_nodes, n_words)
        must(len(depth) > 0, "a trie with an edge to each node but the root")
        must(_end_at_depth(self.ends, self.node_ends, self.node_phrases, depth), "phrases at the depth of their words")
        must(are_sorted_spans(self.posts, self.post_ends), "the phrases of each word in order")
        most = int(np.bincount(self.posts).max(initial=0))
        must(most * MAX_WEIGHT < 2**31, "phrases whose weights add up")


class Scratch(NamedTuple):
    """Buffers for one document; slots and weights are 0 before and after each."""

    label_slot: Ids  # (n_labels,) the row of a label in ``evidence``, plus one
    word_slot: Ids  # (n_words,) the row of a word in ``tokens``, plus one
    shared: Ids  # (n_phrases,) weight of the words that a phrase and the document share
    evidence: Ids  # (n_labels, 13) evidence
    tokens: Ids  # (n_words, 3) word, count, position
    touched: Ids  # (n_phrases,) phrases that share a word


def empty_scratch(phrases: Phrases, n_labels: int) -> Scratch:
    """New buffers; pages that are never written take no memory."""
    n_phrases, n_words = phrases.owners.size, phrases.weights.size
    label_slot, word_slot, shared = (np.zeros(n, np.int32) for n in (n_labels, n_words, n_phrases))
    evidence, tokens = np.empty((n_labels, 13), np.int32), np.empty((n_words, 3), np.int32)
    return Scratch(label_slot, word_slot, shared, evidence, tokens, touched=np.empty(n_phrases, np.int32))


def _trie_depths(edges: Offsets, n_nodes: int, n_words: int) -> Ids:
    """The depth of each node of a trie; empty where the table of edges is none: parents have smaller numbers."""
    parent = np.full(n_nodes, -1, np.int32)
    keys, children = edges[edges[:, 0] != 0].T
    parents = (keys - 1) // max(n_words, 1)
    if (keys < 0).any() or (parents >= children).any() or len(children) != n_nodes - 1:
        return np.empty(0, np.int32)
    parent[children] = parents
    if (parent[1:] < 0).any():  # a node with two edges, so another has none
        return np.empty(0, np.int32)
    levels: Ids = node_levels(parent)
    return levels


def _end_at_depth(ends: Offsets, node_ends: Offsets, node_phrases: Ids, depth: Ids) -> bool:
    """Whether each phrase has as many words as its node is deep."""
    return np.array_equal(np.diff(ends)[node_phrases], np.repeat(depth, np.diff(node_ends)))


@kernel(inline="always")
def _undoubled(text: Bytes, start: int, stop: int) -> int:
    """The end without the second of two equal last letters, as in cutt(ing); l, s and z may be double in a stem."""
    last = text[stop - 1]
    double = stop - start > 3 and last == text[stop - 2] and last != _L and last != _S and last != _Z
    return stop - 1 if double else stop


@kernel()
def form_stop(text: Bytes, start: int, stop: int) -> int:
    """Where a word ends without its plural ending: s, es, ies, and the y of the singular."""
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


@kernel()
def stem_stop(text: Bytes, start: int, stop: int) -> int:
    """Where the form of a word ends without ing, ed and a final e."""
    n = stop - start
    if n > 5 and text[stop - 1] == _G and text[stop - 2] == _N and text[stop - 3] == _I:
        stop = _undoubled(text, start, stop - 3)
    elif n > 4 and text[stop - 1] == _D and text[stop - 2] == _E:
        stop = _undoubled(text, start, stop - 2)
    return stop - 1 if stop - start > 3 and text[stop - 1] == _E else stop


@kernel()
def hash_stems(text: Bytes, starts: Offsets, stops: Offsets, stemmed: bool) -> tuple[Offsets, Offsets]:
    """The hashes of the stem and of the form of each word; both are of the full word unless ``stemmed``."""
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


@kernel(inline="always")
def _evidence_row(label: int, scratch: Scratch, n: int) -> tuple[int, int]:
    """The evidence row of a label, a new one if it has none, and the number of rows."""
    slot = scratch.label_slot[label]
    if slot == 0:
        n += 1
        slot = n
        scratch.label_slot[label] = n
        for i in range(13):
            scratch.evidence[n - 1, i] = 0
        scratch.evidence[n - 1, _LABEL], scratch.evidence[n - 1, _KIND] = label, 2
    return slot - 1, n


@kernel()
def _match_full(words: Ids, forms: Offsets, start: int, end: int, phrases: Phrases, scratch: Scratch) -> int:
    """Collect the evidence of all phrases in words start..end; returns the number of labels matched."""
    n, covered, n_words = 0, -1, phrases.weights.size
    for at in range(start, end):
        node, stop, longest = 0, at, at
        while stop < end and words[stop] >= 0:
            node = lookup_key(phrases.edges, node * n_words + words[stop] + 1)
            if node < 0:
                break
            stop += 1
            if phrases.node_ends[node + 1] > phrases.node_ends[node]:
                longest = stop
        node, stop = 0, at
        while stop < longest:
            node = lookup_key(phrases.edges, node * n_words + words[stop] + 1)
            stop += 1
            free = stop == longest and longest > covered
            for j in range(phrases.node_ends[node], phrases.node_ends[node + 1]):
                phrase = phrases.node_phrases[j]
                exact = True
                for i in range(1, stop - at + 1):
                    exact &= forms[stop - i] == phrases.forms[phrases.ends[phrase + 1] - i]
                row, n = _evidence_row(phrases.owners[phrase], scratch, n)
                record = scratch.evidence[row]
                if record[_COUNT] == 0:
                    record[_POS] = at - start
                record[_KIND] = min(record[_KIND], phrases.kinds[phrase])
                record[_WORDS] = max(record[_WORDS], stop - at)
                record[_FREE] |= free
                record[_EXACT] |= exact
                record[_COUNT] += 1
        covered = max(covered, longest)
    return n


@kernel()
def _match_partial(words: Ids, start: int, end: int, phrases: Phrases, scratch: Scratch, n: int) -> int:
    """Add the evidence of phrases of which some words are in words start..end, in any order."""
    n_tokens, n_touched = 0, 0
    for at in range(start, end):
        word = words[at]
        if word < 0:
            continue
        slot = scratch.word_slot[word]
        if slot == 0:
            token = scratch.tokens[n_tokens]
            token[0], token[1], token[2] = word, 1, at - start
            n_tokens += 1
            scratch.word_slot[word] = n_tokens
        else:
            scratch.tokens[slot - 1, 1] += 1
    for i in range(n_tokens):
        word = scratch.tokens[i, 0]
        weight = phrases.weights[word]
        for j in range(phrases.post_ends[word], phrases.post_ends[word + 1]):
            phrase = phrases.posts[j]
            if scratch.shared[phrase] == 0:
                scratch.touched[n_touched] = phrase
                n_touched += 1
            scratch.shared[phrase] += weight
    for i in range(n_touched):
        phrase = scratch.touched[i]
        if scratch.shared[phrase] >= MIN_SHARE * phrases.totals[phrase]:
            row, n = _evidence_row(phrases.owners[phrase], scratch, n)
            if scratch.evidence[row, _COUNT] == 0:  # full matches are stronger evidence
                _grade_partial(phrase, phrases, scratch, scratch.evidence[row])
        scratch.shared[phrase] = 0
    for i in range(n_tokens):
        scratch.word_slot[scratch.tokens[i, 0]] = 0
    return n


@part()
def _grade_partial(phrase: int, phrases: Phrases, scratch: Scratch, record: Ids) -> None:
    """Use the shared words of a phrase as the evidence, if their share is the largest so far."""
    weight, hits, heaviest, slot = 0, 0, 0, 0
    for i in range(phrases.ends[phrase], phrases.ends[phrase + 1]):
        word = phrases.words[i]
        slot = scratch.word_slot[word]
        if slot:
            weight, hits = weight + phrases.weights[word], hits + 1
            if heaviest == 0 or phrases.weights[word] > phrases.weights[scratch.tokens[heaviest - 1, 0]]:
                heaviest = slot
    share = 1000 * weight // phrases.totals[phrase]
    if share > record[_SHARE]:
        record[_SHARE], record[_LAST], record[_HITS] = share, slot > 0, hits
        record[_PART_COUNT], record[_PART_POS] = (scratch.tokens[heaviest - 1, 1], scratch.tokens[heaviest - 1, 2])


@kernel(inline="always")
def _count_grade(count: int) -> int:
    return (count > 1) + (count > 2) + (count > 5)


@kernel(inline="always")
def _position_grade(position: int) -> int:
    return (position >= 4) + (position >= 12) + (position >= 32)


@kernel()
def _bucket(record: Ids) -> tuple[int, int]:
    """The bucket of an evidence row, and its level, by which statistics per label are kept."""
    if record[_COUNT] > 0:
        bucket = (record[_KIND] * 3 + min(record[_WORDS], 3) - 1) * 2 + record[_FREE]
        bucket = ((bucket * 2 + record[_EXACT]) * 4 + _count_grade(record[_COUNT])) * 4 + _position_grade(record[_POS])
        return bucket, (0 if record[_EXACT] else 1) if record[_FREE] else 2
    share = (record[_SHARE] >= 450) + (record[_SHARE] >= 600) + (record[_SHARE] >= 800)
    bucket = (share * 2 + record[_LAST]) * 2 + (record[_HITS] > 1)
    bucket = (bucket * 4 + _count_grade(record[_PART_COUNT])) * 4 + _position_grade(record[_PART_POS])
    return N_FULL_BUCKETS + bucket, 3 if record[_SHARE] >= 500 else 4


@kernel()
def lookup_stems(stems: Offsets, phrases: Phrases) -> Ids:
    """The word id of each stem, by its hash."""
    words = np.empty(stems.size, np.int32)
    for t in range(stems.size):
        words[t] = lookup_key(phrases.stems, stems[t])
    return words


@kernel()
def count_matches(
    words: Ids, forms: Offsets, ends: Offsets, truth: Ids, truth_ends: Offsets, phrases: Phrases, scratch: Scratch,
    priors: Offsets, by_bucket: Offsets, by_label: Offsets,
) -> None:  # fmt: skip
    """Count matches and correct matches per kind of evidence, from word and form of each token.

    ``ends`` are the tokens up to the end of each document, ``truth_ends`` (n + 1,) the true labels up to each. Adds
    matches and correct matches to ``by_bucket`` (n_buckets, 2), and also expected correct matches to ``by_label``
    (n_labels, n_levels, 3), which may have no rows; these and the expected precisions ``priors`` (n_buckets,) are in
    units of 1 / PROBABILITY_SCALE.
    """
    start = integer(0)
    for doc in range(ends.size):
        n = _match_full(words, forms, start, ends[doc], phrases, scratch)
        n = _match_partial(words, start, ends[doc], phrases, scratch, n)
        start = ends[doc]
        for i in range(truth_ends[doc], truth_ends[doc + 1]):
            slot = scratch.label_slot[truth[i]]
            if slot:
                scratch.evidence[slot - 1, _CORRECT] = 1
        for row in range(n):
            record = scratch.evidence[row]
            label = record[_LABEL]
            scratch.label_slot[label] = 0
            bucket, level = _bucket(record)
            by_bucket[bucket, 0] += 1
            by_bucket[bucket, 1] += record[_CORRECT]
            if by_label.shape[0]:
                by_label[label, level, 0] += 1
                by_label[label, level, 1] += record[_CORRECT]
                by_label[label, level, 2] += priors[bucket]


@kernel()
def topk_matches(
    words: Ids, forms: Offsets, ends: Offsets, phrases: Phrases, scratch: Scratch, log_odds: Floats, shift: Floats,
    labels: Ids, scores: Floats,
) -> None:  # fmt: skip
    """The top labels of each document into rows of ``labels`` and ``scores``, best first.

    The score is the sigmoid of the bucket's ``log_odds`` plus the label's ``shift`` at the bucket's level.
    """
    start = integer(0)
    for doc in range(ends.size):
        n = _match_full(words, forms, start, ends[doc], phrases, scratch)
        n = _match_partial(words, start, ends[doc], phrases, scratch, n)
        start = ends[doc]
        size = integer(0)
        for row in range(n):
            label = scratch.evidence[row, _LABEL]
            scratch.label_slot[label] = 0
            bucket, level = _bucket(scratch.evidence[row])
            score = np.float32(1.0 / (1.0 + np.exp(-np.float64(log_odds[bucket] + shift[label, level]))))
            size = push(scores[doc], labels[doc], size, score, label)
        sort_best_first(scores[doc], labels[doc], size)


def bucket_grades(bucket: npt.NDArray[np.int64], sizes: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """The grades of each bucket, one column each."""
    return np.stack(np.unravel_index(bucket, sizes), axis=1)
