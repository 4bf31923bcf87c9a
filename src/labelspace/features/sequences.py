"""Texts as sequences of token ids, for methods that read words in order."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt

from labelspace.data.texts import check_texts, check_training_texts
from labelspace.errors import DataError
from labelspace.estimator import learned, param
from labelspace.estimator.parameter_constraints import integer
from labelspace.estimator.state_constraints import array, must, offsets
from labelspace.features.base import Features
from labelspace.features.characters import character_flags
from labelspace.features.sparse_matrix import NO_COUNTS, CsrRows, stack_rows
from labelspace.features.tokenizer import Analyzer, Spans, map_blocks
from labelspace.features.vocabulary import DOCUMENT_BLOCK, TokenStream, Vocabulary, learn_vocabulary
from labelspace.kernels import large_arrays
from labelspace.kernels.ngrams import count_rows
from labelspace.kernels.tokenize import Bytes, first_words
from labelspace.types import Csr, Ints, Longs

PAD: Final = 0  # the token after the last word of a text
UNKNOWN: Final = 1  # the token of every word that is not in the vocabulary
NUMBER: Final = 2  # the token of every number
_NUMBER_WORD = b"0"  # the word of all numbers: a number itself, so no other word is spelled like this


class Sequences(Features):
    r"""The first words of each text as token ids: PAD=0, UNKNOWN=1, NUMBER=2, words from 3 on by falling frequency.

    The preprocessing of SeCSeq (Chang et al. 2018, appendix A). Text is lower-cased; a word is one or more letters,
    digits or underscores (``\w+``). A number is a word of digits alone, of any script, or several of them with one of
    ``.,:/-`` between each two: 12, 3.5, 1,000, 1999/2000 and 2004-05-31 are one token each; 4th and x2 are words.

    The vocabulary is learned from the same first words that ``transform`` returns: a word that occurs only after them
    would use an id and never be trained. Of words of equal count the alphabetically first get into the vocabulary.

    >>> sequences = Sequences(vocab_size=2)
    >>> sequences.fit_transform(["Red apple", "A red car of 1999"])
    array([[3, 1, 0, 0, 0],
           [4, 3, 1, 1, 2]], dtype=int32)
    >>> sequences.tokens()
    ['<pad>', '<unknown>', '<number>', 'red', 'a']
    """

    name: ClassVar[str] = "sequences"

    vocab_size: int = param(50_000, integer(1), "Keep at most this many words, the most frequent.")
    max_length: int = param(300, integer(1), "Words of a text that are read.")
    min_df: int = param(1, integer(1), "Words in fewer training texts are unknown.")

    word_bytes_: Bytes = learned(array("uint8", "n_bytes"))  # UTF-8 of the words of the tokens from NUMBER on
    word_offsets_: Longs = learned(offsets("n_words", into="n_bytes"))  # (n_tokens - 1,)

    def check_state(self) -> None:
        """Check that the word of all numbers is in the vocabulary."""
        must(len(self._vocabulary) > 0, "words")

    @property
    def n_tokens(self) -> int:
        """Return the number of token ids, at most ``vocab_size`` + 3."""
        self.check_fitted()
        return self.word_offsets_.size - 1 + NUMBER

    n_features = n_tokens

    def fit_transform(self, texts: Iterable[str], y: object = None) -> Ints:
        """Fit, and return the token ids of the same texts, which are read once. Shape (n, longest)."""
        return _pad([self._learn(check_training_texts(texts))])

    def transform(self, texts: Iterable[str]) -> Ints:
        """Return the token ids of these texts, padded to the longest text, at least 1. Shape (n, longest)."""
        self.check_fitted()
        listed = check_texts(texts)

        def tokenize(start: int, stop: int) -> TokenStream:
            spans = self._analyzer.spans(listed[start:stop])
            return large_arrays.keep_each(TokenStream(self._vocabulary.ids(spans), NO_COUNTS, spans.ends))

        return _pad(map_blocks(tokenize, listed))

    def counts(self, ids: Ints) -> Csr:
        """Count each token in each row of ids, without PAD. Shape (n, n_tokens), float32."""
        ids = check_token_ids(ids, self.n_tokens)
        ends = np.arange(1, len(ids) + 1, dtype=np.int64) * ids.shape[1]
        tokens = np.where(ids == PAD, np.int32(-1), ids).ravel()
        columns, counts, ends = count_rows(tokens, NO_COUNTS, ends, self.n_tokens)
        return stack_rows([CsrRows(columns, counts.astype(np.float32), ends)], self.n_tokens)

    def tokens(self) -> list[str]:
        """Return the word of each token id; special tokens are in angle brackets."""
        self.check_fitted()
        return ["<pad>", "<unknown>", "<number>", *self._vocabulary.words()[1:]]

    def _learn(self, texts: Sequence[str]) -> TokenStream:
        """Learn the state; return the words of the texts under its ids."""
        self.check_params()
        vocabulary, stream, df, occurrences = learn_vocabulary(texts, self._analyzer, True, 1)
        words, new_ids = vocabulary.utf8_words(), np.full(len(vocabulary), -1, np.int32)
        # The vocabulary is in alphabetical order, and a stable sort leaves words of equal count so.
        by_count = np.argsort(-occurrences, kind="stable").tolist()
        kept = [i for i in by_count if df[i] >= self.min_df and words[i] != _NUMBER_WORD][: int(self.vocab_size)]
        if not kept:
            lower = "lower min_df, or " if self.min_df > 1 else ""
            rule = f"some word must occur in at least min_df={self.min_df} texts, but of these {len(texts)} none does"
            raise DataError(f"{rule}; {lower}give more or longer texts")
        new_ids[kept] = np.arange(1, len(kept) + 1)
        new_ids[[i for i, word in enumerate(words) if word == _NUMBER_WORD]] = 0
        final = Vocabulary.from_words([_NUMBER_WORD, *(words[i] for i in kept)])
        self.forget()  # not before: a fit that fails keeps the previous state
        self.word_bytes_, self.word_offsets_ = final.word_bytes, final.offsets
        return stream.renumber(new_ids)

    @property
    def _analyzer(self) -> Analyzer:
        return _FirstWords("word", min_word_length=1, max_length=int(self.max_length))

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary(self.word_bytes_, self.word_offsets_)


def check_token_ids(ids: npt.ArrayLike, n_tokens: int) -> Ints:
    """Check token ids (n, longest), which must be 0 to n_tokens - 1 because they are indices."""
    ids = np.asarray(ids)
    if ids.ndim != 2 or ids.dtype.kind not in "iu":
        found = f"shape {ids.shape} and type {ids.dtype}"
        raise DataError(f"token ids must be a matrix of integers, but are of {found}; give what transform returned")
    if ids.size and not 0 <= ids.min() <= ids.max() < n_tokens:
        rule = f"token ids must be from 0 to {n_tokens - 1}, but are from {ids.min()} to {ids.max()}"
        raise DataError(f"{rule}; give what transform of the same Sequences returned")
    return ids.astype(np.int32, copy=False)


@dataclass(frozen=True)
class _FirstWords(Analyzer):
    """The first words of each text, every number as the word 0."""

    max_length: int = 300

    def spans(self, texts: Sequence[str]) -> Spans:
        """Find the words of some texts."""
        text, starts, stops, hashes, ends = super().spans(texts)
        text = np.append(text, np.frombuffer(_NUMBER_WORD, np.uint8))
        return Spans(text, *first_words(text, starts, stops, hashes, ends, character_flags(r"\d"), self.max_length))


def _pad(blocks: list[TokenStream]) -> Ints:
    """Put documents into rows; ids of the vocabulary, -1 for an unknown word, become token ids."""
    longest = max([1, *(int(np.diff(block.ends, prepend=0).max(initial=0)) for block in blocks)])
    ids, row = large_arrays.empty((sum(len(block.ends) for block in blocks), longest), np.int32), 0
    for block in blocks:
        for part in large_arrays.blocks(len(block.ends), DOCUMENT_BLOCK):
            some = block.rows(part.start, part.stop)
            padded = ids[row : row + len(some.ends)]
            padded[:] = PAD
            padded[np.arange(longest) < np.diff(some.ends, prepend=0)[:, None]] = some.words + np.int32(NUMBER)
            row += len(padded)
    return ids
