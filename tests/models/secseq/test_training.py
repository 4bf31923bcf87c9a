import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

torch = pytest.importorskip("torch")

from labelspace.errors import ModelError  # noqa: E402
from labelspace.features.normalize import normalize_rows  # noqa: E402
from labelspace.features.views import ViewTransformer  # noqa: E402
from labelspace.models.secseq import decoding, training  # noqa: E402
from labelspace.models.secseq.model import SeCSeq  # noqa: E402
from labelspace.models.secseq.network import CodeDecoder  # noqa: E402
from labelspace.models.secseq.objectives import PrefixObjective  # noqa: E402
from labelspace.models.secseq.training import FlatAdam, SparseLayer, TreeTrainer  # noqa: E402
from labelspace.types import Dataset, LabelSpace  # noqa: E402
from tests.checks import digest  # noqa: E402
from tests.models.secseq.small_models import SIZES, fit, inputs, same_state, tiny  # noqa: E402


@pytest.mark.parametrize(
    ("encoder", "target", "trees"), [("bag", "set", 2), ("gru", "sequence", 1), ("convolution", "label", 2)]
)
def test_the_same_seed_gives_the_same_model_whatever_the_number_of_threads(few, monkeypatch, encoder, target, trees):
    models = []
    for threads, seed in (("1", 0), ("2", 0), ("1", 1)):
        monkeypatch.setenv("LABELSPACE_THREADS", threads)
        model = tiny(encoder=encoder, target=target, n_estimators=trees, random_state=seed, patience=5)
        models.append(fit(model, few))
    assert same_state(models[0], models[1])
    assert models[0].validation_scores_ == models[1].validation_scores_
    assert not np.array_equal(models[0].weights_, models[2].weights_)
    if trees == 2:
        assert not np.array_equal(models[0].weights_[0], models[0].weights_[1])


def test_torch_runs_on_one_thread_in_training_and_prediction(few, monkeypatch):
    before, seen = torch.get_num_threads(), []
    initial_context = CodeDecoder.initial_context

    def spy(self, encoder_states):
        seen.append(torch.get_num_threads())
        return initial_context(self, encoder_states)

    monkeypatch.setattr(CodeDecoder, "initial_context", spy)
    monkeypatch.setenv("LABELSPACE_THREADS", "2")
    try:
        torch.set_num_threads(3)
        model = fit(tiny(n_estimators=2, epochs=1), few)
        in_training = len(seen)
        model.predict_topk(few.X, 3)
        assert len(seen) > in_training > 0
        assert set(seen) == {1}
        assert torch.get_num_threads() == 3, "as before"
    finally:
        torch.set_num_threads(before)


def test_the_first_tree_does_not_depend_on_the_number_of_trees(few):
    one, two = (fit(tiny(n_estimators=trees), few) for trees in (1, 2))
    assert np.array_equal(one.weights_[0], two.weights_[0])
    assert np.array_equal(one.digits_[0], two.digits_[0])
    assert np.array_equal(one.embeddings_[0], two.embeddings_[0])


def test_each_tree_has_its_initial_weights(few):
    still = {"epochs": 1, "learning_rate": 1e-20, "feature_learning_rate": 1e-20}
    model = fit(tiny(n_estimators=2, **still), few)
    for values in (model.weights_, model.embeddings_ * model.embedding_scales_[:, :, None]):
        assert np.abs(values[0] - values[1]).mean() > 0.3 * np.abs(values).mean()
    other = fit(tiny(random_state=1, **still), few)
    assert np.abs(other.weights_ - model.weights_[0]).mean() > 0.05


# ---- steps


def test_every_epoch_has_all_documents_in_a_new_order_and_learning_rates_fall_linearly(few, monkeypatch):
    steps, step = [], TreeTrainer._step

    def spy(self, net, objective, rows, lr_decay, rng):
        steps.append((rows.copy(), lr_decay, net.n_steps))
        return step(self, net, objective, rows, lr_decay, rng)

    monkeypatch.setattr(TreeTrainer, "_step", spy)
    fit(tiny(epochs=2), few)
    half = len(steps) // 2
    one, other = (np.concatenate([rows for rows, *_ in part]) for part in (steps[:half], steps[half:]))
    assert sorted(one) == sorted(other) == list(range(90))
    assert not np.array_equal(one, other)
    assert np.allclose([lr_decay for _, lr_decay, _ in steps], 1 - np.arange(len(steps)) / len(steps))
    assert [number for *_, number in steps] == list(range(len(steps)))


