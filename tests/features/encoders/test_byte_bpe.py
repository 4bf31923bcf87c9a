"""Byte pair encoding against the package tokenizers."""

import json
import random

import pytest

from labelspace.features.encoders import byte_bpe
from labelspace.features.encoders.byte_bpe import ByteBPE
from tests.features.encoders.weights import MERGES, TOKENS, tokenizer_json

TEXTS = [
    "",
    " ",
    "the cat's hat",
    "The  cat \n\n sat\t",
    " the",
    "the ",
    "\n the\n cat",
    "naïve café № ½ ²x 日本 x١٢",
    "a\x1cb \x85c",
    "don't we'll I'M 'sup",
    "1,000.5 _a_ __",
    "\u3000wide\u2003 space",
    "half ?",
    "e\u0301 🐈‍⬛ <s> the </s>",
    "\x00 \x00",
]


@pytest.fixture
def own():
    return ByteBPE({token: at for at, token in enumerate(TOKENS)}, MERGES)


@pytest.fixture
def reference():
    tokenizers = pytest.importorskip("tokenizers")
    about = {**tokenizer_json(), "added_tokens": []}  # ours reads special tokens as the characters that they are
    return tokenizers.Tokenizer.from_str(json.dumps(about))


def test_ids_are_those_of_the_package_tokenizers(own, reference):
    rng = random.Random(0)
    letters = [chr(c) for c in range(0x3000) if not 0xD800 <= c < 0xE000] + list("catheog's  \n") * 500
    drawn = ["".join(rng.choices(letters, k=60)) for _ in range(300)]
    for text in [*TEXTS, *drawn]:
        assert own.encode(text) == reference.encode(text, add_special_tokens=False).ids, repr(text)


def test_a_full_cache_starts_anew(own, monkeypatch):
    monkeypatch.setattr(byte_bpe, "MAX_CACHED", 2)
    first = own.encode("the cat sat on a mat")
    assert own.encode("the cat sat on a mat") == first
    assert len(own._cache) <= 2
