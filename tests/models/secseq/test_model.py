import hashlib
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import Pipeline

torch = pytest.importorskip("torch")

import labelspace  # noqa: E402
from labelspace.data.synthetic import planted  # noqa: E402
from labelspace.errors import DataError, MissingExtraError, ModelError, ParameterError  # noqa: E402
from labelspace.features.normalize import normalize_rows  # noqa: E402
from labelspace.labels.codes import QUANTIZERS, SCHEMES, CodeTree  # noqa: E402
from labelspace.models.secseq import decoder as writer  # noqa: E402
from labelspace.models.secseq import decoding as decoding  # noqa: E402
from labelspace.models.secseq import model as secseq  # noqa: E402
from labelspace.models.secseq import objectives as lessons  # noqa: E402
from labelspace.models.secseq.model import SeCSeq  # noqa: E402
from labelspace.types import LabelSpace  # noqa: E402

ENCODERS, TARGETS = ("bag", "gru", "convolution"), ("set", "label", "sequence")
SIZES = {"width": 8, "digits": 2, "hidden": 64, "memory": 32, "word": 32, "beam": 8, "rate": 0.01}


@pytest.fixture(scope="module")
def documents():
    """Train and test; of the labels, 7 is on no training document."""
    whole = planted(n=460, d=300, l=20, texts=True, seed=2)
    Y = whole.Y.tolil()
    Y[:400, 7] = 0
    whole = type(whole)(Y.tocsr(), whole.labels, texts=whole.texts, X=whole.X)
    return whole.rows(range(400)), whole.rows(range(400, 460))


@pytest.fixture(scope="module")
def few():
    """Documents for what need not be learned well."""
    return planted(n=90, d=60, l=12, texts=True, seed=3)


def inputs(model, documents):
    return documents.X if model.encoder == "bag" else documents.texts


def fit(model, documents, **aids):
    return model.fit(inputs(model, documents), documents.Y, **aids)


def quick(**params):
    """A training of a moment."""
    return SeCSeq(**{**SIZES, "hidden": 8, "memory": 8, "word": 8, "epochs": 2, "samples": 10, **params})


@pytest.fixture(scope="module")
def trained(documents):
    """A model of each encoder and target, trained once."""
    known = {}

    def of(encoder, target):
        if (encoder, target) not in known:
            known[encoder, target] = fit(SeCSeq(encoder=encoder, target=target, epochs=6, **SIZES), documents[0])
        return known[encoder, target].set_params(decoding="beam")

    return of