def watch_steps(monkeypatch):
    """A list of what each step of Adam, and then of Adagrad, is given, with the largest change that it makes."""
    calls, adam, adagrad = [], FlatAdam.step, SparseLayer.backward

    def adam_spy(self, loss, clip_norm, learning_rate, number):
        before = self.weights.value.copy()
        adam(self, loss, clip_norm, learning_rate, number)
        calls.append((clip_norm, learning_rate, number, np.abs(self.weights.value - before).max()))

    def adagrad_spy(self, batch, gradient, learning_rate):
        before = self.vectors.copy()
        adagrad(self, batch, gradient, learning_rate)
        calls.append((learning_rate, batch, gradient.copy(), np.abs(self.vectors - before).max()))

    monkeypatch.setattr(FlatAdam, "step", adam_spy)
    monkeypatch.setattr(SparseLayer, "backward", adagrad_spy)
    return calls


def test_the_learning_rates_of_weights_and_of_embeddings_fall_linearly(few, monkeypatch):
    calls = watch_steps(monkeypatch)
    fit(tiny(learning_rate=0.02, feature_learning_rate=0.3), few)
    adam, adagrad = calls[::2], calls[1::2]
    decay = 1 - np.arange(30) / 30
    assert np.allclose([rate for _, rate, *_ in adam], 0.02 * decay)
    assert [number for _, _, number, _ in adam] == list(range(1, 31))
    assert np.allclose([rate for rate, *_ in adagrad], 0.3 * decay)


def one_step(few, monkeypatch, **params):
    """The calls of a training with a single batch."""
    monkeypatch.setattr(training, "batch_schedule", lambda n, *_: (n, 1))
    with monkeypatch.context() as patched:
        calls = watch_steps(patched)
        fit(tiny(epochs=1, **params), few)
    return calls


def test_a_step_moves_weights_and_embeddings_by_their_learning_rates(few, monkeypatch):
    params = {"learning_rate": 0.02, "feature_learning_rate": 0.3, "clip_norm": 7.0, "input_dropout": 0.0}
    adam, adagrad = one_step(few, monkeypatch, **params)
    assert adam[:3] == (7.0, 0.02, 1)
    assert adam[3] == pytest.approx(0.02, rel=0.01)
    assert adagrad[0] == 0.3
    assert 0 < adagrad[3]
    batch = sp.csr_matrix(adagrad[1], shape=few.X.shape)
    order = np.random.default_rng([0, 0, 2, 0]).permutation(90)
    assert np.allclose(batch.toarray(), normalize_rows(few.X)[order].toarray()), "documents have length 1"


def test_dropout_drops_units_and_values(few, monkeypatch):
    plain, dropped = (one_step(few, monkeypatch, dropout=share, input_dropout=share)[1] for share in (0.0, 0.5))
    assert len(dropped[1][0]) < 0.7 * len(plain[1][0]) == 0.7 * few.X.nnz
    assert (plain[2] != 0).mean() > 1.5 * (dropped[2] != 0).mean() > 0


def test_dropout_scales_the_units_that_remain_and_differs_between_documents(few, monkeypatch):
    states = {}
    for share in (0.0, 0.75):
        loss = PrefixObjective.loss

        def spy(self, decoder, encoder_states, rows, share=share, loss=loss):
            states.setdefault(share, encoder_states.states.detach().numpy().copy())
            return loss(self, decoder, encoder_states, rows)

        with monkeypatch.context() as patched:
            patched.setattr(PrefixObjective, "loss", spy)
            fit(tiny(hidden_dim=64, dropout=share, input_dropout=0.0, epochs=1), few)
    active = states[0.0] > 0
    factors = states[0.75][active] / states[0.0][active]
    assert set(factors.round(4)) == {0.0, 4.0}
    assert 0.1 < (factors > 0).mean() < 0.4
    assert len({tuple(row) for row in (states[0.75] > 0).reshape(len(active), -1).tolist()}) == len(active)


def watch_trainers(monkeypatch):
    """A list of the trainers that are made."""
    trainers, init = [], TreeTrainer.__init__
    monkeypatch.setattr(TreeTrainer, "__init__", lambda self, *args: trainers.append(self) or init(self, *args))
    return trainers


