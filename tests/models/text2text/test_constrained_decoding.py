"""Beam search and loss, compared with every target scored token by token."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from labelspace.models.text2text.config import T5Config  # noqa: E402
from labelspace.models.text2text.constrained_decoding import TokenEmbeddings, beam_search, sequence_loss  # noqa: E402
from labelspace.models.text2text.t5 import T5  # noqa: E402
from labelspace.models.text2text.tokenization import PrefixTrie  # noqa: E402

START = 9
SEQUENCES = np.array([[3, 4, 1], [3, 5, 4], [3, 5, 6], [7, 1, 1], [8, 4, 5], [8, 4, 6]], np.int32)
COUNTS = np.array([1, 2, 1, 4, 1, 3], np.float32)


@pytest.fixture(scope="module")
def decoder():
    """A network, token embeddings and three encoded documents."""
    rng = np.random.default_rng(2)
    net = T5(T5Config(8, n_heads=2, head_dim=4, hidden_dim=16, n_encoder_layers=1, n_decoder_layers=2))
    net.init_weights(rng)
    net = net.requires_grad_(False).double()
    table = torch.from_numpy(rng.standard_normal((10, 8)))
    embedded = torch.from_numpy(rng.standard_normal((3, 4, 8)))
    documents = net.encode(embedded, torch.ones(3, 4, dtype=torch.bool))
    return net, TokenEmbeddings.of_all_tokens([table]), documents


@pytest.fixture
def trie():
    return PrefixTrie(SEQUENCES, START, COUNTS)


def probability(net, embeddings, documents, row, sequence):
    """The probability of a target, token by token without a trie."""
    log_p, alive = 0.0, np.ones(len(SEQUENCES), bool)
    for position, token in enumerate(sequence):
        embedded = embeddings.embed(np.array([[START, *sequence[:position]]], np.int32))
        hidden, _ = net.decode(embedded, documents.take(torch.tensor([row])))
        follow = np.unique(SEQUENCES[alive, position])
        share = np.array([COUNTS[alive & (SEQUENCES[:, position] == t)].sum() for t in follow]) / COUNTS[alive].sum()
        scores = embeddings.logits(hidden[:, -1], follow)[0].numpy() + np.log(share)
        log_p += float(scores[follow == token][0] - np.log(np.exp(scores).sum()))
        alive &= SEQUENCES[:, position] == token
    return np.exp(log_p)


def test_a_wide_beam_finds_every_target_with_its_probability(decoder, trie):
    document, target, p = beam_search(*decoder, trie, beam_size=10)
    for row in range(3):
        expected = [probability(*decoder, row, sequence) for sequence in SEQUENCES]
        assert sum(expected) == pytest.approx(1.0)
        actual = dict(zip(target[document == row].tolist(), p[document == row].tolist(), strict=True))
        assert actual == pytest.approx({i: e for i, e in enumerate(expected) if e > 1e-4 * max(expected)}, rel=1e-5)


def test_a_narrow_beam_keeps_so_many_best_first(decoder, trie):
    document, target, p = beam_search(*decoder, trie, beam_size=2)
    assert np.bincount(document).max() <= 2
    for row in range(3):
        of_row = p[document == row]
        assert (np.diff(of_row) <= 0).all()
        assert len(set(target[document == row])) == len(of_row)


def test_a_document_alone_gets_the_same_targets(decoder, trie):
    net, embeddings, documents = decoder
    document, target, p = beam_search(net, embeddings, documents, trie, beam_size=4)
    for row in range(3):
        alone = documents.take(torch.tensor([row]))
        _, target_alone, p_alone = beam_search(net, embeddings, alone, trie, beam_size=4)
        assert target_alone.tolist() == target[document == row].tolist()
        assert p_alone == pytest.approx(p[document == row], rel=1e-12)


def test_the_loss_is_the_negative_log_probability(decoder, trie):
    targets = np.array([1, 3, 5])
    expected = sum(np.log(probability(*decoder, row, SEQUENCES[i])) for row, i in enumerate(targets))
    assert float(sequence_loss(*decoder, trie, targets)) == pytest.approx(-expected, rel=1e-5)


def test_decoding_ends_where_a_single_target_remains(trie):
    assert trie.depth == 3
    assert trie.single_target[trie.paths[3]].tolist() == [-1, 3, 3, 3], "only one target starts with 7"
    assert PrefixTrie(SEQUENCES[:1], START, COUNTS[:1]).depth == 0


def test_a_single_target_has_probability_1(decoder):
    trie = PrefixTrie(SEQUENCES[:1], START, COUNTS[:1])
    _, target, p = beam_search(*decoder, trie, beam_size=3)
    assert target.tolist() == [0, 0, 0]
    assert p.tolist() == [1.0, 1.0, 1.0]
    assert float(sequence_loss(*decoder, trie, np.array([0, 0, 0]))) == 0.0
