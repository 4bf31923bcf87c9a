"""Count words of one Snowball stem as one, and words with and without accents.

1. Every word of the training texts, a form, is stemmed once; the stems are the vocabulary.
2. The forms are stored with their stems, so that a known word is looked up and not stemmed again.
3. A word that is not in the training texts is stemmed when it is found.

Accents are stripped from stems, not from words: many endings are known by their accents.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Self

import numpy as np

from labelspace.estimator.state_constraints import array, ids, offsets
from labelspace.features.language import DATA, UNKNOWN
from labelspace.features.tokenizer import Spans
from labelspace.features.vocabulary import TokenStream, Vocabulary
from labelspace.kernels.ngrams import count_frequencies
from labelspace.kernels.tokenize import Bytes
from labelspace.types import Ints, Longs

NO_STEMMING = "none"
LANGUAGES: tuple[str, ...] = tuple(DATA["stemmers"])
KEEP_ACCENTS, STRIP_ACCENTS = "none", "unicode"  # as scikit-learn's strip_accents
ACCENTS_OFTEN_LEFT_OUT = ("catalan", "french", "greek", "italian", "portuguese", "romanian", "spanish")
"""Languages in which letters with and without an accent are the same letter, and users often leave accents out."""
MAX_KEPT = 2**17  # stems in the cache: more would use more memory, fewer would be computed again
MAX_BYTES = 64  # of a word: a longer one is in no language, and stays unchanged
_ACCENTS = re.compile("[\u0300-\u036f]+")


def stemming_language(language: str) -> str:
    """Return the language of the stems for a language: none if it has no stemmer, English if it is unknown.

    >>> stemming_language("finnish"), stemming_language("thai"), stemming_language("unknown")
    ('finnish', 'none', 'english')
    """
    if language == UNKNOWN:
        return "english"
    return language if language in LANGUAGES else NO_STEMMING


def usual_accents(language: str) -> str:
    """Return the default for accents: to strip them in languages in which they are often left out.

    >>> usual_accents("italian"), usual_accents("german")
    ('unicode', 'none')
    """
    return STRIP_ACCENTS if language in ACCENTS_OFTEN_LEFT_OUT else KEEP_ACCENTS


def strip_accents(word: bytes) -> bytes:
    """Return the word without accents; marks of scripts other than Latin, Greek and Cyrillic stay.

    >>> strip_accents("perché".encode()), strip_accents("が".encode()).decode()
    (b'perche', 'が')
    """
    if word.isascii():
        return word
    bare = _ACCENTS.sub("", unicodedata.normalize("NFD", word.decode("utf-8", "surrogatepass")))
    return unicodedata.normalize("NFC", bare).encode("utf-8", "surrogatepass") or word


@lru_cache(MAX_KEPT)
def stem(word: bytes, language: str) -> bytes:
    """Return the stem of a word in lower case.

    >>> stem(b"baking", "english"), stem(b"baked", "english")
    (b'bake', b'bake')
    """
    if len(word) > MAX_BYTES:
        return word
    from snowballstemmer import stemmer

    # A stemmer keeps the word as its state, so threads must not share one; making one is quick.
    stemmed: str = stemmer(language).stemWord(word.decode("utf-8", "surrogatepass"))
    return stemmed.encode("utf-8", "surrogatepass") or word


@dataclass(frozen=True)
class Stemmer:
    """A function from a word to the stem, or the word without accents, that it is counted as.

    >>> Stemmer("italian", STRIP_ACCENTS)("università".encode())
    b'univers'
    >>> Stemmer(NO_STEMMING, STRIP_ACCENTS)("università".encode())
    b'universita'
    """

    language: str = NO_STEMMING
    accents: str = KEEP_ACCENTS

    @property
    def changes_words(self) -> bool:
        """Return whether some words are changed."""
        return self != Stemmer()

    def __call__(self, word: bytes) -> bytes:
        """Return the stem of a word; without accents if they are to be stripped."""
        stemmed = word if self.language == NO_STEMMING else stem(word, self.language)
        return stemmed if self.accents == KEEP_ACCENTS else strip_accents(stemmed)


def stem_words(
    forms: Vocabulary, stream: TokenStream, stemmer: Stemmer, min_df: int
) -> tuple[Vocabulary, TokenStream, Longs, Longs]:
    """Number the stems that occur in at least ``min_df`` texts (step 1); all others get the id -1.

    Returns the stems, the ids of all documents, and for each stem the number of its documents and of its occurrences.
    """
    stems = [stemmer(form) for form in forms.utf8_words()]
    words = Vocabulary.from_words(sorted(set(stems)))
    stream = stream.renumber(np.array([words.number[word] for word in stems], np.int32))
    if stream.counts.size:
        stream = stream.counted(len(words))
    df, occurrences = count_frequencies(*stream, len(words))
    kept = df >= min_df
    vocabulary, new_ids = words.select_sorted(kept)
    return vocabulary, stream.renumber(new_ids), df[kept], occurrences[kept]


@dataclass(frozen=True, eq=False)
class Forms(Vocabulary):
    """The words of the training texts, and the id of the stem of each, -1 for a stem that is not in the vocabulary."""

    word_bytes: Annotated[Bytes, array("uint8", "n_form_bytes")]  # UTF-8 of all forms, one after the other
    offsets: Annotated[Longs, offsets("n_forms", into="n_form_bytes")]
    stems: Annotated[Ints, ids("n_forms", below="n_words", at_least=-1)]

    @classmethod
    def link(cls, forms: Vocabulary, vocabulary: Vocabulary, stemmer: Stemmer) -> Self:
        """Return the forms with the ids of their stems in the vocabulary."""
        found = [vocabulary.number.get(stemmer(form), -1) for form in forms.utf8_words()]
        return cls(forms.word_bytes, forms.offsets, np.array(found, np.int32))

    def relinked(self, vocabulary: Vocabulary, stemmer: Stemmer) -> Self:
        """Return the forms with the ids of stems that the vocabulary did not have before."""
        found, words = self.stems.copy(), self.utf8_words()
        for form in np.flatnonzero(found < 0).tolist():
            found[form] = vocabulary.number.get(stemmer(words[form]), -1)
        return type(self)(self.word_bytes, self.offsets, found)

    def stem_ids(self, spans: Spans, vocabulary: Vocabulary, stemmer: Stemmer) -> Ints:
        """Return the id of the stem of each span (steps 2 and 3), -1 for an unknown stem."""
        forms = self.ids(spans)
        found: Ints = np.append(self.stems, np.int32(-1))[forms]
        for at in np.flatnonzero(forms < 0).tolist():
            word = spans.text[spans.starts[at] : spans.stops[at]].tobytes()
            found[at] = vocabulary.number.get(stemmer(word), -1)
        return found