def test_sequences_have_the_label_order_of_the_parameter(few, monkeypatch):
    trainers = watch_trainers(monkeypatch)
    counts = few.Y.sum(axis=0).A1
    for label_order in ("frequent", "rare", "random"):
        fit(tiny(target="sequence", label_order=label_order, n_estimators=2, epochs=1), few)
    for trainer, sign in zip(trainers[:2], (-1, 1), strict=True):
        for objective in trainer.objectives:
            sequences = np.split(objective.labels, objective.starts[1:-1])
            assert all((np.diff(sign * counts[labels]) >= 0).all() for labels in sequences)
    one, other = (objective.labels for objective in trainers[2].objectives)
    assert not np.array_equal(one, other), "each tree has its random order"


# ---- early stopping


def test_patience_stops_by_documents_that_are_given_or_held_out(few, monkeypatch):
    trainers = watch_trainers(monkeypatch)
    monkeypatch.setattr(training, "r_precision", lambda top, Y: float(len(top.labels) == Y.shape[0]))  # never better
    other = few.rows(range(30))
    for options in ({}, {"validation": (other.X, other.Y)}):
        reports = []
        model = fit(tiny(epochs=20, patience=2), few, progress=lambda *args, to=reports: to.append(args), **options)
        assert reports[-1][1] == reports[-1][2], "the progress is complete"
        assert model.validation_scores_ == [[1.0, 1.0, 1.0]]
        assert model.report()["accuracies"] == model.validation_scores_
    wider = sp.hstack([other.Y, sp.csr_matrix(np.ones((30, 2), np.float32))]).tocsr()
    fit(tiny(epochs=1, patience=2), few, validation=(other.X, wider))
    unknown = sp.csr_matrix(wider.toarray() * (np.arange(14) >= 12))
    fit(tiny(epochs=1, patience=2), few, validation=(other.X, unknown))
    model = fit(tiny(epochs=3), few, validation=(other.X, other.Y))
    assert model.validation_scores_ == [[]]
    assert "accuracies" not in model.report()

    def sizes(trainer):
        validation = trainer.validation and (trainer.validation[0].n, trainer.validation[1].shape)
        return trainer.inputs.n, trainer.Y.shape[0], validation

    held_out, given = (81, 81, (9, (9, 12))), (90, 90, (30, (30, 12)))
    assert list(map(sizes, trainers)) == [held_out, given, given, held_out, (90, 90, None)]


@pytest.mark.slow
@pytest.mark.parametrize(("encoder", "target"), [("bag", "set"), ("bag", "label"), ("gru", "sequence")])
def test_the_validation_score_is_that_of_the_model_s_predictions(documents, monkeypatch, encoder, target):
    train, test = documents
    scores = []
    for block in (64, 17):
        monkeypatch.setattr(decoding, "ROW_BLOCK", block)
        model = SeCSeq().set_params(encoder=encoder, target=target, epochs=3, patience=9, **SIZES)
        X, X_test = inputs(model, train, test)
        top = model.fit(X, train.Y, validation=(X_test, test.Y)).predict_topk(X_test, 5)
        hits, n_labels = top.to_csr(20).multiply(test.Y).sum(axis=1).A1, np.diff(test.Y.indptr)
        expected = (hits / np.minimum(n_labels, 5))[n_labels > 0].mean()
        assert max(model.validation_scores_[0]) == pytest.approx(expected, abs=0.02), "but for the quantization"
        assert len(model.validation_scores_[0]) == 3
        scores.append(model.validation_scores_[0])
    assert scores[0] == pytest.approx(scores[1], abs=0.01), "whatever the block size"


# ---- checkpoints and progress


def interrupt(model, n_reports, documents, **options):
    """Fit until the progress of the training has been reported so often."""
    reports = []

    def progress(phase, done, total):
        if phase == "tokens" and done:
            reports.append(done)
            if len(reports) == n_reports:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(model, documents, progress=progress, **options)
    assert not model.is_fitted


