"""Kernels of the lexical method: light stems, a trie of phrases, and words that a phrase shares with a document.

The nodes of the trie are numbered from the root, 0, level by level, and within a level by parent and word: edge e leads
to node e + 1, and the edges from node n are children[n] to children[n + 1], in the order of their words. A word is the
id of a stem, -1 if the stem is in no phrase. A form is a word without its plural ending, in documents its hash: phrases
match by stems, and exactly by forms.

The evidence for a label in a document becomes a bucket, a number for one combination of grades. For a full match of a
phrase: kind, number of words, free or only inside longer phrases, exact or by stems, count, position. For a partial
match: share of the phrase's weight, last word matched, more than one word, count, position.
"""

from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt

from labelspace.estimator.state_constraints import are_sorted_spans, array, ids, must, offsets
from labelspace.kernels.beam_search import lower_bound
from labelspace.kernels.compiled import integer, kernel, part
from labelspace.kernels.knn import LabelSets
from labelspace.kernels.ngrams import is_key_table
from labelspace.kernels.tokenize import FNV_PRIME, FNV_SEED, Bytes, Flags, Ids, Offsets, mix_bits
from labelspace.kernels.topk import push, sort_best_first
from labelspace.types import Floats

FULL_GRADES = (3, 3, 2, 2, 4, 4)
"""Grades of a full match: kind, words, free, exact, count, position."""
PARTIAL_GRADES = (4, 2, 2, 4, 4)
"""Grades of a partial match: share, last word, words, count, position."""
N_FULL_BUCKETS, N_PARTIAL_BUCKETS = 576, 256  # the products of the grades
N_BUCKETS = N_FULL_BUCKETS + N_PARTIAL_BUCKETS
N_LEVELS = 5  # of evidence, by which statistics per label are kept
MAX_WEIGHT = 100_000  # of a word, so that the weights of a phrase add up in 32 bits
MIN_SHARE = 0.3  # of a phrase's weight: a smaller shared part is no evidence
PROBABILITY_SCALE = 2**16  # probability 1 as an integer: integer sums do not depend on the order

N_EVIDENCE = 12  # columns of evidence
_LABEL, _KIND, _WORDS, _FREE, _EXACT, _COUNT, _POS, _SHARE, _LAST, _HITS, _PART_COUNT, _PART_POS = range(N_EVIDENCE)
_S, _E, _Y, _I, _D, _N, _G, _U, _L, _Z, _X, _H, _O = (np.uint8(ord(letter)) for letter in "seyidngulzxho")


class Phrases(NamedTuple):
    """The indexed phrases of all labels, ordered by label."""

    stems: Annotated[Offsets, array("int64", "stem_slots", 2)]  # table from the hash of a stem to its word
    children: Annotated[Ids, offsets("n_nodes", into="n_edges")]
    edge_words: Annotated[Ids, ids("n_edges", below="n_words")]
    node_ends: Annotated[Ids, offsets("n_nodes", into="n_phrases")]  # number of phrases that end at earlier nodes
    node_phrases: Annotated[Ids, ids("n_phrases", below="n_phrases")]  # phrases by node
    owners: Annotated[Ids, ids("n_phrases", below="n_labels")]  # the label of each phrase
    kinds: Annotated[Bytes, array("uint8", "n_phrases", below=3)]  # 0 name, 1 synonym, 2 part of a name or synonym
    ends: Annotated[Ids, offsets("n_phrases", into="length")]  # words up to each phrase
    forms: Annotated[Ids, ids("length", below="n_forms")]  # of the words of all phrases
    form_hashes: Annotated[Offsets, array("int64", "n_forms")]
    form_words: Annotated[Ids, ids("n_forms", below="n_words")]  # the word of each form
    totals: Annotated[Ids, array("int32", "n_phrases", at_least=1)]  # sum of the weights of the words
    post_ends: Annotated[Ids, offsets("n_words", into="n_posts")]
    posts: Annotated[Ids, ids("n_posts", below="n_phrases")]  # phrases of several words, by word
    # Higher for words of fewer phrases.
    weights: Annotated[Ids, array("int32", "n_words", at_least=1, below=MAX_WEIGHT)]

    def check_state(self) -> None:
        """Check the hash table, that the trie reaches each node, and that phrases end at the depth of their words."""
        must(is_key_table(self.stems, len(self.weights)), "a hash table with a free row")
        depth = _trie_depths(self.children)
        must(len(depth) > 0, "a trie with all nodes below the root")
        must(are_sorted_spans(self.edge_words, self.children), "the children of each node in the order of their words")
        must(_end_at_depth(self.ends, self.node_ends, self.node_phrases, depth), "phrases at the depth of their words")
        must(are_sorted_spans(self.posts, self.post_ends), "the phrases of each word in order")
        most = int(np.bincount(self.posts).max(initial=0))
        must(most * MAX_WEIGHT < 2**31, "phrases whose weights add up")


