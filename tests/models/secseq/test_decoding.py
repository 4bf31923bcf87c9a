from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch")

from labelspace.labels.codes import Codes, CodeTree  # noqa: E402
from labelspace.models.secseq import decoding as decoding  # noqa: E402
from labelspace.models.secseq.decoding import (  # noqa: E402
    Prefixes,
    best_of_rows,
    child_of,
    histogram,
    shares,
    write_sequences,
)
from tests.models.secseq.code_twin import (  # noqa: E402
    CODES,
    HIDDEN,
    code_tree,
    digits_after,
    labels_of,
    memory_of,
    state_of,
    stirred_writer,
)

SHARE = np.array([1, 1, 1, 1, 1, 0.5, 0.25, 0.75, 1], np.float32)


def prefix_of(tree, node):
    digits = []
    while node > 0:
        digits.insert(0, int(tree.digit[node]))
        node = tree.parent[node]
    return digits


# ---- down the tree


@pytest.mark.parametrize("sequences", [False, True])
@pytest.mark.parametrize("block", [4096, 2])
def test_the_tables_of_prefixes_give_the_scores_that_the_writer_gives(monkeypatch, sequences, block):
    monkeypatch.setattr(decoding, "NODE_BLOCK", block)
    writer, tree = stirred_writer(sequences=sequences).requires_grad_(False), code_tree()
    found = Prefixes.of(writer, tree, SHARE)
    a = torch.from_numpy(np.random.default_rng(1).standard_normal(HIDDEN).astype(np.float32))
    assert found.outputs.shape == (3, 3, HIDDEN), "the end is left out"
    open_prefixes = 0
    for node in range(tree.level_starts[-2]):
        prefix = prefix_of(tree, node)
        digits = digits_after(CODES, prefix)
        assert (found.gate[node] >= 0) == (len(digits) > 1)
        children = np.arange(found.first_child[node], found.last_child[node])
        assert found.digit[children].tolist() == digits
        if len(digits) == 1:
            assert np.isposinf(found.fixed[children]).all(), "certain"
            continue
        open_prefixes += 1
        ours = found.outputs[len(prefix)][digits] @ (a.numpy() * found.gates[found.gate[node]]) + found.prior[children]
        theirs = writer.scores(a, state_of(writer, prefix), len(prefix))[digits]
        assert np.allclose(ours, theirs, atol=1e-5)
    assert len(found.gates) == open_prefixes == 3


def test_labels_stand_at_the_ends_each_with_its_share():
    tree = code_tree()
    found = Prefixes.of(stirred_writer().requires_grad_(False), tree, SHARE)
    for label, leaf in enumerate(tree.leaf_of):
        assert found.gate[leaf] == -1
        if label not in (5, 6, 7):
            assert found.label[leaf] == label
            assert found.first_child[leaf] == found.last_child[leaf] == 0
            continue
        assert found.label[leaf] == -1
        children = np.arange(found.first_child[leaf], found.last_child[leaf])
        assert found.label[children].tolist() == [5, 6, 7]
        assert 1 / (1 + np.exp(-found.fixed[children])) == pytest.approx(SHARE[5:8])
    assert sorted(found.label[found.label >= 0]) == list(range(9))
    assert len(found.label) == tree.n_nodes + 3


def test_two_codes_that_are_shared_keep_their_labels_apart():
    codes = np.array([[1, 0], [0, 2], [1, 0], [0, 2], [0, 1], [1, 0]], np.int32)
    tree = code_tree(codes)
    share = np.array([0.1, 0.2, 0.3, 0.4, 1.0, 0.6], np.float32)
    found = Prefixes.of(stirred_writer(digits=2).requires_grad_(False), tree, share)
    for members in ([0, 2, 5], [1, 3]):
        leaf = tree.leaf_of[members[0]]
        children = np.arange(found.first_child[leaf], found.last_child[leaf])
        assert found.label[children].tolist() == members
        assert 1 / (1 + np.exp(-found.fixed[children])) == pytest.approx(share[members])


def chances_of(writer, a, share, choose):
    """The chance of each label, prefix by prefix."""
    found = []
    for label, code in enumerate(CODES.tolist()):
        chance = 1.0
        for place, digit in enumerate(code):
            exist = [
                other for other in digits_after(CODES, code[:place])
                if share[(CODES[:, : place + 1] == [*code[:place], other]).all(axis=1)].any() or not choose
            ]  # fmt: skip
            if digit not in exist:
                chance = 0.0
                break
            if len(digits_after(CODES, code[:place])) > 1:
                scores = writer.scores(a, state_of(writer, code[:place]), place)[exist]
                steps = scores.softmax(0) if choose else scores.sigmoid()
                chance *= steps[exist.index(digit)].item()
        alone = (CODES == code).all(axis=1).sum() == 1
        found.append(chance * (share[label] > 0 if alone else share[label]))
    return np.array(found)


