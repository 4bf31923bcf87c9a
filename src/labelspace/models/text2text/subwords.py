"""Subword tokenizer: frequent words are one token, rare ones several; it is saved as JSON.

The package ``tokenizers`` comes with ``transformers``; it is imported on first use.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace.data.texts import without_lone_surrogates
from labelspace.errors import ModelError, require
from labelspace.types import Csr

EXTRA: Final = "text2text"
SPECIAL_TOKENS: Final = ("<pad>", "</s>", "<unk>")  # the first tokens, in T5's order
_WORDS = r"\w+:(?=\s)|[^\W\d_]+|\d+"  # the name of a field, a word, a number; punctuation says nothing
Json = npt.NDArray[np.uint8]
Tokens = list[list[int]]  # the token ids of each text


class SubwordTokenizer:
    """A tokenizer of the package ``tokenizers``, trained here or pretrained.

    >>> tokenizer = SubwordTokenizer.train(["Brass lamp", "brass bell"], vocab_size=100)
    >>> first, second = tokenizer.encode(["Brass lamp", "brass"], max_length=10)
    >>> second == first[: len(second)], len(tokenizer) <= 100
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
    def train(cls, texts: Iterable[str], vocab_size: int) -> Self:
        """Byte-pair encoding (BPE) on lower-cased words: the most frequent pair of tokens becomes one."""
        require("tokenizers", EXTRA)
        from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

        tokenizer: Any = Tokenizer(models.BPE(unk_token=SPECIAL_TOKENS[2]))
        tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
        words = pre_tokenizers.Split(Regex(_WORDS), "removed", invert=True)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, pre_tokenizers.Metaspace()])
        special = list(SPECIAL_TOKENS)
        trainer = trainers.BpeTrainer(
            vocab_size=max(vocab_size, len(special)), min_frequency=2, special_tokens=special, show_progress=False
        )
        tokenizer.train_from_iterator(map(without_lone_surrogates, texts), trainer)
        return cls(np.frombuffer(tokenizer.to_str().encode("utf-8"), np.uint8))

    def __len__(self) -> int:
        return int(self._tokenizer.get_vocab_size())

    @property
    def largest_id(self) -> int:
        """The largest token id."""
        return max(self._tokenizer.get_vocab().values(), default=0)

    def encode(self, texts: Sequence[str], max_length: int | None = None) -> Tokens:
        """The first ``max_length`` tokens of each text."""
        encodable = list(map(without_lone_surrogates, texts))
        encodings = self._tokenizer.encode_batch(encodable, add_special_tokens=False)
        return [encoding.ids[:max_length] for encoding in encodings]

    def decode(self, sequences: Tokens) -> list[str]:
        """The text of each sequence of tokens."""
        return list(self._tokenizer.decode_batch(sequences, skip_special_tokens=True))


def token_matrix(documents: Tokens, n_tokens: int) -> Csr:
    """Tokens as ones (n, n_tokens), in the order of the text; a token that occurs twice has two entries."""
    ends = np.cumsum([0, *map(len, documents)])
    ids = np.fromiter((token for tokens in documents for token in tokens), np.int32, int(ends[-1]))
    return sp.csr_matrix((np.ones(len(ids), np.float32), ids, ends), shape=(len(documents), n_tokens))