class Scratch(NamedTuple):
    """Buffers for one document; slots and weights are 0 before and after each."""

    label_slot: Ids  # (n_labels,) the row of a label in ``evidence``, plus one
    word_slot: Ids  # (n_words,) the row of a word in ``tokens``, plus one
    shared: Ids  # (n_phrases,) weight of the words that a phrase and the document share
    evidence: Ids  # (n_labels, N_EVIDENCE) evidence
    tokens: Ids  # (n_words, 3) word, count, position
    touched: Ids  # (n_phrases,) phrases that share a word
    path: Ids  # (n_nodes + 1,) nodes from the root on


def empty_scratch(phrases: Phrases, n_labels: int) -> Scratch:
    """Make new buffers; pages that are never written take no memory."""
    n_phrases, n_words = phrases.owners.size, phrases.weights.size
    label_slot, word_slot, shared = (np.zeros(n, np.int32) for n in (n_labels, n_words, n_phrases))
    evidence, tokens = np.empty((n_labels, N_EVIDENCE), np.int32), np.empty((n_words, 3), np.int32)
    touched, path = np.empty(n_phrases, np.int32), np.empty(phrases.children.size, np.int32)
    return Scratch(label_slot, word_slot, shared, evidence, tokens, touched, path)


def _trie_depths(children: Ids) -> Ids:
    """Return the depth of each node of a trie; empty if not all nodes are below the root."""
    widths, stop, n_nodes = [1], 1, children.size - 1
    while stop < n_nodes:
        widths.append(int(children[stop]) + 1 - stop)  # the children of a level are the next level
        stop += widths[-1]
        if widths[-1] <= 0:
            return np.empty(0, np.int32)
    if children[-1] + 1 != n_nodes:
        return np.empty(0, np.int32)
    return np.repeat(np.arange(len(widths), dtype=np.int32), widths)


def _end_at_depth(ends: Ids, node_ends: Ids, node_phrases: Ids, depth: Ids) -> bool:
    """Return whether each phrase has as many words as its node is deep."""
    return np.array_equal(np.diff(ends)[node_phrases], np.repeat(depth, np.diff(node_ends)))


@part()
def _undoubled(text: Bytes, start: int, stop: int) -> int:
    """Return the end without the second of two equal last letters, as in cutt(ing); l, s and z may be double."""
    last = text[stop - 1]
    double = stop - start > 3 and last == text[stop - 2] and last != _L and last != _S and last != _Z
    return stop - 1 if double else stop


@part()
def form_stop(text: Bytes, start: int, stop: int) -> int:
    """Return where a word ends without its plural ending: s, es, ies, and the y of the singular."""
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


@part()
def stem_stop(text: Bytes, start: int, stop: int) -> int:
    """Return where the form of a word ends without ing, ed and a final e."""
    n, cut = stop - start, 0
    if n > 5 and text[stop - 1] == _G and text[stop - 2] == _N and text[stop - 3] == _I:
        cut = 3
    elif n > 4 and text[stop - 1] == _D and text[stop - 2] == _E:
        cut = 2
    if cut:
        stop = _undoubled(text, start, stop - cut)
    return stop - 1 if stop - start > 3 and text[stop - 1] == _E else stop


