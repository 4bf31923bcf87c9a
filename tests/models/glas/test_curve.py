import numpy as np
import pytest

from labelspace.models.glas import Glas, training
from tests.models.glas.cases import before_store, quick, small_data, trained_arrays


@pytest.fixture(scope="module")
def parts():
    data = small_data()
    return data.rows(range(200)), data.rows(range(200, 260))


def test_the_curve_has_precision_at_1_on_training_and_validation_documents_after_each_epoch(parts):
    train, other = parts
    model, measured = quick(curve=True, epochs=4), {}

    def measure(net, X):
        for name, documents in (("train", train), ("validation", other)):
            z = (
                net.scale * net.encoder.embed(model._rows(documents.X)) @ net.label_embeddings[:, :-1].T
                + net.bias.value
            )
            measured[name] = documents.Y[np.arange(len(z)), z.argmax(axis=1)].mean()

    before_store(model, measure, train.X, train.Y, validation=(other.X, other.Y))
    curve = model.report()["curve"]
    assert [row["epoch"] for row in curve] == [1, 2, 3, 4]
    assert np.isclose(curve[-1]["train P@1"], 100 * measured["train"], atol=0.01)
    assert np.isclose(curve[-1]["validation P@1"], 100 * measured["validation"], atol=0.01)
    assert curve[0]["train P@1"] < curve[-1]["train P@1"]


def test_training_documents_are_sampled_where_they_are_many(parts, monkeypatch):
    train, _ = parts
    monkeypatch.setattr(training, "CURVE_DOCUMENTS", 7)
    curve = quick(curve=True).fit(train.X, train.Y).report()["curve"]
    assert all(abs(row["train P@1"] * 7 % 100 - 50) > 49 for row in curve), "some of seven"
    assert all(row.keys() == {"epoch", "train P@1"} for row in curve), "no other documents were given"


def test_the_curve_changes_nothing_and_is_off_by_default(parts):
    train, other = parts
    plain, with_curve = quick(), quick(curve=True)
    one = trained_arrays(plain, train.X, train.Y)
    two = trained_arrays(with_curve, train.X, train.Y, validation=(other.X, other.Y))
    for arrays in (one, two):
        arrays["label_embeddings"] = arrays["label_embeddings"][:, :-1]  # the bias column is not trained
    assert all(np.array_equal(one[key], two[key]) for key in one)
    assert plain.report() == {}


def test_the_curve_is_saved_and_goes_on_after_an_interruption(parts, tmp_path):
    train, _ = parts
    model = quick(curve=True, epochs=4, patience=4)
    expected = model.fit(train.X, train.Y).report()

    def stop(step, done, total):
        if step == "batches" and done == 40:  # in the third epoch
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.fit(train.X, train.Y, checkpoint=tmp_path / "state", progress=stop)
    model.fit(train.X, train.Y, checkpoint=tmp_path / "state")
    assert model.report() == expected
    model.save(tmp_path / "model")
    assert Glas.load(tmp_path / "model").report() == expected
    assert len(expected["curve"]) == 4
    assert expected["curve"][0].keys() == {"epoch", "train P@1", "validation P@1"}
