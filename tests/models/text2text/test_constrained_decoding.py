"""The beam and the loss, held against every answer written out."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from labelspace.models.text2text.constrained_decoding import Part, Vectors, best_answers, lost  # noqa: E402
from labelspace.models.text2text.t5 import T5, Shape  # noqa: E402

START = 9
SEQUENCES = np.array([[3, 4, 1], [3, 5, 4], [3, 5, 6], [7, 1, 1], [8, 4, 5], [8, 4, 6]], np.int32)
COUNTS = np.array([1, 2, 1, 4, 1, 3], np.float32)


@pytest.fixture
def asked():
    """A net, vectors, three documents as they were read, and a part."""
    rng = np.random.default_rng(2)
    net = T5(Shape(dimension=8, heads=2, head=4, hidden=16, layers=1, writing=2))
    net.begin(rng)
    net = net.requires_grad_(False).double()
    table = torch.from_numpy(rng.standard_normal((10, 8)))
    vectors = Vectors(np.arange(10, dtype=np.int32), table, table)
    memory = net.read(torch.from_numpy(rng.standard_normal((3, 4, 8))), torch.ones(3, 4, dtype=torch.bool))
    return net, vectors, memory, Part.of(SEQUENCES, START, COUNTS)


def chance(net, vectors, memory, row, sequence):
    """The chance of an answer, written out token by token without a tree."""
    log, alive = 0.0, np.ones(len(SEQUENCES), bool)
    for place, token in enumerate(sequence):
        fed = vectors.of(np.array([[START, *sequence[:place]]], np.int32))
        said, _ = net.write(fed, memory.rows(torch.tensor([row])))
        follow = np.unique(SEQUENCES[alive, place])
        share = np.array([COUNTS[alive & (SEQUENCES[:, place] == t)].sum() for t in follow]) / COUNTS[alive].sum()
        scores = vectors.scores(said[:, -1], follow)[0].numpy() + np.log(share)
        log += float(scores[follow == token][0] - np.log(np.exp(scores).sum()))
        alive &= SEQUENCES[:, place] == token
    return np.exp(log)


def test_a_wide_beam_finds_every_answer_with_its_chance(asked):
    net, vectors, memory, part = asked
    document, answer, chances = best_answers(net, vectors, memory, part, beam=10)
    for row in range(3):
        wanted = [chance(net, vectors, memory, row, sequence) for sequence in SEQUENCES]
        assert sum(wanted) == pytest.approx(1.0)
        found = dict(zip(answer[document == row].tolist(), chances[document == row].tolist(), strict=True))
        assert found == pytest.approx({i: p for i, p in enumerate(wanted) if p > 1e-4 * max(wanted)}, rel=1e-5)


def test_a_narrow_beam_keeps_so_many_best_first(asked):
    net, vectors, memory, part = asked
    document, answer, chances = best_answers(net, vectors, memory, part, beam=2)
    assert np.bincount(document).max() <= 2
    for row in range(3):
        mine = chances[document == row]
        assert (np.diff(mine) <= 0).all()
        assert len(set(answer[document == row])) == len(mine)


def test_a_document_alone_gets_the_same_answers(asked):
    net, vectors, memory, part = asked
    document, answer, chances = best_answers(net, vectors, memory, part, beam=4)
    for row in range(3):
        _, alone, theirs = best_answers(net, vectors, memory.rows(torch.tensor([row])), part, beam=4)
        assert alone.tolist() == answer[document == row].tolist()
        assert theirs == pytest.approx(chances[document == row], rel=1e-12)


def test_the_loss_is_what_the_chances_say(asked):
    net, vectors, memory, part = asked
    given = np.array([1, 3, 5])
    wanted = sum(np.log(chance(net, vectors, memory, row, SEQUENCES[i])) for row, i in enumerate(given))
    assert float(lost(net, vectors, memory, part, given)) == pytest.approx(-wanted, rel=1e-5)


def test_writing_ends_where_one_answer_is_left(asked):
    _, _, _, part = asked
    assert part.depth == 3
    assert part.only[part.paths[3]].tolist() == [-1, 3, 3, 3], "7 goes on in one way only"
    assert Part.of(SEQUENCES[:1], START, COUNTS[:1]).depth == 0


def test_an_answer_alone_is_certain(asked):
    net, vectors, memory, _ = asked
    part = Part.of(SEQUENCES[:1], START, COUNTS[:1])
    _, answer, chances = best_answers(net, vectors, memory, part, beam=3)
    assert answer.tolist() == [0, 0, 0]
    assert chances.tolist() == [1.0, 1.0, 1.0]
    assert float(lost(net, vectors, memory, part, np.array([0, 0, 0]))) == 0.0