@kernel()
def hash_stems(text: Bytes, starts: Offsets, stops: Offsets, stemmed: bool) -> tuple[Offsets, Offsets]:
    """Return the hashes of the stem and of the form of each word; both hash the full word unless ``stemmed``."""
    stems, forms = np.empty(starts.size, np.int64), np.empty(starts.size, np.int64)
    for t in range(starts.size):
        start, stop = starts[t], stops[t]
        if stemmed:
            stop = form_stop(text, start, stop)
        stem = stem_stop(text, start, stop) if stemmed else stop
        h = FNV_SEED
        for i in range(start, stem):
            h = (h ^ np.uint64(text[i])) * FNV_PRIME
        stems[t] = np.int64(mix_bits(h))
        for i in range(stem, stop):
            h = (h ^ np.uint64(text[i])) * FNV_PRIME
        forms[t] = np.int64(mix_bits(h))
    return stems, forms


@part()
def _evidence_row(label: int, label_slot: Ids, evidence: Ids, n: int) -> tuple[int, int]:
    """Return the evidence row of a label, a new one if the label has none, and the number of rows."""
    slot = label_slot[label]
    if slot == 0:
        n += 1
        slot = n
        label_slot[label] = n
        for i in range(N_EVIDENCE):
            evidence[n - 1, i] = 0
        evidence[n - 1, _LABEL], evidence[n - 1, _KIND] = label, 2
    return slot - 1, n


@part()
def _match_full(words: Ids, forms: Offsets, start: int, end: int, phrases: Phrases, scratch: Scratch) -> int:
    """Collect the evidence of all phrases in words start..end; return the number of labels matched."""
    children, edge_words, node_ends, ends = phrases.children, phrases.edge_words, phrases.node_ends, phrases.ends
    path, evidence = scratch.path, scratch.evidence
    n, covered = 0, -1
    for at in range(start, end):
        node, stop, longest = 0, at, at
        while stop < end and words[stop] >= 0:
            after = children[node + 1]
            edge = lower_bound(edge_words, children[node], after, words[stop])
            if edge == after or edge_words[edge] != words[stop]:
                break
            node = edge + 1
            path[stop - at] = node
            stop += 1
            if node_ends[node + 1] > node_ends[node]:
                longest = stop
        stop = at
        while stop < longest:
            node = path[stop - at]
            stop += 1
            free = stop == longest and longest > covered
            for j in range(node_ends[node], node_ends[node + 1]):
                phrase = phrases.node_phrases[j]
                exact = True
                for i in range(1, stop - at + 1):
                    exact &= forms[stop - i] == phrases.form_hashes[phrases.forms[ends[phrase + 1] - i]]
                row, n = _evidence_row(phrases.owners[phrase], scratch.label_slot, evidence, n)
                if evidence[row, _COUNT] == 0:
                    evidence[row, _POS] = at - start
                kind = phrases.kinds[phrase]
                if kind < evidence[row, _KIND]:
                    evidence[row, _KIND] = kind
                if stop - at > evidence[row, _WORDS]:
                    evidence[row, _WORDS] = stop - at
                evidence[row, _FREE] |= free
                evidence[row, _EXACT] |= exact
                evidence[row, _COUNT] += 1
        covered = max(covered, longest)
    return n


