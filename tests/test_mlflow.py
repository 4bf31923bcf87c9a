"""Taggers in a local store of MLflow."""

import sys
import warnings

import pytest

from labelspace import Tagger
from labelspace.errors import MissingExtraError, ModelError
from labelspace.mlflow import load_model, log_model
from tests.tagger.test_lineage import NAMES, TEXTS


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = pytest.importorskip("mlflow")
        pytest.importorskip("mlflow.pyfunc")
    before = module.get_tracking_uri()
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    module.set_tracking_uri((tmp_path / "runs").as_uri())
    yield module
    module.set_tracking_uri(before)


@pytest.fixture
def tagger():
    return Tagger("neighbors", features="tfidf", feature_params={"min_df": 1}).fit(TEXTS, NAMES)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_tagger_comes_back_and_predicts_as_a_function(mlflow, tagger):
    pandas = pytest.importorskip("pandas")
    with mlflow.start_run():
        info = log_model(tagger, "tags", metadata={"team": "kitchen"})
    assert load_model(info.model_uri).tag("red apple") == tagger.tag("red apple")
    function = mlflow.pyfunc.load_model(info.model_uri)
    expected = tagger.tag_batch(TEXTS[:2], 1, output="pandas")
    for texts in (TEXTS[:2], pandas.DataFrame({"text": TEXTS[:2]})):
        answer = function.predict(texts, params={"k": 1})
        assert answer["label"].tolist() == expected["label"].tolist()
        assert answer["document"].tolist() == [0, 1]
    assert len(function.predict(["red apple"])) == len(tagger.tag("red apple"))


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_another_model_is_refused(mlflow, tmp_path):
    (tmp_path / "MLmodel").write_text("flavors:\n  python_function:\n    loader_module: os\n    data: model\n")
    with pytest.raises(ModelError, match="must be a model that labelspace.mlflow.log_model logged"):
        load_model(str(tmp_path))


def test_the_extra_is_named(tagger, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    monkeypatch.setitem(sys.modules, "mlflow.pyfunc", None)
    monkeypatch.setitem(sys.modules, "mlflow.artifacts", None)
    for call in (lambda: log_model(tagger), lambda: load_model("models:/x/1")):
        with pytest.raises(MissingExtraError, match=r"labelspace\[mlflow\]"):
            call()
