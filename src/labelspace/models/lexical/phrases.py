"""The phrases that stand for labels: names, synonyms and their parts, indexed for one pass over a text."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat

import numpy as np

from labelspace.kernels.ngrams import build_key_table
from labelspace.models.lexical.kernels import Phrases
from labelspace.models.lexical.word_stems import WordStems
from labelspace.types import Ints, LabelSpace, Longs

NAME, SYNONYM, PART = 0, 1, 2
MAX_LABELS_PER_PHRASE = 20  # what more labels share tells nothing of any of them
MAX_PHRASES_PER_WORD = 128  # for matches of some words: likewise
MIN_CODED_SHARE = 0.9  # of names that start with a code: from there on these are codes
WEIGHT_UNIT = 100  # weights of words are integers: a logarithm of 1 is so many

_ASIDE = re.compile(r"\s*[(\[（［][^)\]）］]*[)\]）］]")
_HYPHENED = re.compile(r"\w+-\w+")
_PARTS = re.compile(r"[,;:/、，；：／]|\s-\s")


def phrases_of(labels: LabelSpace) -> Iterator[tuple[str, int, int]]:
    """Every phrase of every label as (text, label, kind).

    >>> list(phrases_of(LabelSpace(["bank (finance)"], [["credit institution, lender"]])))[1:]
    [('bank', 0, 0), ('credit institution, lender', 0, 1), ('credit institution', 0, 2), (' lender', 0, 2)]
    """
    heads = [name.partition(" ") for name in labels.names]
    n_coded = sum(bool(rest) and any(map(str.isdigit, code)) for code, _, rest in heads)
    coded = n_coded >= MIN_CODED_SHARE * max(len(heads), 1)
    synonyms: Iterable[Sequence[str]] = repeat(()) if labels.synonyms is None else labels.synonyms
    for label, ((code, space, rest), known) in enumerate(zip(heads, synonyms, strict=False)):
        name = code + space + rest
        if coded and rest:
            yield code, label, SYNONYM
            name = rest
        yield from _variants(name, label, NAME)
        for synonym in known:
            yield from _variants(synonym, label, SYNONYM)
            if synonym.startswith(name + " "):
                yield from _variants(synonym[len(name) + 1 :], label, SYNONYM)


def _variants(text: str, label: int, kind: int) -> Iterator[tuple[str, int, int]]:
    """The text; two words with a hyphen as one; without brackets; its parts between commas."""
    text = text.replace("_", " ")
    yield text, label, kind
    if _HYPHENED.fullmatch(text):
        yield text.replace("-", ""), label, kind
    bare = _ASIDE.sub("", text)
    if bare != text:
        text = bare
        yield text, label, kind
    parts = _PARTS.split(text)
    if len(parts) > 1:
        for part in parts:
            yield part, label, PART


def index_phrases(labels: LabelSpace, word_stems: WordStems) -> Phrases:
    """All phrases of the labels, each once a label, less those without words and those that too many labels share."""
    texts, label, kind = zip(*phrases_of(labels), strict=True)
    stems, forms, ends = word_stems.read(texts)
    known = np.unique(stems)
    words = np.searchsorted(known, stems)
    begins = np.append(0, ends[:-1])
    node, edges = _trie(words, begins, ends, known.size)
    kept = _kept(node, np.array(label), np.array(kind), edges.size + 1)
    node, begins, lengths = node[kept], begins[kept], (ends - begins)[kept]
    phrase_ends = np.append(0, np.cumsum(lengths))
    at = np.arange(phrase_ends[-1]) - np.repeat(phrase_ends[:-1] - begins, lengths)
    form_hashes, first, form = np.unique(forms[at], return_index=True, return_inverse=True)
    children = np.bincount((edges - 1) // max(known.size, 1), minlength=edges.size + 1)
    return Phrases(
        build_key_table(known, np.arange(known.size, dtype=np.int32)),
        _offsets(children),
        ((edges - 1) % max(known.size, 1)).astype(np.int32),
        _offsets(np.bincount(node, minlength=edges.size + 1)),
        np.argsort(node, kind="stable").astype(np.int32),
        np.array(label, np.int32)[kept],
        np.array(kind, np.uint8)[kept],
        _offsets(lengths),
        form.astype(np.int32),
        form_hashes,
        words[at][first].astype(np.int32),
        *_postings(words[at], phrase_ends, known.size),
    )


def _offsets(counts: Longs) -> Ints:
    """Where each of some spans begins, in 32 bits where that is enough."""
    ends = np.append(0, np.cumsum(counts))
    starts: Ints = ends.astype(np.int32 if ends[-1] < 2**31 else np.int64)
    return starts


def _trie(words: Longs, begins: Longs, ends: Longs, n_words: int) -> tuple[Longs, Longs]:
    """The node at which each phrase ends, 0 for a phrase without words, and the key of the edge to node 1, 2, ..."""
    node, levels, n_nodes = np.zeros(ends.size, np.int64), [np.empty(0, np.int64)], 1
    alive = np.flatnonzero(ends > begins)
    depth = 0
    while alive.size:
        keys, child = np.unique(node[alive] * n_words + words[begins[alive] + depth] + 1, return_inverse=True)
        node[alive] = n_nodes + child
        levels.append(keys)
        n_nodes, depth = n_nodes + keys.size, depth + 1
        alive = alive[ends[alive] > begins[alive] + depth]
    return node, np.concatenate(levels)


def _kept(node: Longs, label: Longs, kind: Longs, n_nodes: int) -> Longs:
    """The phrases to keep, in order of their labels; of equal ones of a label the best kind."""
    order = np.lexsort((kind, node, label))
    first = np.ones(order.size, bool)
    first[1:] = (np.diff(label[order]) != 0) | (np.diff(node[order]) != 0)
    order = order[first & (node[order] > 0)]
    sharing = np.bincount(node[order], minlength=n_nodes)
    return order[sharing[node[order]] <= MAX_LABELS_PER_PHRASE]


def _postings(words: Longs, ends: Longs, n_words: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Weight of each phrase; ends and phrases of the words' postings; weight of each word."""
    n_phrases, lengths = ends.size - 1, np.diff(ends)
    phrase = np.repeat(np.arange(n_phrases), lengths)
    order = np.lexsort((phrase, words))
    first = np.ones(order.size, bool)
    first[1:] = (np.diff(words[order]) != 0) | (np.diff(phrase[order]) != 0)
    posts = order[first]  # each word once a phrase
    df = np.bincount(words[posts], minlength=n_words)
    weights = (WEIGHT_UNIT * (1 + np.log(n_phrases / np.maximum(df, 1)))).astype(np.int32)
    totals = np.bincount(phrase, weights=weights[words], minlength=n_phrases).astype(np.int32)
    posts = posts[(df[words[posts]] <= MAX_PHRASES_PER_WORD) & (lengths[phrase[posts]] > 1)]
    post_ends = _offsets(np.bincount(words[posts], minlength=n_words))
    return totals, post_ends, phrase[posts].astype(np.int32), weights