@part()
def _match_partial(words: Ids, start: int, end: int, phrases: Phrases, scratch: Scratch, n: int) -> int:
    """Add the evidence of phrases with some words in words start..end, in any order."""
    word_slot, tokens, shared, touched = scratch.word_slot, scratch.tokens, scratch.shared, scratch.touched
    n_tokens, n_touched = 0, 0
    for at in range(start, end):
        word = words[at]
        if word < 0:
            continue
        slot = word_slot[word]
        if slot == 0:
            tokens[n_tokens, 0], tokens[n_tokens, 1], tokens[n_tokens, 2] = word, 1, at - start
            n_tokens += 1
            word_slot[word] = n_tokens
        else:
            tokens[slot - 1, 1] += 1
    for i in range(n_tokens):
        word = tokens[i, 0]
        weight = phrases.weights[word]
        for j in range(phrases.post_ends[word], phrases.post_ends[word + 1]):
            phrase = phrases.posts[j]
            if shared[phrase] == 0:
                touched[n_touched] = phrase
                n_touched += 1
            shared[phrase] += weight
    for i in range(n_touched):
        phrase = touched[i]
        if shared[phrase] >= MIN_SHARE * phrases.totals[phrase]:
            row, n = _evidence_row(phrases.owners[phrase], scratch.label_slot, scratch.evidence, n)
            if scratch.evidence[row, _COUNT] == 0:  # full matches are stronger evidence
                _grade_partial(phrase, phrases, word_slot, tokens, scratch.evidence, row)
        shared[phrase] = 0
    for i in range(n_tokens):
        word_slot[tokens[i, 0]] = 0
    return n


@part()
def _grade_partial(phrase: int, phrases: Phrases, word_slot: Ids, tokens: Ids, evidence: Ids, row: int) -> None:
    """Use the shared words of a phrase as the evidence, if their share is the largest so far."""
    weights = phrases.weights
    weight, hits, heaviest, last = 0, 0, 0, 0
    for i in range(phrases.ends[phrase], phrases.ends[phrase + 1]):
        word = phrases.form_words[phrases.forms[i]]
        last = word_slot[word]
        if last:
            weight += weights[word]
            hits += 1
            if heaviest == 0 or weights[word] > weights[tokens[heaviest - 1, 0]]:
                heaviest = last
    share = 1000 * weight // phrases.totals[phrase]
    if share > evidence[row, _SHARE]:
        evidence[row, _SHARE], evidence[row, _LAST], evidence[row, _HITS] = share, last > 0, hits
        evidence[row, _PART_COUNT], evidence[row, _PART_POS] = tokens[heaviest - 1, 1], tokens[heaviest - 1, 2]


@part()
def _bucket(evidence: Ids, row: int) -> tuple[int, int]:
    """Return the bucket of an evidence row, and its level, by which statistics per label are kept."""
    full = evidence[row, _COUNT] > 0
    count = evidence[row, _COUNT] if full else evidence[row, _PART_COUNT]
    position = evidence[row, _POS] if full else evidence[row, _PART_POS]
    if full:
        bucket = (evidence[row, _KIND] * 3 + min(evidence[row, _WORDS], 3) - 1) * 2 + evidence[row, _FREE]
        bucket = bucket * 2 + evidence[row, _EXACT]
        level = 2 - evidence[row, _FREE] * (1 + evidence[row, _EXACT])
    else:
        share = evidence[row, _SHARE]
        bucket = (share >= 450) + (share >= 600) + (share >= 800)
        bucket = N_FULL_BUCKETS // 16 + (bucket * 2 + evidence[row, _LAST]) * 2 + (evidence[row, _HITS] > 1)
        level = 3 if share >= 500 else 4
    bucket = bucket * 4 + (count > 1) + (count > 2) + (count > 5)
    return bucket * 4 + (position >= 4) + (position >= 12) + (position >= 32), level


