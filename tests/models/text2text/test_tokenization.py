import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("tokenizers")

from labelspace.models.text2text.tokenization import (  # noqa: E402
    SubwordTokenizer,  # noqa: E402
    Tokenization,
    disambiguate,
    pad,
)
from tests.models.text2text.small_targets import LABELS, NAMES  # noqa: E402


def test_tokens_are_dropped_from_the_text_only(targets):
    tokenizer = SubwordTokenizer.train(["tea rice soap task input output label brand"] * 2, vocab_size=200)
    prompt = Tokenization.with_label_texts(tokenizer, LABELS, targets, max_length=5)
    tokens, is_token = pad(prompt.encode(["tea rice soap", "tea"]))
    dropped = prompt.drop_tokens(tokens, is_token, 0.999, np.random.default_rng(0))
    start = len(prompt.prefix)
    assert (dropped[:, :start] == tokens[:, :start]).all()
    assert (dropped[0, start : start + 3] == 2).all()
    assert dropped[0, start + 3 :].tolist() == tokens[0, start + 3 :].tolist()
    assert dropped[1, start + 1 :].tolist() == tokens[1, start + 1 :].tolist()


def test_a_long_text_is_cut_and_the_instruction_is_not(targets):
    tokenizer = SubwordTokenizer.train(["tea rice soap"] * 2, vocab_size=200)
    prompt = Tokenization.with_label_texts(tokenizer, LABELS, targets, max_length=2)
    (tokens,) = prompt.encode(["tea rice soap tea rice"])
    assert len(tokens) == len(prompt.prefix) + 2 + len(prompt.suffix)
    assert tokens[-len(prompt.suffix) :] == prompt.suffix


def test_each_label_is_one_token_in_training_from_scratch(targets):
    tokenizer = SubwordTokenizer.train(["tea rice"] * 2, vocab_size=50)
    tokenization = Tokenization.with_label_tokens(tokenizer, LABELS, targets, max_length=9)
    (trie,) = tokenization.tries
    assert trie.tree.code_length == 2
    start = len(tokenizer) + len(NAMES) + 2  # two columns may be NA
    assert tokenization.target_tokens.tolist() == [*(len(tokenizer) + np.arange(5)), start]


def test_equal_sequences_get_endings_that_no_other_has():
    distinct = disambiguate([[5, 6]] * 30 + [[5, 6, 2], [7]], n_tokens=6)
    assert len(set(map(tuple, distinct))) == 32
    assert [tokens for tokens in distinct if tokens[:2] != [5, 6]] == [[7]]
    assert distinct[0] == [5, 6]
    assert distinct[-2] == [5, 6, 2]
    assert max(map(len, distinct)) == 5  # 3 of one more, 16 of two more, 10 of three more


def test_a_document_without_tokens_gets_a_start_token():
    tokens, is_token = pad([[], [4, 5]])
    assert tokens.tolist() == [[0, 0], [4, 5]]
    assert is_token.tolist() == [[True, False], [True, True]]