@pytest.mark.parametrize("choose", [False, True])
@pytest.mark.parametrize("unseen", [[], [0], [4], [6], [5, 6, 7]])
def test_searching_and_drawing_give_the_chances_of_labels(choose, unseen):
    writer = stirred_writer(spread=0.8).requires_grad_(False)
    share = SHARE.copy()
    share[unseen] = 0
    if choose:
        share[5:8] /= max(share[5:8].sum(), 1)
    prefixes = Prefixes.of(writer, code_tree(), share)
    documents = np.random.default_rng(2).standard_normal((3, HIDDEN)).astype(np.float32)
    top = prefixes.search(documents, choose, 32, 9)
    drawn = prefixes.draw(documents, choose, 2000, 9, seed=1)
    for row, a in enumerate(documents):
        expected = chances_of(writer, torch.from_numpy(a), share, choose)
        labels = top.labels[row][top.labels[row] >= 0]
        assert set(labels) == set(range(9)) - set(unseen)
        assert top.scores[row, : len(labels)] == pytest.approx(expected[labels], rel=1e-4)
        counted = np.zeros(9)
        there = drawn.labels[row] >= 0
        counted[drawn.labels[row][there]] = drawn.scores[row][there]
        assert (np.abs(counted - expected) <= 5 * np.sqrt(expected * (1 - expected) / 2000) + 1e-6).all()
        assert not counted[unseen].any()


# ---- shares


def test_shares_by_hand():
    """Labels 5, 6 and 7 share a code that stands on documents 0, 2 and 3."""
    Y = np.zeros((5, 9), np.float32)
    Y[0, [5, 6]], Y[1, 0], Y[2, [5]], Y[3, [5, 0]] = 1, 1, 1, 1
    Y = sp.csr_matrix(Y)
    before = Y.copy()
    of_documents, of_labels = (shares(code_tree(), Y, flag) for flag in (True, False))
    assert of_documents == pytest.approx([1, 0, 0, 0, 0, 1, 1 / 3, 0, 0])
    assert of_labels == pytest.approx([1, 0, 0, 0, 0, 3 / 4, 1 / 4, 0, 0])
    assert of_documents.dtype == np.float32
    assert (Y != before).nnz == 0


# ---- sequences


SMALL = {
    1: np.array([[0], [2], [1]], np.int32),
    2: np.array([[0, 0], [0, 1], [1, 2], [2, 0]], np.int32),  # 1. and 2. have one code each: used up when it is written
    3: np.array([[0, 0, 0], [0, 0, 1], [1, 0, 2]], np.int32),
}


def all_sequences(writer, memory, codes, longest, history=None, written=()):
    """Every sequence with its chance and those of its codes: [(codes, chance, [chance of each code])]."""
    history = writer.blank(1, 1) if history is None else history
    if len(written) == longest:
        return [((), 1.0, [])]
    a = writer.attend(memory, history)[0, 0]
    left = np.array([code for code in codes.tolist() if tuple(code) not in written]).reshape(-1, codes.shape[1])
    found, width = [], writer.shape.width
    ends = 0.0

    def steps(p, prefix):
        nonlocal ends
        exist = digits_after(left, prefix)
        if not prefix and written:
            exist = [*exist, width]
        chances = writer.scores(a, p, len(prefix))[exist].softmax(0).tolist()
        if exist[-1] == width:
            ends = chances.pop()
            exist = exist[:-1]
        return zip(exist, chances, strict=True)

    def write(p, prefix, chance):
        if len(prefix) == codes.shape[1]:
            after = writer.after_codes((p - history[0, 0])[None, None], history[:, 0])
            for rest, more, each in all_sequences(writer, memory, codes, longest, after, (*written, prefix)):
                found.append(((prefix, *rest), chance * more, [chance, *each]))
            return
        for digit, step in steps(p, prefix):
            write(p + writer.of_digits(torch.tensor(digit), len(prefix)), (*prefix, digit), chance * step)

    write(history[0, 0], (), 1.0)
    return [*found, ((), ends, [])] if written else found


def written_codes(tree, leaves):
    """The codes of one sequence of leaves."""
    return tuple(tuple(prefix_of(tree, leaf)) for leaf in leaves if leaf >= 0)


def sequence_case(digits, encoder="bag", seed=0, n=2):
    writer = stirred_writer(digits=digits, sequences=True, encoder=encoder, seed=seed, spread=0.8).requires_grad_(False)
    return writer, memory_of(writer, n), CodeTree.of(Codes(SMALL[digits], 3))