@kernel()
def find_matches(words: Ids, forms: Offsets, ends: Offsets, phrases: Phrases, scratch: Scratch) -> tuple[Ids, Offsets]:
    """Find the labels with evidence in each document, from the word and the form of each token.

    ``ends`` are the tokens up to the end of each document. Returns rows of label, bucket and level, by which statistics
    per label are kept, and the rows up to the end of each document.
    """
    found, found_ends = np.empty((64, 3), np.int32), np.empty(ends.size, np.int64)
    size, start = 0, 0
    for doc in range(ends.size):
        n = _match_full(words, forms, start, ends[doc], phrases, scratch)
        n = _match_partial(words, start, ends[doc], phrases, scratch, n)
        start = ends[doc]
        if size + n > len(found):
            larger = np.empty((2 * (size + n), 3), np.int32)
            for i in range(size):
                for j in range(3):
                    larger[i, j] = found[i, j]
            found = larger
        for row in range(n):
            label = scratch.evidence[row, _LABEL]
            scratch.label_slot[label] = 0
            bucket, level = _bucket(scratch.evidence, row)
            found[size, 0], found[size, 1], found[size, 2] = label, bucket, level
            size += 1
        found_ends[doc] = size
    return found[:size], found_ends


@kernel()
def match_keys(
    found: Ids, ends: Offsets, truth: LabelSets, is_true: Flags, in_sample: Flags, by_bucket: Offsets
) -> Offsets:
    """Return label, bucket, level and hit of each match that ``find_matches`` found, as one number.

    It is ``((label * N_BUCKETS + bucket) * N_LEVELS + level) * 2 + hit``. ``truth`` are the labels of the documents,
    ``is_true`` (n_labels,) is scratch, all False before and after. Matches and hits of documents ``in_sample`` are
    added to ``by_bucket`` (N_BUCKETS, 2).
    """
    labels, truth_ends = truth
    keys = np.empty(len(found), np.int64)
    row = 0
    for doc in range(ends.size):
        for i in range(truth_ends[doc], truth_ends[doc + 1]):
            is_true[labels[i]] = True
        while row < ends[doc]:
            label, bucket, level = np.int64(found[row, 0]), found[row, 1], found[row, 2]
            hit = np.int64(is_true[label])
            keys[row] = ((label * N_BUCKETS + bucket) * N_LEVELS + level) * 2 + hit
            if in_sample[doc]:
                by_bucket[bucket, 0] += 1
                by_bucket[bucket, 1] += hit
            row += 1
        for i in range(truth_ends[doc], truth_ends[doc + 1]):
            is_true[labels[i]] = False
    return keys


@kernel()
def tally_keys(keys: Offsets, start: int, table: Offsets, n_used: int) -> tuple[int, int]:
    """Count keys from ``start`` on in a hash table until half of it is used; return where it stopped, and what is used.

    The table has a power of two of rows: a key, -1 for none, and how often it came.
    """
    mask = np.uint64(len(table) - 1)
    for i in range(start, len(keys)):
        slot = mix_bits(np.uint64(keys[i])) & mask
        while table[slot, 0] != keys[i]:
            if table[slot, 0] < 0:
                if 2 * n_used >= len(table):
                    return i, n_used
                table[slot, 0] = keys[i]
                n_used += 1
                break
            slot = (slot + np.uint64(1)) & mask
        table[slot, 1] += 1
    return len(keys), n_used


@kernel()
def topk_matches(found: Ids, ends: Offsets, log_odds: Floats, shift: Floats, labels: Ids, scores: Floats) -> None:
    """Rank the labels that ``find_matches`` found for each document, best first, in rows of ``labels`` and ``scores``.

    The score is the sigmoid of the bucket's ``log_odds`` plus the label's ``shift`` at the bucket's level.
    """
    row = 0
    for doc in range(ends.size):
        doc_scores, doc_labels, size = scores[doc], labels[doc], integer(0)
        while row < ends[doc]:
            label, bucket, level = found[row, 0], found[row, 1], found[row, 2]
            score = np.float32(1.0 / (1.0 + np.exp(-np.float64(log_odds[bucket] + shift[label, level]))))
            size = push(doc_scores, doc_labels, size, score, label)
            row += 1
        sort_best_first(doc_scores, doc_labels, size)


def bucket_grades(bucket: npt.NDArray[np.int64], sizes: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Return the grades of each bucket, one column each."""
    return np.stack(np.unravel_index(bucket, sizes), axis=1)
