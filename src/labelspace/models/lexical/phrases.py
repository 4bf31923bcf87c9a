"""The phrases that stand for labels: names, synonyms and their parts, as stems, indexed for one pass over a text."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from labelspace.features.stems import KEEP_ACCENTS, NO_STEMMING, Stemmer, strip_accents
from labelspace.features.tokenizer import Analyzer
from labelspace.features.vocabulary import Vocabulary
from labelspace.kernels.ngrams import build_key_table
from labelspace.labels.coded_names import split_codes
from labelspace.models.evidence import Evidence, PhraseShare
from labelspace.models.lexical.kernels import Phrases, hash_stems
from labelspace.types import Ints, LabelSpace, Longs

NAME, SYNONYM, PART = 0, 1, 2
MAX_LABELS_PER_PHRASE = 20  # a phrase that more labels share says nothing about any of them
MAX_PHRASES_PER_WORD = 128  # likewise for words of partial matches
WEIGHT_UNIT = 100  # weights of words are integers: this many stand for a logarithm of 1

_ASIDE = re.compile(r"\s*[(\[（［][^)\]）］]*[)\]）］]")
_HYPHENED = re.compile(r"\w+-\w+")
_PARTS = re.compile(r"[,;:/、，；：／]|\s-\s")
KINDS = ("name", "synonym", "part")
Match = tuple[int, int, int]
"""The first and the last word of a match, and the kind of its phrase."""
ANALYZER = Analyzer("word", min_word_length=1)  # the C of "vitamin C" counts
ENGLISH, FINNISH = "english", "finnish"
MIN_FINNISH = 3  # letters that stay of a Finnish stem


@dataclass(frozen=True)
class WordStems:
    """Hashes of the stems of words, by which words of names and of texts are compared.

    English has its own light stems, in a kernel. In other languages, each distinct word of a batch is stemmed once, by
    Snowball, which keeps the stems of recent words.

    >>> stems, forms, _ = WordStems("finnish").read(["Suomi", "Suomen"])
    >>> bool(stems[0] == stems[1]), bool(forms[0] == forms[1])
    (True, False)
    """

    stemming: str = ENGLISH
    accents: str = KEEP_ACCENTS

    def read(self, texts: Sequence[str]) -> tuple[Longs, Longs, Longs]:
        """Return hashes of the stem and the form of each word of texts, and the words up to the end of each text."""
        spans = ANALYZER.spans(texts)
        light = self.stemming in (ENGLISH, NO_STEMMING)
        if light and self.accents == KEEP_ACCENTS:
            return *hash_stems(spans.text, spans.starts, spans.stops, self.stemming == ENGLISH), spans.ends
        _, first, word = np.unique(spans.hashes, return_index=True, return_inverse=True)
        text = spans.text.tobytes()
        bounds = zip(spans.starts[first].tolist(), spans.stops[first].tolist(), strict=True)
        words = [text[start:stop] for start, stop in bounds]
        forms = words if self.accents == KEEP_ACCENTS else list(map(strip_accents, words))
        stem_hashes, form_hashes = _hashes(forms, self.stemming == ENGLISH)
        if not light:
            stem_hashes, _ = _hashes(list(map(self._stem, words)), False)
        return stem_hashes[word], form_hashes[word], spans.ends

    def _stem(self, word: bytes) -> bytes:
        stemmed = Stemmer(self.stemming, self.accents)(word)
        return _level_finnish(stemmed) if self.stemming == FINNISH else stemmed


def _hashes(words: Sequence[bytes], stemmed: bool) -> tuple[Longs, Longs]:
    vocabulary = Vocabulary.from_words(words)
    return hash_stems(vocabulary.word_bytes, vocabulary.offsets[:-1], vocabulary.offsets[1:], stemmed)


def _level_finnish(stem: bytes) -> bytes:
    """Cut what Snowball leaves of the inflection of a Finnish stem, so that a name and its genitive are equal.

    Cut or changed are final vowels (suomi, suome-n), n and s (nainen, naise-t), s and ks (tutkimus, tutkimukse-t), and
    the weak grade of k and t (kaupunki, kaupungi-n; lehti, lehde-n).

    >>> [_level_finnish(stem).decode() for stem in (b"suomi", b"suome", b"naine", b"naise", b"kaupung")]
    ['suom', 'suom', 'nais', 'nais', 'kaupunk']
    """
    text = stem.decode("utf-8", "surrogatepass")
    while len(text) > MIN_FINNISH and text[-1] in "aeiä":
        text = text[:-1]
    if len(text) > MIN_FINNISH:
        for ending, strong in (("in", "is"), ("ks", "s"), ("ng", "nk"), ("d", "t")):
            if text.endswith(ending):
                text = text.removesuffix(ending) + strong
                break
    return text.encode("utf-8", "surrogatepass")


def phrases_of(labels: LabelSpace) -> Iterator[tuple[str, int, int]]:
    """Yield every phrase of every label in use as (text, label, kind).

    A label that was merged into another one has its names among the synonyms of that one.

    >>> list(phrases_of(LabelSpace(["bank (finance)"], [["credit institution, lender"]])))[1:]
    [('bank', 0, 0), ('credit institution, lender', 0, 1), ('credit institution', 0, 2), (' lender', 0, 2)]
    """
    synonyms: Iterable[Sequence[str]] = repeat(()) if labels.synonyms is None else labels.synonyms
    are_indexed = labels.in_use.tolist()
    for label, ((code, name), known) in enumerate(zip(split_codes(labels.names), synonyms, strict=False)):
        if not are_indexed[label]:
            continue
        if code:
            yield code, label, SYNONYM
        yield from _variants(name, label, NAME)
        for synonym in known:
            yield from _variants(synonym, label, SYNONYM)
            if synonym.startswith(name + " "):
                yield from _variants(synonym[len(name) + 1 :], label, SYNONYM)


def _variants(text: str, label: int, kind: int) -> Iterator[tuple[str, int, int]]:
    """Yield the text, two words with a hyphen as one word, the text without brackets, and its parts between commas."""
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
    """Index the phrases of the labels, each once a label, without phrases that have no words or too many labels."""
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
    parent, edge_word = np.divmod(edges - 1, max(known.size, 1))
    return Phrases(
        build_key_table(known, np.arange(known.size, dtype=np.int32)),
        _offsets(np.bincount(parent, minlength=edges.size + 1)),
        edge_word.astype(np.int32),
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
    """Return where each of some spans begins, in 32 bits if that is enough."""
    ends = np.append(0, np.cumsum(counts))
    return np.asarray(ends.astype(np.int32 if ends[-1] < 2**31 else np.int64))


def _trie(words: Longs, begins: Longs, ends: Longs, n_words: int) -> tuple[Longs, Longs]:
    """Return the node at which each phrase ends, 0 if it has no words, and the key of the edge to node 1, 2, ..."""
    node = np.zeros(ends.size, np.int64)
    levels = [np.empty(0, np.int64)]
    n_nodes = 1
    alive = np.flatnonzero(ends > begins)
    depth = 0
    while alive.size:
        keys, child = np.unique(node[alive] * n_words + words[begins[alive] + depth] + 1, return_inverse=True)
        node[alive] = n_nodes + child
        levels.append(keys)
        n_nodes += keys.size
        depth += 1
        alive = alive[ends[alive] > begins[alive] + depth]
    return node, np.concatenate(levels)


def _kept(node: Longs, label: Longs, kind: Longs, n_nodes: int) -> Longs:
    """Return the phrases to keep, in order of their labels; among equal phrases of a label the best kind."""
    order = np.lexsort((kind, node, label))
    first = np.ones(order.size, bool)
    first[1:] = (np.diff(label[order]) != 0) | (np.diff(node[order]) != 0)
    order = order[first & (node[order] > 0)]
    sharing = np.bincount(node[order], minlength=n_nodes)
    return order[sharing[node[order]] <= MAX_LABELS_PER_PHRASE]


def _postings(words: Longs, ends: Longs, n_words: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the weight of each phrase, ends and phrases of the words' postings, and the weight of each word."""
    n_phrases = ends.size - 1
    lengths = np.diff(ends)
    phrase = np.repeat(np.arange(n_phrases), lengths)
    order = np.lexsort((phrase, words))
    first = np.ones(order.size, bool)
    first[1:] = (np.diff(words[order]) != 0) | (np.diff(phrase[order]) != 0)
    posts = order[first]  # each word once per phrase
    df = np.bincount(words[posts], minlength=n_words)
    weights = (WEIGHT_UNIT * (1 + np.log(n_phrases / np.maximum(df, 1)))).astype(np.int32)
    totals = np.bincount(phrase, weights=weights[words], minlength=n_phrases).astype(np.int32)
    posts = posts[(df[words[posts]] <= MAX_PHRASES_PER_WORD) & (lengths[phrase[posts]] > 1)]
    return totals, _offsets(np.bincount(words[posts], minlength=n_words)), phrase[posts].astype(np.int32), weights