def digest(folder):
    files = sorted(path for path in folder.iterdir() if path.suffix != ".json")
    return [(path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in files]


def same(one, other):
    return np.array_equal(one.labels, other.labels) and np.array_equal(one.scores, other.scores)


def same_state(one, other):
    arrays = ("vectors_", "vector_scales_", "weights_", "digits_", "shares_", "word_bytes_", "word_offsets_")
    return all(np.array_equal(getattr(one, key), getattr(other, key)) for key in arrays)


def hits(top, Y):
    """The share of documents whose first label is right."""
    return Y[np.arange(Y.shape[0]), top.labels[:, 0]].mean()


combinations = pytest.mark.parametrize(
    ("encoder", "target"), [(encoder, target) for encoder in ENCODERS for target in TARGETS]
)


# ---- learning


@pytest.mark.slow
@combinations
@pytest.mark.parametrize("way", ["beam", "sampling"])
def test_planted_labels_are_found(documents, trained, encoder, target, way):
    _, test = documents
    model = trained(encoder, target).set_params(decoding=way)
    top = model.predict_topk(inputs(model, test), 20)
    assert hits(top, test.Y) > 0.8
    assert 7 not in top.labels, "no document to suggest it by"
    assert (top.labels[:, -1] == -1).all()
    there = top.labels >= 0
    assert (top.scores[there] > 0).all()
    assert (top.scores[there] <= 1 + 1e-5).all()


@pytest.mark.slow
@combinations
def test_a_saved_model_answers_alike(documents, trained, tmp_path, encoder, target):
    _, test = documents
    model = trained(encoder, target)
    model.save(tmp_path / "model")
    for way in ("beam", "sampling"):
        loaded = labelspace.load(tmp_path / "model").set_params(decoding=way)
        model.set_params(decoding=way)
        assert same(loaded.predict_topk(inputs(model, test), 5), model.predict_topk(inputs(model, test), 5))
    loaded.set_params(decoding="beam").save(tmp_path / "again")
    assert digest(tmp_path / "again") == digest(tmp_path / "model")


@pytest.mark.slow
@combinations
def test_threads_blocks_and_neighbors_change_no_answer(documents, trained, monkeypatch, encoder, target):
    _, test = documents
    model = trained(encoder, target)
    for way in ("beam", "sampling"):
        model.set_params(decoding=way)
        whole = model.predict_topk(inputs(model, test), 5)
        monkeypatch.setattr(secseq, "ROW_BLOCK", 7)
        blocks = []
        for threads in ("1", "2"):
            monkeypatch.setenv("LABELSPACE_THREADS", threads)
            blocks.append(model.predict_topk(inputs(model, test), 5))
        monkeypatch.undo()
        assert same(*blocks)
        agree = whole.labels == blocks[0].labels
        assert agree.mean() > 0.98, "but for the last bits of sums"
        assert np.allclose(whole.scores[agree], blocks[0].scores[agree], atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("encoder", "target"), [("bag", "set"), ("gru", "sequence"), ("convolution", "label")])
@pytest.mark.parametrize("trees", [1, 2])
def test_the_same_seed_is_the_same_model_whatever_the_number_of_threads(few, monkeypatch, encoder, target, trees):
    models = []
    for threads, seed in (("1", 0), ("2", 0), ("1", 1)):
        monkeypatch.setenv("LABELSPACE_THREADS", threads)
        models.append(fit(quick(encoder=encoder, target=target, trees=trees, seed=seed, patience=5), few))
    assert same_state(models[0], models[1])
    assert models[0].course_ == models[1].course_
    assert not np.array_equal(models[0].weights_, models[2].weights_)
    if trees == 2:
        assert not np.array_equal(models[0].weights_[0], models[0].weights_[1])


def test_torch_works_on_one_thread_in_training_and_in_answering(few, monkeypatch):
    before, seen = torch.get_num_threads(), []
    look = writer.CodeDecoder.vector
    monkeypatch.setattr(
        writer.CodeDecoder, "vector", lambda self, memory: seen.append(torch.get_num_threads()) or look(self, memory)
    )
    monkeypatch.setenv("LABELSPACE_THREADS", "2")
    try:
        torch.set_num_threads(3)
        model = fit(quick(trees=2, epochs=1), few)
        trained = len(seen)
        model.predict_topk(few.X, 3)
        assert len(seen) > trained > 0
        assert set(seen) == {1}
        assert torch.get_num_threads() == 3, "and is let go again"
    finally:
        torch.set_num_threads(before)


@pytest.mark.slow
def test_the_first_tree_is_the_same_beside_another(few):
    one, two = (fit(quick(trees=trees), few) for trees in (1, 2))
    assert np.array_equal(one.weights_[0], two.weights_[0])
    assert np.array_equal(one.digits_[0], two.digits_[0])
    assert np.array_equal(one.vectors_[0], two.vectors_[0])


@pytest.mark.slow
def test_several_trees_are_as_good_as_the_mean_of_each(documents):
    train, test = documents
    settings = {**SIZES, "epochs": 5, "scheme": "projection", "width": 3}  # codes of which many are shared
    forest = fit(SeCSeq(trees=3, **settings), train)
    alone = []
    for tree in range(3):
        model = fit(SeCSeq(**{**settings, "epochs": 1}), train)
        for key in ("vectors_", "vector_scales_", "weights_", "digits_", "shares_"):
            setattr(model, key, getattr(forest, key)[tree : tree + 1])
        alone.append(model.predict_topk(test.X, 20))
    top = forest.predict_topk(test.X, 5)
    assert hits(top, test.Y) >= np.mean([hits(one, test.Y) for one in alone])
    table = np.zeros((3, 60, 20))
    for tree, one in enumerate(alone):
        rows, places = np.nonzero(one.labels >= 0)
        table[tree, rows, one.labels[rows, places]] = one.scores[rows, places]
    assert np.allclose(np.take_along_axis(table.mean(axis=0), top.labels, 1), top.scores, atol=1e-5)
    assert np.allclose(np.sort(table.mean(axis=0))[:, : -5 - 1 : -1], top.scores, atol=1e-5)


def test_more_trees_than_one_list_as_many_labels_as_are_asked_for(few, monkeypatch):
    monkeypatch.setattr(secseq, "LISTED", 2)
    model = fit(quick(trees=2), few)
    assert (model.predict_topk(few.X, 10).labels >= 0).all()


def watched_steps(model, few, monkeypatch, **aids):
    """What each step is given: rows, what is left of the rates, and the epoch's generator."""
    seen = []
    step = secseq._Task._step

    def spy(self, net, lesson, rows, left, rng):
        seen.append((rows.copy(), left, net.n_steps))
        return step(self, net, lesson, rows, left, rng)

    monkeypatch.setattr(secseq._Task, "_step", spy)
    fit(model, few, **aids)
    return seen


def test_every_epoch_has_all_documents_in_an_order_of_its_own_and_rates_fall_in_a_line(few, monkeypatch):
    seen = watched_steps(quick(epochs=2), few, monkeypatch)
    half = len(seen) // 2
    one, other = (np.concatenate([rows for rows, *_ in part]) for part in (seen[:half], seen[half:]))
    assert sorted(one) == sorted(other) == list(range(90))
    assert not np.array_equal(one, other)
    assert np.allclose([left for _, left, _ in seen], 1 - np.arange(len(seen)) / len(seen))
    assert [number for *_, number in seen] == list(range(len(seen)))


def test_the_rates_of_weights_and_of_vectors_fall_in_a_line(few, monkeypatch):
    rates, descend, move = [], writer.Learner.descend, secseq.SparseLayer.descend

    def learner_spy(self, loss, clip, rate, number):
        rates.append([rate, number])
        descend(self, loss, clip, rate, number)

    def layer_spy(self, given, gradient, rate):
        rates[-1].append(rate)
        move(self, given, gradient, rate)

    monkeypatch.setattr(writer.Learner, "descend", learner_spy)
    monkeypatch.setattr(secseq.SparseLayer, "descend", layer_spy)
    fit(quick(rate=0.02, feature_rate=0.3), few)
    left = 1 - np.arange(len(rates)) / len(rates)
    assert len(rates) == 30
    assert np.allclose(rates, np.stack([0.02 * left, np.arange(1, 31), 0.3 * left], axis=1))


def test_each_tree_begins_with_weights_of_its_own(few):
    model = fit(quick(trees=2, epochs=1, rate=1e-20, feature_rate=1e-20), few)
    for values in (model.weights_, model.vectors_ * model.vector_scales_[:, :, None]):
        assert np.abs(values[0] - values[1]).mean() > 0.3 * np.abs(values).mean()
    assert np.abs(fit(quick(epochs=1, rate=1e-20, seed=1), few).weights_ - model.weights_[0]).mean() > 0.05


@pytest.mark.slow
def test_labels_are_written_in_the_order_that_is_asked_for(few, monkeypatch):
    tasks, make = [], secseq._Task.__init__
    monkeypatch.setattr(secseq._Task, "__init__", lambda self, *given: tasks.append(self) or make(self, *given))
    counts = few.Y.sum(axis=0).A1
    for order in ("frequent", "rare", "random"):
        fit(quick(target="sequence", order=order, trees=2, epochs=1), few)
    for task, sign in zip(tasks[:2], (-1, 1), strict=True):
        for lesson in task.lessons:
            parts = np.split(lesson.labels, lesson.ends[1:-1])
            assert all((np.diff(sign * counts[part]) >= 0).all() for part in parts)
    one, other = (lesson.labels for lesson in tasks[2].lessons)
    assert not np.array_equal(one, other), "each tree has a random order of its own"


@pytest.mark.parametrize("target", TARGETS)
def test_labels_that_share_a_code_have_their_shares(few, target):
    model = fit(quick(target=target, width=2, epochs=1), few)
    leaf, Y = CodeTree.of(model.label_codes()[0]).leaf_of, few.Y.toarray()
    for label in range(12):
        mine = Y[:, leaf == leaf[label]]
        of_all = mine.sum() if target == "label" else mine.any(axis=1).sum()
        assert model.shares_[0, label] == pytest.approx(Y[:, label].sum() / of_all)


def test_units_that_are_left_out_are_made_up_for_by_the_others(few, monkeypatch):
    """One document's units are left out, whatever is written of it; each document has others."""
    seen = {}
    for share in (0.0, 0.75):
        loss = lessons.PrefixObjective.loss

        def spy(self, net, memory, rows, share=share, loss=loss):
            seen.setdefault(share, memory.states.detach().numpy().copy())
            return loss(self, net, memory, rows)

        monkeypatch.setattr(lessons.PrefixObjective, "loss", spy)
        fit(quick(hidden=64, dropout=share, input_dropout=0.0, epochs=1), few)
        monkeypatch.undo()
    there = seen[0.0] > 0
    factors = seen[0.75][there] / seen[0.0][there]
    assert set(factors.round(4)) == {0.0, 4.0}
    assert 0.1 < (factors > 0).mean() < 0.4
    assert len({tuple(row) for row in (seen[0.75] > 0).reshape(len(there), -1).tolist()}) == len(there)


def one_step(few, monkeypatch, **params):
    """The arguments of one Adam step, and the feature vectors before and after one step of Adagrad."""
    model, found = quick(epochs=1, batch=90, **params), []
    monkeypatch.setattr("labelspace.training.early_stopping.BATCHES", 1)
    descend, move = writer.Learner.descend, secseq.SparseLayer.descend

    def learner_spy(self, loss, clip, rate, number):
        before = self.weights.value.copy()
        descend(self, loss, clip, rate, number)
        found.append((clip, rate, number, np.abs(self.weights.value - before).max()))

    def layer_spy(self, given, gradient, rate):
        before = self.vectors.copy()
        move(self, given, gradient, rate)
        found.append((rate, given, gradient.copy(), np.abs(self.vectors - before).max()))

    monkeypatch.setattr(writer.Learner, "descend", learner_spy)
    monkeypatch.setattr(secseq.SparseLayer, "descend", layer_spy)
    fit(model, few)
    return found


def test_a_step_moves_weights_and_vectors_at_their_own_rates(few, monkeypatch):
    adam, adagrad = one_step(few, monkeypatch, rate=0.02, feature_rate=0.3, clip=7.0, input_dropout=0.0)
    assert adam[:3] == (7.0, 0.02, 1)
    assert adam[3] == pytest.approx(0.02, rel=0.01)
    assert adagrad[0] == 0.3
    assert 0 < adagrad[3]
    batch = sp.csr_matrix(adagrad[1], shape=few.X.shape)
    order = np.random.default_rng([0, 0, 2, 0]).permutation(90)
    assert np.allclose(batch.toarray(), normalize_rows(few.X)[order].toarray()), "documents have length one"


@pytest.mark.slow
def test_dropout_leaves_units_and_values_out(few, monkeypatch):
    plain, rough = (one_step(few, monkeypatch, dropout=share, input_dropout=share)[1] for share in (0.0, 0.5))
    assert len(rough[1][0]) < 0.7 * len(plain[1][0]) == 0.7 * few.X.nnz
    assert (plain[2] != 0).mean() > 1.5 * (rough[2] != 0).mean() > 0


# ---- early stopping


@pytest.mark.slow
def test_patience_ends_training_by_documents_that_are_given_or_parted(few, monkeypatch):
    held, make = [], secseq._Task.__init__

    def spy(self, read, Y, parted, *rest):
        held.append((read.n, Y.shape[0], None if parted is None else (parted[0].n, parted[1].shape)))
        make(self, read, Y, parted, *rest)

    monkeypatch.setattr(secseq._Task, "__init__", spy)
    monkeypatch.setattr(secseq, "r_precision", lambda top, Y: float(len(top.labels) == Y.shape[0]))  # never better
    other = few.rows(range(30))
    told = []
    for aids in ({}, {"validation": (other.X, other.Y)}):
        model = fit(quick(epochs=20, patience=2), few, progress=lambda *news: told.append(news), **aids)
        assert told[-1][1] == told[-1][2], "there is no more to come"
        assert model.course_ == [[1.0, 1.0, 1.0]]
        assert model.report()["accuracies"] == model.course_
    wider = sp.hstack([other.Y, sp.csr_matrix(np.ones((30, 2), np.float32))]).tocsr()
    fit(quick(epochs=1, patience=2), few, validation=(other.X, wider))
    unknown = sp.csr_matrix(wider.toarray() * (np.arange(14) >= 12))
    fit(quick(epochs=1, patience=2), few, validation=(other.X, unknown))
    model = fit(quick(epochs=3), few, validation=(other.X, other.Y))
    assert model.course_ == [[]]
    assert "accuracies" not in model.report()
    parted = (81, 81, (9, (9, 12)))
    assert held == [parted, (90, 90, (30, (30, 12))), (90, 90, (30, (30, 12))), parted, (90, 90, None)]


@pytest.mark.slow
@pytest.mark.parametrize(("encoder", "target"), [("bag", "set"), ("bag", "label"), ("gru", "sequence")])
def test_accuracy_is_that_of_the_model_as_it_would_answer(documents, monkeypatch, encoder, target):
    train, test = documents
    blocks = []
    for block in (64, 17):
        monkeypatch.setattr(secseq, "ROW_BLOCK", block)
        model = SeCSeq(encoder=encoder, target=target, epochs=3, patience=9, **SIZES)
        fit(model, train, validation=(inputs(model, test), test.Y))
        top = model.predict_topk(inputs(model, test), 5)
        right = top.to_csr(20).multiply(test.Y).sum(axis=1).A1
        expected = (right / np.minimum(np.diff(test.Y.indptr), 5))[np.diff(test.Y.indptr) > 0].mean()
        assert max(model.course_[0]) == pytest.approx(expected, abs=0.02), "but for rounding to bytes"
        assert len(model.course_[0]) == 3
        blocks.append(model.course_[0])
    assert blocks[0] == pytest.approx(blocks[1], abs=0.01), "whatever is read at once"


def test_too_few_documents_to_stop_by_are_one_clear_line(few):
    with pytest.raises(DataError, match="early stopping needs some documents .* but there are 4 in all; give validat"):
        fit(quick(patience=1), few.rows(range(4)))


# ---- checkpoints


def cut_off(model, at, documents, **aids):
    """Fit until the progress has been told ``at`` times that something was learned."""
    told = []

    def progress(step, done, total):
        if step == "tokens" and done:
            told.append(done)
            if len(told) == at:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(model, documents, progress=progress, **aids)
    assert not model.is_fitted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("encoder", "target", "trees", "patience"),
    [("bag", "set", 1, None), ("bag", "label", 1, 3), ("bag", "set", 2, 3), ("gru", "sequence", 1, 3)],
)
def test_a_training_that_was_cut_off_ends_in_the_same_bytes(
    few, tmp_path, monkeypatch, encoder, target, trees, patience
):
    monkeypatch.setenv("LABELSPACE_THREADS", "1")  # so that every step is told
    model = quick(encoder=encoder, target=target, trees=trees, epochs=3, patience=patience)
    fit(model, few).save(tmp_path / "whole")
    report = model.report()
    for steps in (20, 22):  # epochs have 14 or 15: within the second, and the third
        cut_off(model, steps, few, checkpoint=tmp_path / "kept")
    told = []
    aids = {"checkpoint": tmp_path / "kept", "progress": lambda *news: told.append(news)}
    fit(model, few, **aids).save(tmp_path / "parts")
    assert digest(tmp_path / "parts") == digest(tmp_path / "whole")
    assert model.report() == report
    done = [(at, total) for step, at, total in told if step == "tokens"]
    assert done[0][0] >= done[0][1] * 2 / (3 * trees), "what was learned before counts"
    assert done[-1][0] == done[-1][1]
    assert [at for at, _ in done] == sorted(at for at, _ in done)
    told.clear()
    fit(model, few, **aids).save(tmp_path / "again")
    assert len([news for news in told if news[0] == "tokens"]) == trees, "all was done"
    assert digest(tmp_path / "again") == digest(tmp_path / "whole")


