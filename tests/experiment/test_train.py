from hashlib import sha256

import pytest

from labelspace.data.source import open_source, write_dataset
from labelspace.errors import ParameterError
from labelspace.experiment import Recipe, compare, train
from labelspace.models import registry
from labelspace.models.baselines import Popular
from labelspace.types import Dataset


class Watching(Popular):
    """Remembers the validation documents it was given."""

    name = "watching"
    seen: list = []

    def _fit(self, X, Y, context):
        Watching.seen.append((X.shape[0], None if context.validation is None else context.validation[0].shape[0]))
        super()._fit(X, Y, context)


@pytest.fixture
def watching(monkeypatch):
    monkeypatch.setitem(registry.METHODS, "watching", f"{__name__}:Watching")
    Watching.seen.clear()


def test_validation_is_the_dev_file_read_when_a_method_asks(folder, data, watching, tmp_path):
    train(open_source(folder), Recipe("watching", seed=1))
    (folder / "dev.jsonl").write_text("this is not even JSON")
    train(open_source(folder), Recipe("popular"))
    write_dataset(Dataset(data[1].Y[:50], data[1].labels, texts=data[1].texts[:50]), folder / "dev.jsonl")
    train(open_source(folder), Recipe("watching", seed=1))
    assert Watching.seen == [(700, None), (700, 50)]
    compare(open_source(folder), [Recipe("watching")], tmp_path / "out", isolated=False)
    assert Watching.seen[-1] == (700, 50)


def test_training_never_opens_the_test_file(folder, tmp_path):
    honest = train(open_source(folder), Recipe("one_vs_rest"))
    (folder / "test.jsonl").write_text("this is not even JSON")
    blind = train(open_source(folder), Recipe("one_vs_rest"))
    for tagger, name in ((honest, "honest"), (blind, "blind")):
        tagger.save(tmp_path / name)
    files = ("model.safetensors", "features.safetensors", "labels.jsonl")
    assert all((tmp_path / "honest" / f).read_bytes() == (tmp_path / "blind" / f).read_bytes() for f in files)


def test_a_model_knows_the_file_that_it_was_trained_on(folder):
    digest = sha256((folder / "train.jsonl").read_bytes()).hexdigest()
    assert train(open_source(folder), Recipe("popular")).origin_ == (f"{folder.name}/train.jsonl", digest)
    alone = train(open_source(folder / "train.jsonl"), Recipe("popular")).origin_
    assert alone == ("train.jsonl", digest)


def test_the_seed_reaches_the_method():
    assert Recipe("random", seed=7).tagger().model.random_state == 7
    assert Recipe("popular", seed=7).tagger().model.get_params() == {}
    assert Recipe("random", {"random_state": 3}, seed=7).tagger().model.random_state == 3


def test_a_method_reads_the_view_that_suits_it_unless_told_otherwise(data):
    def ngrams(recipe):
        return recipe.tagger().views(data[0])[0].create().ngrams

    assert ngrams(Recipe("neighbors")) == 1
    assert ngrams(Recipe("neighbors", feature_params={"ngrams": 3})) == 3
    assert ngrams(Recipe("popular")) == 2


class Unreadable:
    cache = weights = None

    def train(self):
        raise AssertionError("the data were read")


def test_a_wrong_parameter_is_said_before_the_data_are_read(tmp_path):
    with pytest.raises(ParameterError, match="C of one_vs_rest must be above 0"):
        train(Unreadable(), Recipe("one_vs_rest", {"C": 0}))


def test_a_wrong_setting_of_the_features_is_said_before_the_data_are_read():
    for method in ("one_vs_rest", "blend"):
        with pytest.raises(ParameterError, match="min_df of tfidf must be an integer"):
            train(Unreadable(), Recipe(method, feature_params={"min_df": 0}))
        with pytest.raises(ParameterError, match="tfidf has no parameter 'color'"):
            train(Unreadable(), Recipe(method, feature_params={"color": 1}))
    with pytest.raises(ParameterError, match="a checkpoint needs a method that can resume its training, but popular"):
        train(Unreadable(), Recipe("popular"), checkpoint="folder")
