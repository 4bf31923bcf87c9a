"""Texts as pieces of words: frequent words whole, rare ones in parts, by a tokenizer that can be kept as JSON.

The package ``tokenizers`` comes with ``transformers``; it is imported only where it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace.errors import ModelError, require
from labelspace.types import Csr

EXTRA: Final = "text2text"
SPECIAL: Final = ("<pad>", "</s>", "<unk>")
"""The first pieces, in the order that T5 has them."""
_WORDS = r"\w+:(?=\s)|[^\W\d_]+|\d+"  # the name of a field, a word, a number; marks between them say nothing
Json = npt.NDArray[np.uint8]
Tokens = list[list[int]]
"""The ids of the tokens of each text."""


class Pieces:
    """A tokenizer.

    >>> pieces = Pieces.learned(["Brass lamp", "brass bell"], vocabulary=100)
    >>> first, second = pieces.of(["Brass lamp", "brass"], length=10)
    >>> second == first[: len(second)], len(pieces) <= 100
    (True, True)
    """

    def __init__(self, json: Json) -> None:
        self.json = json
        tokenizers = require("tokenizers", EXTRA)
        try:
            self._tokenizer: Any = tokenizers.Tokenizer.from_str(bytes(json).decode("utf-8"))
        except Exception as error:  # the package raises nothing narrower
            raise ModelError(f"the saved tokenizer must be readable, but is not ({error}); train again") from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    @classmethod
    def learned(cls, texts: Iterable[str], vocabulary: int) -> Pieces:
        """Learn at most so many pieces: pairs of pieces that stand together most often become one (BPE)."""
        require("tokenizers", EXTRA)
        from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

        tokenizer: Any = Tokenizer(models.BPE(unk_token=SPECIAL[2]))
        tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
        words = pre_tokenizers.Split(Regex(_WORDS), "removed", invert=True)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, pre_tokenizers.Metaspace()])
        trainer = trainers.BpeTrainer(
            vocab_size=max(vocabulary, len(SPECIAL)), min_frequency=2, special_tokens=list(SPECIAL), show_progress=False
        )
        tokenizer.train_from_iterator(map(_encodable, texts), trainer)
        return cls(np.frombuffer(tokenizer.to_str().encode("utf-8"), np.uint8))

    def __len__(self) -> int:
        return int(self._tokenizer.get_vocab_size())

    def of(self, texts: Sequence[str], length: int | None = None) -> Tokens:
        """The first pieces of each text."""
        found = self._tokenizer.encode_batch([_encodable(text) for text in texts], add_special_tokens=False)
        return [each.ids[:length] for each in found]


def table_of(tokens: Tokens, n_tokens: int) -> Csr:
    """Tokens as they stand, row by row, in a table (n, n_tokens) of ones; one that stands twice is there twice."""
    ends = np.cumsum([0, *map(len, tokens)])
    ids = np.fromiter((token for row in tokens for token in row), np.int32, int(ends[-1]))
    return sp.csr_matrix((np.ones(len(ids), np.float32), ids, ends), shape=(len(tokens), n_tokens))


def _encodable(text: str) -> str:
    """The package refuses half characters (surrogates)."""
    return text.encode("utf-8", "replace").decode("utf-8")
