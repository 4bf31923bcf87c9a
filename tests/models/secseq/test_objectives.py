import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch")

from labelspace.labels.codes import Codes  # noqa: E402
from labelspace.models.secseq import objectives as lessons  # noqa: E402
from labelspace.models.secseq.objectives import ORDERS, PrefixObjective, SequenceObjective, allowed, merged  # noqa: E402
from tests.models.secseq.code_twin import CODES, code_tree, digits_after, labels_of, memory_of, state_of, stirred_writer  # noqa: E402

N = 8
ROWS = np.array([6, 1, 0, 3, 7], np.int32)
CHAINS = np.array([[0, 0, 0], [0, 1, 2]], np.int32)  # nothing to choose at the first and the last digit
ENCODERS = ("bag", "gru", "convolution")


def labels_in(Y, row):
    return Y[row].indices.tolist()


def slow_prefix_loss(writer, a, codes, labels, choose):
    """The loss on one document, label by label and prefix by prefix; and how many digits were to be written."""
    total, written = torch.zeros(()), 0
    own = [tuple(codes[label].tolist()) for label in labels]
    for place in range(codes.shape[1]):
        for prefix in sorted({code[:place] for code in own} if place else {()}):
            exist = digits_after(codes, prefix)
            if len(exist) == 1:
                continue
            scores = writer.scores(a, state_of(writer, prefix), place)[exist]
            follow = [code[place] for code in own if code[:place] == prefix]
            written += len(set(follow))
            if choose:
                total = total - sum(scores.log_softmax(0)[exist.index(digit)] for digit in follow)
            else:
                chances = torch.sigmoid(scores)
                for digit, chance in zip(exist, chances, strict=True):
                    total = total - torch.log(chance if digit in follow else 1 - chance)
    return total, written


@pytest.mark.parametrize("choose", [False, True])
@pytest.mark.parametrize("encoder", ENCODERS)
def test_the_loss_of_prefixes_is_that_of_going_through_them_one_by_one(choose, encoder):
    writer, Y = stirred_writer(encoder=encoder), labels_of(N, 9, unseen=[3])
    lesson = PrefixObjective(Codes(CODES, 3), Y, choose)
    memory = memory_of(writer, len(ROWS))
    loss, written = lesson.loss(writer, memory, ROWS)
    a = writer.vector(memory)
    found = [slow_prefix_loss(writer, a[i], CODES, labels_in(Y, row), choose) for i, row in enumerate(ROWS)]
    assert written == sum(count for _, count in found) > 10
    assert loss.item() == pytest.approx(sum(part.item() for part, _ in found) / len(ROWS), rel=1e-5)


