import numpy as np
import pytest

pytest.importorskip("tokenizers")

from labelspace.errors import ModelError  # noqa: E402
from labelspace.models.text2text.tokenization import SubwordTokenizer  # noqa: E402


def test_a_tokenizer_read_from_its_json_gives_the_same_tokens_even_of_lone_surrogates():
    texts = ["Brass lamp, 119", "brass \ud800 bell"]
    tokenizer = SubwordTokenizer.train(texts * 2, vocab_size=60)
    again = SubwordTokenizer(tokenizer.json)
    assert again.encode(texts) == tokenizer.encode(texts)
    assert again.encode(texts, max_length=1) == [tokens[:1] for tokens in tokenizer.encode(texts)]


def test_a_broken_tokenizer_is_refused():
    with pytest.raises(ModelError, match="the saved tokenizer must be readable"):
        SubwordTokenizer(np.frombuffer(b"{}", np.uint8))