@pytest.mark.parametrize(
    ("encoder", "target", "trees", "patience"), [("bag", "set", 2, 3), ("gru", "sequence", 1, None)]
)
def test_a_training_that_resumes_ends_in_the_same_bytes(few, tmp_path, monkeypatch, encoder, target, trees, patience):
    monkeypatch.setenv("LABELSPACE_THREADS", "1")  # every step is reported
    model = tiny(encoder=encoder, target=target, n_estimators=trees, epochs=3, patience=patience)
    fit(model, few).save(tmp_path / "expected")
    report = model.report()
    for steps in (20, 22):  # epochs have 14 or 15: in the second, and in the third
        interrupt(model, steps, few, checkpoint=tmp_path / "checkpoint")
    reports = []
    options = {"checkpoint": tmp_path / "checkpoint", "progress": lambda *args: reports.append(args)}
    fit(model, few, **options).save(tmp_path / "resumed")
    assert digest(tmp_path / "resumed") == digest(tmp_path / "expected")
    assert model.report() == report
    done = [at for phase, at, _ in reports if phase == "tokens"]
    total = reports[-1][2]
    assert done[0] >= total * 2 / (3 * trees), "what was learned before counts"
    assert done[-1] == total
    assert done == sorted(done)
    reports.clear()
    fit(model, few, **options).save(tmp_path / "again")
    assert len([phase for phase, *_ in reports if phase == "tokens"]) == trees, "nothing is trained again"
    assert digest(tmp_path / "again") == digest(tmp_path / "expected")


def test_trees_that_are_interrupted_in_parallel_end_in_the_same_weights(few, tmp_path, monkeypatch):
    monkeypatch.setenv("LABELSPACE_THREADS", "2")
    model = tiny(n_estimators=2, epochs=6)
    expected = fit(clone(model), few)
    for _ in range(2):
        interrupt(model, 1, few, checkpoint=tmp_path)
    assert same_state(fit(model, few, checkpoint=tmp_path), expected)


def test_a_checkpoint_of_another_training_is_refused(few, tmp_path):
    fit(tiny(epochs=1), few, checkpoint=tmp_path)
    X, Y = few.X.copy(), sp.csr_matrix(np.roll(few.Y.toarray(), 1, axis=1))
    X.data[5] += 0.5
    for model, *given in (
        (tiny(epochs=1), X, few.Y),
        (tiny(epochs=1), few.X, Y),
        (tiny(epochs=2), few.X, few.Y),
        (tiny(epochs=1, clip_norm=1.0), few.X, few.Y),
    ):
        with pytest.raises(ModelError, match="^a checkpoint must be of the same data and parameters"):
            model.fit(*given, checkpoint=tmp_path)


def test_a_checkpoint_of_other_codes_is_refused(few, tmp_path):
    """Label names make the codes, and are neither in the documents nor in the parameters."""
    names = [f"{'abc'[i % 3] * 5} {i}" for i in range(12)]
    model = tiny(epochs=1, label_vectors="text")
    fit(model, few, labels=LabelSpace(names), checkpoint=tmp_path)
    before = model.digits_
    with pytest.raises(ModelError, match="of the same data and parameters"):
        fit(model, few, labels=LabelSpace(names[::-1]), checkpoint=tmp_path)
    assert np.array_equal(fit(model, few, labels=LabelSpace(names), checkpoint=tmp_path).digits_, before)


def test_a_checkpoint_of_the_same_words_in_other_documents_is_refused(tmp_path):
    model, Y = tiny(epochs=1, encoder="gru", label_vectors="walks"), np.array([[1, 0], [0, 1], [1, 1]], np.float32)
    documents = Dataset(sp.csr_matrix(Y), LabelSpace.numbered(2), texts=["a b c", "a", "b c"])
    views = ViewTransformer(model.views(documents))
    model.fit(views.fit_transform(documents.texts), Y, checkpoint=tmp_path)
    with pytest.raises(ModelError, match="of the same data and parameters"):
        model.fit(views.transform(["a b", "c a", "b c"]), Y, checkpoint=tmp_path)


def test_progress_counts_codes_and_tokens(few):
    reports = []
    fit(tiny(n_estimators=2), few, progress=lambda *args: reports.append(args))
    assert reports[:3] == [("codes", 0, 2), ("codes", 1, 2), ("codes", 2, 2)]
    tokens = [report for report in reports if report[0] == "tokens"]
    assert len(reports) == len(tokens) + 3
    done = [at for _, at, _ in tokens]
    assert done == sorted(done)
    assert done[-1] == tokens[-1][2] > 2 * 2 * few.Y.shape[0]