@pytest.mark.parametrize("choose", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_loss_of_prefixes_on_any_codes(choose, seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, (11, 1 + seed)).astype(np.int32)
    writer, Y = stirred_writer(digits=1 + seed, seed=seed), labels_of(N, 11, seed)
    rows = rng.permutation(N).astype(np.int32)
    memory = memory_of(writer, N)
    loss, written = PrefixObjective(Codes(codes, 3), Y, choose).loss(writer, memory, rows)
    a = writer.vector(memory)
    found = [slow_prefix_loss(writer, a[i], codes, labels_in(Y, row), choose) for i, row in enumerate(rows)]
    assert written == sum(count for _, count in found)
    assert loss.item() == pytest.approx(sum(part.item() for part, _ in found) / N, rel=1e-5)


def test_where_one_digit_exists_there_is_nothing_to_learn():
    writer, Y = stirred_writer(), labels_of(N, 2)
    memory = memory_of(writer, N)
    lesson = PrefixObjective(Codes(CHAINS, 3), Y, choose=False)
    assert len(lesson.levels) == 2, "and nothing is kept of what is below"
    loss, written = lesson.loss(writer, memory, np.arange(N, dtype=np.int32))
    assert written == lesson.tokens == Y.nnz
    loss.backward()
    for name, weights in writer.named_parameters():
        taught = ".1." in name or name == "offset" or name == "digits.weight"
        assert bool(weights.grad is not None and weights.grad.any()) == taught, name
    assert weights_of_digits(writer) == {0}, "the digits of later places are not asked for"
    alone = PrefixObjective(Codes(CHAINS[:1], 3), Y[:, :1], choose=False)
    assert alone.tokens == 0
    loss, written = alone.loss(writer, memory_of(writer, 3), ROWS[:3])
    assert (loss.item(), written) == (0, 0)


def weights_of_digits(writer):
    """The rows of the table of digits that have a gradient."""
    return set(np.flatnonzero(writer.digits.weight.grad.abs().sum(1).numpy()).tolist())


@pytest.mark.parametrize("choose", [False, True])
@pytest.mark.parametrize("encoder", ENCODERS)
def test_gradients_of_prefixes_reach_every_weight_that_is_used(choose, encoder):
    writer, Y = stirred_writer(encoder=encoder), labels_of(N, 9)
    memory = memory_of(writer, N)
    PrefixObjective(Codes(CODES, 3), Y, choose).loss(writer, memory, np.arange(N, dtype=np.int32))[0].backward()
    for name, weights in writer.named_parameters():
        used = name not in ("ask.weight", "gates.0.0.weight", "priors.0.0.weight")  # what only 0 goes through
        assert bool(weights.grad is not None and weights.grad.any()) == used, name
    assert weights_of_digits(writer) == {0, 3}, "those of the prefixes 0 and 00"


@pytest.mark.parametrize("choose", [False, True])
def test_a_document_without_labels_teaches_that_nothing_follows_or_nothing(choose):
    writer, Y = stirred_writer(), labels_of(N, 9)
    loss, written = PrefixObjective(Codes(CODES, 3), Y, choose).loss(writer, memory_of(writer, 1), ROWS[1:2])
    assert written == 0
    assert (loss.item() > 0) == (not choose)


# ---- sequences


def slow_order(Y, order, rng):
    """The labels in the order they are written in."""
    counts = Y.sum(axis=0).A1
    keys = {"frequent": -counts, "rare": counts, "random": rng.permutation(Y.shape[1])}[order]
    return sorted(range(Y.shape[1]), key=lambda label: (keys[label], label))


def once_each(labels):
    """Without labels whose code is there already."""
    return [label for at, label in enumerate(labels) if CODES[label].tolist() not in CODES[labels[:at]].tolist()]


def slow_sequence_loss(writer, memory, codes, labels, longest=50):
    """The loss on one document, code by code and digit by digit; no end where labels are left out or none are there."""
    total, history, width = torch.zeros(()), writer.blank(1, 1), writer.shape.width
    for number, label in enumerate(labels[:longest] + [None] * (0 < len(labels) <= longest)):
        a = writer.attend(memory, history)[0, 0]
        p = history[0, 0]
        for place in range(codes.shape[1]):
            prefix = [] if label is None else codes[label, :place].tolist()
            exist = digits_after(codes, prefix)
            if place == 0 and number > 0:
                exist = [*exist, width]
            digit = width if label is None else codes[label, place]
            scores = writer.scores(a, p, place)[exist]
            total = total - scores.log_softmax(0)[exist.index(digit)]
            if label is None:
                break
            p = p + writer.of_digits(torch.tensor(digit), place)
        if label is not None:
            history = writer.after_codes((p - history[0, 0])[None, None], history[:, 0])
    return total


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("longest", [50, 2])
def test_the_loss_of_sequences_is_that_of_writing_them_code_by_code(monkeypatch, order, encoder, longest):
    monkeypatch.setattr(lessons, "LONGEST", longest)
    writer, Y = stirred_writer(sequences=True, encoder=encoder), labels_of(N, 9, unseen=[3])
    lesson = SequenceObjective(Codes(CODES, 3), Y, order, np.random.default_rng(4))
    memory = memory_of(writer, len(ROWS))
    loss, written = lesson.loss(writer, memory, ROWS)
    ranked, expected, count = slow_order(Y, order, np.random.default_rng(4)), 0.0, 0
    for i, row in enumerate(ROWS):
        labels = once_each(sorted(labels_in(Y, row), key=ranked.index))
        alone = type(memory)(memory.states[i : i + 1], memory.there[i : i + 1])
        expected += slow_sequence_loss(writer, alone, CODES, labels, longest).item()
        count += 3 * min(len(labels), longest)
    assert written == count
    assert max(np.diff(Y.indptr)) > 2
    assert loss.item() == pytest.approx(expected / len(ROWS), rel=1e-5)


@pytest.mark.parametrize("digits", [1, 2])
def test_the_loss_of_sequences_of_short_codes(digits):
    codes = np.unique(CODES[:, :digits], axis=0)
    writer, Y = stirred_writer(digits=digits, sequences=True), labels_of(N, len(codes), seed=2)
    lesson = SequenceObjective(Codes(codes, 3), Y, "frequent", np.random.default_rng(0))
    memory, rows = memory_of(writer, N), np.arange(N, dtype=np.int32)
    ranked = slow_order(Y, "frequent", np.random.default_rng(0))
    expected = sum(
        slow_sequence_loss(
            writer, type(memory)(memory.states[i : i + 1], memory.there[i : i + 1]), codes,
            sorted(labels_in(Y, i), key=ranked.index),
        ).item()
        for i in rows
    )  # fmt: skip
    loss, written = lesson.loss(writer, memory, rows)
    assert loss.item() == pytest.approx(expected / N, rel=1e-5)
    assert written == lesson.tokens == Y.nnz * digits


@pytest.mark.parametrize("encoder", ENCODERS)
def test_gradients_of_sequences_reach_every_weight(encoder):
    writer, Y = stirred_writer(sequences=True, encoder=encoder), labels_of(N, 9)
    lesson = SequenceObjective(Codes(CODES, 3), Y, "rare", np.random.default_rng(0))
    lesson.loss(writer, memory_of(writer, N), np.arange(N, dtype=np.int32))[0].backward()
    for name, weights in writer.named_parameters():
        assert weights.grad is not None, name
        assert weights.grad.any(), name


def test_documents_without_labels_alone_are_no_trouble():
    writer, Y = stirred_writer(sequences=True), labels_of(N, 9)
    lesson = SequenceObjective(Codes(CODES, 3), Y, "frequent", np.random.default_rng(0))
    memory = memory_of(writer, 1)
    loss, written = lesson.loss(writer, memory, ROWS[1:2])
    assert written == 0
    assert loss.item() == 0.0


def test_a_random_order_is_drawn_once_and_by_the_generator():
    Y = labels_of(N, 9)
    one, same, other = (
        SequenceObjective(Codes(CODES, 3), Y, "random", np.random.default_rng(seed)).labels for seed in (1, 1, 2)
    )
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


# ---- both


LESSONS = {
    "set": lambda codes, Y: PrefixObjective(codes, Y, choose=False),
    "label": lambda codes, Y: PrefixObjective(codes, Y, choose=True),
    "sequence": lambda codes, Y: SequenceObjective(codes, Y, "frequent", np.random.default_rng(0)),
}


@pytest.mark.parametrize("target", LESSONS)
@pytest.mark.parametrize("longest", [50, 2])
def test_tokens_are_the_digits_of_all_documents_and_labels_stay_as_they_are(monkeypatch, target, longest):
    monkeypatch.setattr(lessons, "LONGEST", longest)
    writer, Y = stirred_writer(sequences=target == "sequence"), labels_of(N, 9, unseen=[0])
    before = Y.copy()
    lesson = LESSONS[target](Codes(CODES, 3), Y)
    memory = memory_of(writer, 4)
    parts = [lesson.loss(writer, memory, rows)[1] for rows in np.arange(N, dtype=np.int32).reshape(2, 4)]
    assert lesson.tokens == sum(parts) > 0
    assert all(np.array_equal(getattr(Y, part), getattr(before, part)) for part in ("data", "indices", "indptr")), (
        "Y is left as it is"
    )


def test_which_digits_exist_after_prefixes():
    tree = code_tree()
    nodes = np.array([0, 1, 2, 4, 0, tree.n_nodes - 1], np.int64)
    expected = [[0, 1, 2], [0, 1, 2], [1], [0, 1, 2], [0, 1, 2], []]
    assert [np.flatnonzero(row).tolist() for row in allowed(tree, nodes, 4)] == expected


def test_labels_of_a_group_are_counted():
    Y = sp.csr_matrix(np.array([[1, 1, 0, 1], [0, 0, 0, 0], [0, 1, 1, 0]], np.float32))
    found = merged(Y, np.array([2, 0, 2, 2], np.int32), 3)
    assert found.toarray().tolist() == [[1, 0, 2], [0, 0, 0], [1, 0, 1]]
    assert found.has_sorted_indices


# ---- what is frequent


def test_digits_begin_at_the_log_odds_of_following_where_they_can():
    writer, Y = stirred_writer(), labels_of(N, 9, unseen=[3])
    PrefixObjective(Codes(CODES, 3), Y, choose=False).begin(writer)
    own = [{tuple(CODES[label].tolist()) for label in labels_in(Y, row)} for row in range(N)]
    for place in range(3):
        yes, no = np.full(3, 0.5), np.full(3, 0.5)
        for codes in own:
            for prefix in {code[:place] for code in codes} if place else {()}:
                exist = digits_after(CODES, prefix)
                follow = {code[place] for code in codes if code[:place] == prefix}
                for digit in exist if len(exist) > 1 else ():
                    (yes if digit in follow else no)[digit] += 1
        assert writer.outputs[place].bias.tolist() == pytest.approx(np.log(yes / no).tolist(), rel=1e-5)


def test_digits_of_sequences_begin_at_how_often_they_are_written():
    writer, Y = stirred_writer(sequences=True), labels_of(N, 9)
    lesson = SequenceObjective(Codes(CODES, 3), Y, "frequent", np.random.default_rng(0))
    lesson.begin(writer)
    written = CODES[lesson.labels]
    for place in range(3):
        times = np.bincount(written[:, place], minlength=3) + 0.5
        expected = np.log([*times, N + 0.5] if place == 0 else times) - np.log(N + 1)
        assert writer.outputs[place].bias.tolist() == pytest.approx(expected.tolist(), rel=1e-5)


def test_one_label_alone_has_nothing_to_begin_with():
    writer, Y = stirred_writer(), sp.csr_matrix(np.ones((N, 1), np.float32))
    before = [layer.bias.tolist() for layer in writer.outputs]
    PrefixObjective(Codes(CODES[:1], 3), Y, choose=False).begin(writer)
    assert [layer.bias.tolist() for layer in writer.outputs] == before