@pytest.mark.slow
def test_trees_that_were_cut_off_side_by_side_end_in_the_same_weights(few, tmp_path, monkeypatch):
    monkeypatch.setenv("LABELSPACE_THREADS", "2")
    model = quick(trees=2, epochs=6)
    whole = fit(clone(model), few)
    for _ in range(2):
        cut_off(model, 1, few, checkpoint=tmp_path)
    assert same_state(fit(model, few, checkpoint=tmp_path), whole)


@pytest.mark.slow
def test_a_checkpoint_of_another_training_is_refused(few, tmp_path):
    kept = {"checkpoint": tmp_path}
    fit(quick(epochs=1), few, **kept)
    X, Y = few.X.copy(), sp.csr_matrix(np.roll(few.Y.toarray(), 1, axis=1))
    X.data[5] += 0.5
    refused = "^a checkpoint must be of the same data and parameters, but .* is of others; delete it, or give another"
    for model, *given in (
        (quick(epochs=1), X, few.Y),
        (quick(epochs=1), few.X, Y),
        (quick(epochs=2), few.X, few.Y),
        (quick(epochs=1, clip=1.0), few.X, few.Y),
    ):
        with pytest.raises(ModelError, match=refused):
            model.fit(*given, **kept)


@pytest.mark.slow
def test_a_checkpoint_of_other_codes_is_refused(few, tmp_path):
    """The names of labels make the codes, and are in neither the documents nor the parameters."""
    names = [f"{'abc'[i % 3] * 5} {i}" for i in range(12)]
    model = quick(epochs=1, vectors="text")
    fit(model, few, labels=LabelSpace(names), checkpoint=tmp_path)
    before = model.digits_
    with pytest.raises(ModelError, match="of the same data and parameters"):
        fit(model, few, labels=LabelSpace(names[::-1]), checkpoint=tmp_path)
    assert np.array_equal(fit(model, few, labels=LabelSpace(names), checkpoint=tmp_path).digits_, before)


