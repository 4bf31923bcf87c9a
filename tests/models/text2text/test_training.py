import pytest

pytest.importorskip("torch")
pytest.importorskip("tokenizers")

from labelspace.errors import ModelError, ParameterError  # noqa: E402
from tests.models.text2text.products import small_model  # noqa: E402


def test_patience_stops_by_held_out_or_given_documents(products):
    texts, Y, labels = products
    held_out = small_model(epochs=30, patience=1).fit(texts, Y, labels=labels)
    assert 1 < len(held_out.validation_scores_) < 30
    assert held_out.report()["accuracies"] == held_out.validation_scores_
    given = small_model(epochs=2, patience=1).fit(texts, Y, labels=labels, validation=(texts[:20], Y[:20]))
    assert len(given.validation_scores_) == 2


def test_progress_counts_tokens_up_to_the_last(products):
    texts, Y, labels = products
    calls = []
    small_model(epochs=2).fit(texts, Y, labels=labels, progress=lambda *call: calls.append(call))
    assert {step for step, _, _ in calls} == {"tokens"}
    done = [done for _, done, _ in calls]
    assert done == sorted(done)
    assert calls[-1][1] == calls[-1][2]


def test_a_checkpoint_of_other_texts_is_refused(products, tmp_path):
    texts, Y, labels = products
    small_model().fit(texts, Y, labels=labels, checkpoint=tmp_path)
    with pytest.raises(ModelError, match="the same data and parameters"):
        small_model().fit(["other", *texts[1:]], Y, labels=labels, checkpoint=tmp_path)


def test_weights_that_diverge_are_reported(products):
    with pytest.raises(ParameterError, match="lower learning_rate or token_learning_rate"):
        small_model(learning_rate=1e20, token_learning_rate=1e20, clip_norm=1e20).fit(*products[:2])
