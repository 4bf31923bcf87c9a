"""How many words of texts are unknown to features, and how many should be by the counts of the training documents."""

from typing import NamedTuple

import numpy as np

from labelspace.features.tokenizer import Spans
from labelspace.types import Floats, Ints, Longs

MIN_WORDS = 100  # words of a vocabulary from whose frequencies those of rarer words are estimated


class UnknownWords(NamedTuple):
    """The different words of each text, and how many of them are unknown. Shapes (n,)."""

    unknown: Longs
    words: Longs

    @classmethod
    def of(cls, spans: Spans, ids: Ints) -> "UnknownWords":
        """Count the spans of texts, whose ids are -1 where they are unknown."""
        n = len(spans.ends)
        text_of = np.repeat(np.arange(n), np.diff(spans.ends, prepend=0))
        order = np.lexsort((spans.hashes, text_of))
        texts, hashes = text_of[order], np.asarray(spans.hashes)[order]
        is_first = np.ones(len(order), bool)
        is_first[1:] = (texts[1:] != texts[:-1]) | (hashes[1:] != hashes[:-1])
        different = order[is_first]
        unknown = different[ids[different] < 0]
        return cls(np.bincount(text_of[unknown], minlength=n), np.bincount(text_of[different], minlength=n))


def expected_share(idf: Floats, min_df: int) -> float | None:
    """Return the share of unknown words to expect in a text like those of the training; None if it is unknown.

    A word of a training document that at most ``min_df`` documents have would be unknown if this document had not been
    in the training. ``idf`` are the weights of the known words, of which the rarest are in ``min_df`` documents. The
    number of words that are in fewer is not known: it is as many as Zipf's law says, N_r ~ 1 / (r (r + 1)).

    >>> df = np.repeat([2, 3, 10, 100], [100, 50, 20, 5])
    >>> idf = np.log((1 + 1000) / (1 + df)) + 1
    >>> round(expected_share(idf, min_df=2), 3)
    0.37
    """
    if len(idf) < MIN_WORDS:
        return None
    weights = np.asarray(idf, np.float64)
    df = (1 + min_df) * np.exp(weights.max() - weights) - 1  # since the rarest are in min_df documents
    n_rarest = int((df < min_df + 0.5).sum())
    rarer = sum(r * n_rarest * min_df * (min_df + 1) / (r * (r + 1)) for r in range(1, min_df))
    unknown = n_rarest * min_df + rarer
    return float(unknown / (df.sum() + rarer))