@pytest.mark.slow
def test_a_checkpoint_of_texts_that_are_cut_elsewhere_is_refused(tmp_path):
    """The same words in a row, of other documents."""
    model, Y = quick(epochs=1, encoder="gru", vectors="walks"), np.array([[1, 0], [0, 1], [1, 1]])
    model.fit(["a b c", "a", "b c"], Y, checkpoint=tmp_path)
    with pytest.raises(ModelError, match="of the same data and parameters"):
        model.fit(["a b", "c a", "b c"], Y, checkpoint=tmp_path)


def test_progress_tells_of_codes_and_of_tokens_learned(few):
    told = []
    model = quick(trees=2)
    fit(model, few, progress=lambda *news: told.append(news))
    assert told[:3] == [("codes", 0, 2), ("codes", 1, 2), ("codes", 2, 2)]
    tokens = [news for news in told if news[0] == "tokens"]
    assert len(told) == len(tokens) + 3
    done = [at for _, at, _ in tokens]
    assert done == sorted(done)
    assert done[-1] == tokens[-1][2] > 2 * 2 * few.Y.shape[0]


# ---- size


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_the_number_of_weights_does_not_depend_on_the_number_of_labels(few, target):
    """Ten times the labels, the same features."""
    many = sp.hstack([few.Y] * 10).tocsr()
    reports = [quick(target=target, epochs=1).fit(few.X, Y).report() for Y in (few.Y, many)]
    assert reports[0]["parameters"] == reports[1]["parameters"]
    assert reports[0]["network_parameters"] == reports[1]["network_parameters"] > 0
    assert reports[0]["parameters"] - reports[0]["network_parameters"] == 60 * 8
    assert [report["codes"][0]["n_labels"] for report in reports] == [12, 120]