class PhraseEvidence:
    """The words of a text, in which the phrases of a label are found to explain its score.

    1. The phrases of the label, each a list of stems. If the text has some of them whole, these count; else the phrase
       with the largest part in the text, as in ``kernels.py``.
    2. The matches share the difference between their log-odds and those of the label's frequency, equally.
    """

    def __init__(self, phrases: Phrases, text: str, words: Ints) -> None:
        self.phrases, self.words = phrases, words
        self.starts, self.stops = ANALYZER.character_spans(text, ANALYZER.spans([text]))

    def evidence(self, label: int, log_odds: float, baseline: float) -> Evidence:
        """Return the matches of the label's phrases, each with its share (step 2)."""
        matches = sorted(set(self._matches(label)))
        share = (log_odds - baseline) / max(len(matches), 1)
        spans = [(int(self.starts[first]), int(self.stops[last]), KINDS[kind]) for first, last, kind in matches]
        return Evidence(log_odds, baseline, phrases=[PhraseShare(*span, share) for span in spans])

    def _matches(self, label: int) -> Iterator[Match]:
        """Find matches (step 1)."""
        own = np.flatnonzero(self.phrases.owners == label).tolist()
        whole = [match for phrase in own for match in self._whole(phrase)]
        if whole or not own:
            yield from whole
            return
        shares = [self._shared_weight(phrase) / int(self.phrases.totals[phrase]) for phrase in own]
        best = own[int(np.argmax(shares))]
        for word in np.unique(self._words_of(best)).tolist():
            for at in np.flatnonzero(self.words == word).tolist():
                yield at, at, int(self.phrases.kinds[best])

    def _words_of(self, phrase: int) -> Ints:
        forms = self.phrases.forms[self.phrases.ends[phrase] : self.phrases.ends[phrase + 1]]
        return np.asarray(self.phrases.form_words[forms])

    def _shared_weight(self, phrase: int) -> int:
        words = self._words_of(phrase)
        return int(self.phrases.weights[words[np.isin(words, self.words)]].sum())

    def _whole(self, phrase: int) -> Iterator[Match]:
        words = self._words_of(phrase)
        n = len(self.words) - len(words) + 1
        if n <= 0:
            return
        same = np.ones(n, bool)
        for i, word in enumerate(words.tolist()):
            same &= self.words[i : i + n] == word
        for at in np.flatnonzero(same).tolist():
            yield at, at + len(words) - 1, int(self.phrases.kinds[phrase])
