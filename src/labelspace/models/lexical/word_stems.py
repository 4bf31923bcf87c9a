"""Hashes of the stems of words, in the language of the texts.

English has light stems of its own, in a kernel. Of other languages each distinct word of a batch is stemmed once, by
Snowball, whose stems of recent words are kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labelspace.features.language import AUTO
from labelspace.features.stems import KEEP_ACCENTS, NO_STEMMING, Stemmer, strip_accents, usual_accents
from labelspace.features.tokenizer import Analyzer
from labelspace.features.vocabulary import Vocabulary
from labelspace.models.lexical.kernels import hash_stems
from labelspace.types import Longs

ANALYZER = Analyzer("word", min_word_length=1)  # the C of "vitamin C" counts
ENGLISH, FINNISH = "english", "finnish"
MIN_FINNISH = 3  # letters that stay of a Finnish stem


@dataclass(frozen=True)
class WordStems:
    """How words of names and of texts are compared.

    >>> stems, forms, _ = WordStems("finnish").read(["Suomi", "Suomen"])
    >>> bool(stems[0] == stems[1]), bool(forms[0] == forms[1])
    (True, False)
    """

    stemming: str = ENGLISH
    accents: str = KEEP_ACCENTS

    @classmethod
    def of_language(cls, stemming: str, accents: str) -> "WordStems":
        """``accents`` may be auto: as usual in the language."""
        return cls(stemming, usual_accents(stemming) if accents == AUTO else accents)

    def read(self, texts: Sequence[str]) -> tuple[Longs, Longs, Longs]:
        """Hashes of the stem and of the form of each word of some texts, and the words up to the end of each text."""
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
    """A Finnish stem without what Snowball leaves of its inflection, so that a name and its genitive are one.

    Final vowels (suomi, suome-n), n and s (nainen, naise-t), s and ks (tutkimus, tutkimukse-t), and the weak grade of k
    and t (kaupunki, kaupungi-n; lehti, lehde-n).

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