def test_a_report_counts_all_trees(few):
    one, two = (fit(quick(trees=trees, epochs=1), few).report() for trees in (1, 2))
    assert two["parameters"] == 2 * one["parameters"]
    assert len(two["codes"]) == 2


def test_codes_and_trees_are_those_that_are_written(few):
    model = fit(quick(trees=2, epochs=1, width=3), few)
    codes, trees = model.label_codes(), model.label_trees()
    assert len(codes) == len(trees) == 2
    for tree in range(2):
        assert codes[tree].width == 3
        assert np.array_equal(codes[tree].digits, model.digits_[tree])
        expected = CodeTree.of(codes[tree]).to_nodes()
        assert np.array_equal(trees[tree].first_child, expected.first_child)
        assert sorted(trees[tree].label[trees[tree].label >= 0]) == list(range(12))
    assert not np.array_equal(codes[0].digits, codes[1].digits)


# ---- codes


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("way", ["beam", "sampling"])
def test_one_label_alone_is_certain(few, target, way):
    model = quick(target=target, decoding=way).fit(few.X, np.ones((90, 1)))
    top = model.predict_topk(few.X[:3], 2)
    assert top.labels.tolist() == [[0, -1]] * 3
    assert top.scores[:, 0] == pytest.approx([1] * 3, abs=0.5 if target == "sequence" else 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_labels_may_be_more_than_codes(documents, target):
    """Four codes for 20 labels: the likelier of those that share one come first."""
    train, test = documents
    model = fit(SeCSeq(target=target, epochs=5, **{**SIZES, "width": 2}), train)
    assert model.report()["codes"][0]["codes"] == 4
    top = model.predict_topk(test.X, 20)
    assert 7 not in top.labels
    assert hits(top, test.Y) > 0.35
    counts = train.Y.sum(axis=0).A1
    leaf = CodeTree.of(model.label_codes()[0]).leaf_of
    for row in top.labels:
        for mine in (row[leaf[row] == code] for code in set(leaf)):
            mine = mine[mine >= 0]
            assert (np.diff(counts[mine]) <= 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("vectors", ["documents", "walks", "text", "sentences"])
@pytest.mark.parametrize("encoder", ENCODERS)
def test_vectors_of_every_kind_make_codes(few, monkeypatch, vectors, encoder):
    def embed_texts(texts):
        return np.array([[text.count(letter) for letter in "0123456789"] for text in texts], np.float32)

    monkeypatch.setitem(sys.modules, "labelspace.features.embeddings", SimpleNamespace(embed_texts=embed_texts))
    model = fit(quick(vectors=vectors, encoder=encoder, epochs=1), few, labels=few.labels)
    assert len(np.unique(model.digits_[0], axis=0)) == 12
    assert model.predict_topk(inputs(model, few)[:2], 3).labels.shape == (2, 3)


def test_names_are_asked_for_where_vectors_are_made_of_them(few):
    with pytest.raises(DataError, match="text vectors need the names of the labels, but labels is None"):
        fit(quick(vectors="text"), few)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("quantizer", QUANTIZERS)
def test_codes_of_every_scheme_can_be_learned(few, scheme, quantizer):
    model = fit(quick(scheme=scheme, quantizer=quantizer, epochs=1), few)
    assert (fit(quick(scheme=scheme, quantizer=quantizer, epochs=1), few).digits_ == model.digits_).all()
    assert model.predict_topk(few.X[:5], 3).labels.max() < 12


@pytest.mark.slow
def test_any_seed_below_2_to_the_31_is_taken(few):
    model = fit(quick(seed=2**31 - 1, epochs=1, trees=2, samples=100), few)
    for target in ("beam", "sampling"):
        assert (model.set_params(decoding=target).predict_topk(few.X[:5], 1).labels >= 0).all()
    model = fit(quick(seed=2**31 - 1, epochs=1, target="sequence", decoding="sampling"), few)
    assert (model.predict_topk(few.X[:5], 1).labels >= 0).all()


# ---- decoding


def test_what_decoding_needs_can_be_changed_after_training(few):
    model = fit(quick(), few)
    wide = model.predict_topk(few.X, 12)
    narrow = model.set_params(beam=1).predict_topk(few.X, 12)
    assert (narrow.labels >= 0).sum() < (wide.labels >= 0).sum()
    drawn = model.set_params(decoding="sampling", samples=4).predict_topk(few.X, 12)
    assert set(np.unique(drawn.scores[drawn.labels >= 0])) <= {0.25, 0.5, 0.75, 1.0}
    assert not same(drawn, model.set_params(seed=5).predict_topk(few.X, 12))


@pytest.mark.parametrize("target", TARGETS)
def test_an_answer_is_decoded_as_the_parameters_say(few, monkeypatch, target):
    asked, model = [], fit(quick(target=target, epochs=1, beam=3, samples=7, seed=4), few)
    search, draw, write = decoding.Prefixes.search, decoding.Prefixes.draw, decoding.write_sequences

    def spy(name, function):
        return lambda *given: asked.append((name, *given[-4:])) or function(*given)

    monkeypatch.setattr(decoding.Prefixes, "search", spy("search", search))
    monkeypatch.setattr(decoding.Prefixes, "draw", spy("draw", draw))
    monkeypatch.setattr(decoding, "write_sequences", spy("write", write))
    for way in ("beam", "sampling"):
        model.set_params(decoding=way).predict_topk(few.X[:5], 2)
    if target == "sequence":
        assert [(name, *rest[-2:]) for name, *rest in asked] == [("write", 3, None), ("write", 7, 4)]
    else:
        choose = target == "label"
        assert asked[0][0] == "search"
        assert asked[0][2:] == (choose, 3, 2)
        assert asked[1] == ("draw", choose, 7, 2, 4)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_every_document_gets_an_answer_from_a_beam_of_one(few, target):
    model = fit(quick(target=target, beam=1, epochs=6, rate=0.05), few)
    assert (model.predict_topk(few.X, 1).labels >= 0).all()


@pytest.mark.slow
def test_what_was_derived_is_derived_anew_after_another_fit(few):
    model = fit(quick(), few)
    first = model.predict_topk(few.X, 3)
    half = few.rows(range(45))
    again = fit(model, half).predict_topk(few.X, 3)
    assert not same(first, again)
    assert same(again, fit(quick(), half).predict_topk(few.X, 3))


# ---- what is read


@pytest.mark.slow
@pytest.mark.parametrize("encoder", ["gru", "convolution"])
def test_features_where_texts_are_read_are_one_clear_line(few, encoder):
    model = quick(encoder=encoder)
    message = f"encoder={encoder} reads words in a row, but X holds features; give texts, or set encoder=bag"
    for X in (few.X, few.X.toarray()):
        with pytest.raises(DataError, match=message):
            model.fit(X, few.Y)
    fit(model, few)
    with pytest.raises(DataError, match=message):
        model.predict_topk(few.X)
    with pytest.raises(DataError, match=message):
        fit(quick(encoder=encoder, patience=1), few, validation=(few.X, few.Y))


def test_texts_where_features_are_read_are_one_clear_line(few):
    with pytest.raises(DataError, match="X must be a feature matrix, but holds texts; use labelspace.Tagger"):
        quick().fit(few.texts, few.Y)
    with pytest.raises(DataError, match="X must be a feature matrix, but holds texts"):
        fit(quick(), few).predict_topk(few.texts)


@pytest.mark.slow
def test_texts_may_come_one_by_one_or_as_an_array(few):
    whole = fit(quick(encoder="convolution"), few)
    for texts in (iter(few.texts), np.array(few.texts), np.array(few.texts, object), tuple(few.texts)):
        assert same_state(quick(encoder="convolution").fit(texts, few.Y), whole)
    assert same(whole.predict_topk(iter(few.texts), 3), whole.predict_topk(few.texts, 3))


@pytest.mark.slow
def test_the_encoder_decides_what_is_read(few):
    assert SeCSeq.reads_text is False
    model = quick()
    assert not model.reads_text
    fit(model, few)
    assert not model.takes_texts
    model.set_params(encoder="gru")
    assert model.reads_text
    fit(model, few)
    assert model.takes_texts
    assert model.predict_topk(few.texts[:2], 2).labels.shape == (2, 2)
    assert model.vectors_.shape[2] == model.word
    fit(model.set_params(encoder="bag"), few)
    assert not model.takes_texts
    assert len(model.word_bytes_) == 0
    assert model.predict_topk(few.X[:2], 2).labels.shape == (2, 2)


@pytest.mark.slow
@pytest.mark.parametrize("encoder", ["gru", "convolution"])
@pytest.mark.parametrize("target", TARGETS)
def test_texts_without_words_and_with_unknown_ones_are_no_trouble(few, encoder, target):
    texts = ["", *few.texts[1:50], "...", *few.texts[51:]]
    model = quick(encoder=encoder, target=target, epochs=1).fit(texts, few.Y)
    top = model.predict_topk(["", "never seen words", texts[1]], 3)
    assert (top.labels[:, 0] >= 0).all()
    assert not np.isnan(top.scores).any()
    with pytest.raises(DataError, match="some word must occur"):
        quick(encoder=encoder, target=target).fit(["", "", ""], np.eye(3))


def test_texts_that_share_no_word_are_no_trouble():
    model = quick(encoder="gru").fit(["alpha", "beta", "gamma"], np.eye(3))
    assert len(np.unique(model.digits_[0], axis=0)) == 3
    assert (model.predict_topk(["alpha", "delta"], 3).labels[:, 0] >= 0).all()


@pytest.mark.slow
def test_words_are_read_up_to_a_length_and_the_others_alike(few, monkeypatch):
    monkeypatch.setattr(secseq, "WORDS", 5)
    model = fit(quick(encoder="gru"), few)
    longer = [text + " w1 w2 w3" for text in few.texts]
    kept = [len(text.split()) >= 5 for text in few.texts]
    one, other = model.predict_topk(few.texts, 3), model.predict_topk(longer, 3)
    assert sum(kept) > 50
    assert np.array_equal(one.labels[kept], other.labels[kept])


@pytest.mark.slow
@pytest.mark.parametrize("encoder", ["gru", "convolution"])
def test_the_order_of_words_matters(few, encoder):
    model = fit(quick(encoder=encoder), few)
    turned = [" ".join(reversed(text.split())) for text in few.texts]
    assert not same(model.predict_topk(few.texts, 3), model.predict_topk(turned, 3))


@pytest.mark.slow
def test_scikit_learn_clones_a_model_of_words_and_puts_it_into_a_pipeline(few):
    model = quick(encoder="gru")
    copy = clone(fit(model, few))
    assert copy.get_params() == model.get_params()
    assert copy.reads_text
    assert not copy.is_fitted
    pipeline = Pipeline([("model", copy)]).fit(few.texts, few.Y)
    marked = pipeline.predict(few.texts[:10], k=2)
    assert marked.shape == (10, 12)
    assert (marked.sum(axis=1) == 2).all()
    assert same(pipeline.named_steps["model"].predict_topk(few.texts, 3), model.predict_topk(few.texts, 3))


# ---- without torch


@pytest.fixture
def without_torch(monkeypatch):
    """As where the extra is not installed; called when torch is to be gone."""

    def go():
        for name in [name for name in sys.modules if name.startswith("labelspace.training.")]:
            if name.rsplit(".", 1)[1] in ("writer", "lessons", "decoding"):
                monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "torch", None)

    return go


def test_a_missing_torch_names_the_extra(few, tmp_path, without_torch):
    fit(quick(), few).save(tmp_path / "model")
    without_torch()
    missing = r"this needs the package 'torch', which is not installed; run: pip install 'labelspace\[neural\]'"
    with pytest.raises(MissingExtraError, match=missing):
        fit(quick(), few)
    model = labelspace.load(tmp_path / "model")
    with pytest.raises(MissingExtraError, match=missing):
        model.predict_topk(few.X, 2)
    assert model.report()["parameters"] > 0, "what needs no torch is told"
    assert len(model.label_codes()) == len(model.label_trees()) == 1


# ---- parameters


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("trees", 0), ("width", 1), ("digits", 0), ("digits", 17), ("digits", 2.0), ("vectors", "names"),
        ("scheme", "x"), ("quantizer", "x"), ("dimension", 0), ("encoder", "lstm"), ("target", "all"),
        ("order", "alphabetic"), ("hidden", 7), ("hidden", 0), ("memory", 0), ("word", 0), ("epochs", 0), ("batch", 0),
        ("rate", 0), ("feature_rate", 0), ("dropout", 1), ("input_dropout", 1), ("clip", 0), ("patience", 0),
        ("decoding", "greedy"), ("beam", 0), ("samples", 0), ("seed", -1), ("seed", 2**31),
    ],
)  # fmt: skip
def test_bad_parameters_are_refused_by_rule(few, key, value):
    with pytest.raises(ParameterError, match=f"^{key} of secseq must be .*, but is .*; set it so$"):
        fit(SeCSeq(**{key: value}), few)