def one_of(memory, row):
    return type(memory)(memory.states[row : row + 1], memory.there[row : row + 1])


@pytest.mark.parametrize("encoder", ["bag", "gru", "convolution"])
@pytest.mark.parametrize(("digits", "longest"), [(1, 2), (1, 3), (2, 2), (2, 3), (3, 2), (3, 3), (1, 6), (2, 6)])
def test_a_beam_as_wide_as_all_sequences_finds_each_with_its_chance(monkeypatch, digits, longest, encoder):
    monkeypatch.setattr(decoding, "LONGEST", longest)
    writer, memory, tree = sequence_case(digits, encoder)
    exact = [all_sequences(writer, one_of(memory, row), SMALL[digits], longest) for row in range(2)]
    leaves, weights = write_sequences(writer, memory, tree, len(exact[0]) + 3)
    assert leaves.shape == weights.shape == (2, len(exact[0]) + 3, longest)
    for row in range(2):
        assert sum(chance for _, chance, _ in exact[row]) == pytest.approx(1, abs=1e-5)
        known = {codes: (chance, each) for codes, chance, each in exact[row]}
        found = {}
        for own, counts in zip(leaves[row], weights[row], strict=True):
            if not counts.any():
                continue
            codes = written_codes(tree, own)
            assert codes not in found, "each sequence once"
            found[codes] = counts[own >= 0]
            assert not counts[own < 0].any()
            assert (own[len(codes) :] == -1).all(), "-1 after the last"
        assert found.keys() == known.keys()
        for codes, counts in found.items():
            chance, each = known[codes]
            assert counts == pytest.approx(chance * np.array(each), rel=2e-3, abs=1e-6)


def test_what_a_narrow_beam_keeps_counts_by_its_share_of_what_is_kept(monkeypatch):
    monkeypatch.setattr(decoding, "LONGEST", 3)
    writer, memory, tree = sequence_case(2)
    leaves, weights = write_sequences(writer, memory, tree, 3)
    for row in range(2):
        known = {
            codes: (chance, each) for codes, chance, each in all_sequences(writer, one_of(memory, row), SMALL[2], 3)
        }
        kept = [known[written_codes(tree, own)] for own in leaves[row]]
        total = sum(chance for chance, _ in kept)
        assert total < 0.7
        for (chance, each), own, counts in zip(kept, leaves[row], weights[row], strict=True):
            assert counts[own >= 0] == pytest.approx(chance / total * np.array(each), rel=1e-3)


@pytest.mark.parametrize("digits", [1, 2, 3])
@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("several", [1, 2, 5])
def test_only_codes_that_exist_are_written_none_twice_and_every_document_gets_some(monkeypatch, digits, seed, several):
    monkeypatch.setattr(decoding, "LONGEST", 6)
    for weights in range(3):
        writer, memory, tree = sequence_case(digits, seed=weights, n=4)
        leaves, counts = write_sequences(writer, memory, tree, several, seed)
        assert np.isfinite(counts).all()
        for row in range(4):
            assert counts[row, :, 0].sum() > 0
            for own in leaves[row]:
                there = own[own >= 0]
                assert (there >= tree.level_starts[-2]).all(), "whole codes"
                assert len(set(there)) == len(there)
                assert (own[len(there) :] == -1).all()
        kept = np.where(leaves[:, :, 0] >= 0, counts[:, :, 0], 0)
        assert (kept.sum(axis=1) <= 1 + 1e-5).all()


def test_a_beam_of_one_goes_past_a_prefix_whose_codes_are_all_written(monkeypatch):
    """A writer that likes one prefix above all: when its only code is written it has to take another, or end."""
    monkeypatch.setattr(decoding, "LONGEST", 3)
    writer, memory, tree = sequence_case(2)
    for layer, bias in ((writer.outputs[0], [0.0, 50.0, 0.0, -50.0]), (writer.outputs[1], [0.0, 0.0, 0.0])):
        layer.weight.zero_()
        layer.bias[:] = torch.tensor(bias)
    leaves, counts = write_sequences(writer, memory, tree, 1)
    codes = written_codes(tree, leaves[0, 0])
    assert codes[0] == (1, 2)
    assert len(set(codes)) == 3
    assert np.isfinite(counts).all()
    drawn, counts = write_sequences(writer, memory, tree, 20, seed=0)
    assert all(len(set(written_codes(tree, own))) == 3 for own in drawn[0])


def test_the_end_is_never_written_first_and_a_writer_that_wants_to_end_does(monkeypatch):
    monkeypatch.setattr(decoding, "LONGEST", 4)
    writer, memory, tree = sequence_case(2)
    writer.outputs[0].bias[-1] = 50.0
    for seed in (None, 1):
        leaves, _ = write_sequences(writer, memory, tree, 4, seed)
        assert (leaves[:, 0, 0] >= 0).all()
        assert (leaves[:, 0, 1:] == -1).all()


@pytest.mark.parametrize("digits", [1, 2])
def test_draws_of_sequences_come_to_their_exact_chances(monkeypatch, digits):
    monkeypatch.setattr(decoding, "LONGEST", 2)
    writer, memory, tree = sequence_case(digits)
    several = 3000
    leaves, counts = write_sequences(writer, memory, tree, several, seed=5)
    assert counts[leaves >= 0] == pytest.approx(1 / several)
    assert not counts[leaves < 0].any()
    for row in range(2):
        drawn = [written_codes(tree, own) for own in leaves[row]]
        for codes, chance, _ in all_sequences(writer, one_of(memory, row), SMALL[digits], 2):
            error = np.sqrt(chance * (1 - chance) / several)
            assert abs(drawn.count(codes) / several - chance) < 4.5 * error + 1e-6


def test_draws_go_by_the_seed_and_by_no_other_document(monkeypatch):
    monkeypatch.setattr(decoding, "LONGEST", 3)
    writer, memory, tree = sequence_case(2, n=3)
    whole, again, other = (write_sequences(writer, memory, tree, 30, seed)[0] for seed in (2, 2, 3))
    assert np.array_equal(whole, again)
    assert not np.array_equal(whole, other)
    for row in range(3):
        assert np.array_equal(write_sequences(writer, one_of(memory, row), tree, 30, 2)[0][0], whole[row])
        beams = [write_sequences(writer, given, tree, 4) for given in (memory, one_of(memory, row))]
        assert np.array_equal(beams[0][0][row], beams[1][0][0])
        assert beams[0][1][row] == pytest.approx(beams[1][1][0], rel=1e-4)


def test_children_are_found_by_their_digit():
    tree = code_tree()
    for node, child in pairwise(tree.path(2)):
        assert child_of(tree, np.array([node]), np.array([tree.digit[child]])).tolist() == [child]
    children = np.arange(1, tree.n_nodes)
    assert np.array_equal(child_of(tree, tree.parent[1:].astype(np.int64), tree.digit[1:].astype(np.int64)), children)


# ---- counting


def test_a_histogram_by_hand():
    tree = code_tree()
    one, crowd, other = tree.leaf_of[0], tree.leaf_of[5], tree.leaf_of[4]
    leaves = np.array([[[one, crowd, -1], [crowd, -1, -1]], [[other, one, -1], [one, -1, -1]]])
    weights = np.array([[[0.5, 0.25, 9], [0.5, 9, 9]], [[0.125, 0.25, 9], [0.25, 9, 9]]], np.float32)
    share = np.array([1, 1, 1, 1, 0.5, 0.5, 0.25, 0.0, 1], np.float32)
    top = histogram(leaves, weights, tree, share, 4)
    assert top.labels.tolist() == [[0, 5, 6, -1], [0, 4, -1, -1]]
    assert top.scores[0, :3] == pytest.approx([0.5, 0.375, 0.1875])
    assert top.scores[1, :2] == pytest.approx([0.5, 0.0625])
    assert histogram(leaves, weights, tree, share, 1).labels.tolist() == [[0], [0]]


def test_the_best_of_rows_are_those_of_sorting():
    rng = np.random.default_rng(3)
    table = (rng.random((20, 15)) * (rng.random((20, 15)) < 0.4)).round(1).astype(np.float32)
    table[4] = 0
    scores = sp.csr_matrix(table)
    scores.data[::5] = 0  # that is said, and yet nothing
    table = scores.toarray()
    scores = scores[:, rng.permutation(15)][:, np.arange(15)]  # columns in no order
    table = scores.toarray()
    top = best_of_rows(scores, 3)
    for row in range(20):
        best = [label for label in np.lexsort((np.arange(15), -table[row])) if table[row, label] > 0][:3]
        assert top.labels[row].tolist() == best + [-1] * (3 - len(best))
        assert top.scores[row, : len(best)].tolist() == table[row, best].tolist()
        assert np.isneginf(top.scores[row, len(best) :]).all()


def test_labels_of_real_documents_have_shares_of_at_most_1():
    Y = labels_of(30, 9)
    found = shares(code_tree(), Y, of_documents=True)
    assert (found <= 1).all()
    assert found[[0, 1, 2, 3, 4, 8]].tolist() == [1] * 6
    assert shares(code_tree(), Y, of_documents=False)[5:8].sum() == pytest.approx(1)
