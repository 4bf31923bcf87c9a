"""Python objects of other packages in ``Tagger``."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import labelspace
from labelspace import Tagger, store
from labelspace.errors import DataError, MissingExtraError, ModelError, ParameterError
from labelspace.experiment import evaluate
from labelspace.types import Concept, Dataset, Fields, LabelSpace

ROWS = {"title": ["rye bread", "green tea", "fresh bread"] * 2, "tags": [["bread"], ["tea"], ["bread", "food"]] * 2}


def fitted(data, labels=None, **options):
    return Tagger("neighbors").fit(data, labels, **options)


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_frame_is_learned_tagged_and_measured_by_its_columns(package, tmp_path):
    frame = pytest.importorskip(package, reason="not installed").DataFrame(ROWS)
    tagger = fitted(frame, text="title", labels="tags")
    plain = fitted(ROWS["title"], ROWS["tags"])
    tagger.save(tmp_path / "m")
    for one in (tagger, labelspace.load(tmp_path / "m")):
        assert one.fields_ == Fields(("title",), ("tags",), None, None)
        assert one.tag_batch(frame) == one.tag_batch(frame["title"]) == plain.tag_batch(ROWS["title"])
        assert one.tag({"title": "some tea"}, k=1)[0][0] == "tea"
        assert one.evaluate(frame) == plain.evaluate(ROWS["title"], ROWS["tags"])
        assert one.explain({"title": "some tea"}, k=1)[0].label == "tea"
    with pytest.raises(DataError, match=r"is a DataFrame with columns; give one column: df\['title'\]"):
        plain.tag_batch(frame)
    with pytest.raises(DataError, match="must have one column 'title', but has: tags"):
        tagger.tag_batch(frame[["tags"]])
    table = fitted(frame, inputs=["title"], outputs=["tags"])
    assert table.tag_batch(frame, k=1)[1][0][0] == "tags: tea"
    assert table.evaluate(frame)["P@1"] == 100


def test_figures_are_those_of_the_experiment_where_labels_are_new_and_in_another_order(data):
    train, test = data
    tagger = Tagger("neighbors").fit_dataset(Dataset(train.Y, train.labels, texts=train.texts))
    names = [
        [*(train.labels.names[i] for i in row.indices), *["unheard of"] * (at == 3)] for at, row in enumerate(test.Y)
    ]
    ours, whole = tagger.evaluate(test.texts, names), evaluate(tagger, tagger.to_dataset(test.texts, names))
    assert ours == {name: whole[name] for name in ours}
    assert ours["n_labels"] == 41
    order = np.random.default_rng(0).permutation(40)
    shuffled = Dataset(test.Y[:, order], LabelSpace([test.labels.names[i] for i in order]), texts=test.texts)
    assert tagger.evaluate(shuffled) == tagger.evaluate(test.texts, test.Y)
    with pytest.raises(DataError, match="some are filtered; use experiment.evaluate"):
        tagger.evaluate(replace(shuffled, filtered=shuffled.Y))
    zero_shot = Tagger("lexical").fit_labels(LabelSpace(["tea", "bread"]))
    assert zero_shot.evaluate(["green tea", "rye bread"], [["tea"], ["bread"]], ks=(1,))["P@1"] == 100


def test_features_and_matrices_of_labels(data):
    train, test = data
    sparse = Tagger("one_vs_rest").fit(train.X, train.Y, label_names=train.labels)
    dense = Tagger("one_vs_rest").fit(train.X.toarray(), sp.csc_array(train.Y), label_names=list(train.labels.names))
    assert sparse.ready_made
    assert sparse.tag_batch(test.X) == dense.tag_batch(test.X.toarray().tolist())
    assert sparse.evaluate(test.X, test.Y) == dense.evaluate(test.X.toarray(), test.Y.toarray())
    assert Tagger("one_vs_rest").fit_dataset(Dataset(train.Y, train.labels, X=train.X)).tag_batch(
        test.X
    ) == sparse.tag_batch(test.X)
    assert fitted(Dataset(train.Y, train.labels, X=train.X)).ready_made
    with pytest.raises(DataError, match="trained on 600 ready-made features, but was given texts"):
        sparse.tag_batch(["a text"])


@pytest.mark.parametrize(("output", "package"), [("pandas", "pandas"), ("polars", "polars"), ("arrow", "pyarrow")])
def test_answers_as_a_table(output, package):
    pytest.importorskip(package, reason="not installed")
    tagger = fitted(ROWS["title"], ROWS["tags"])
    table = tagger.tag_batch(["tea", "unheard of", "bread"], k=2, output=output)
    columns = {name: list(table[name].to_pylist() if output == "arrow" else table[name].to_list()) for name in (
        "document", "rank", "label", "label_id", "score"
    )}  # fmt: skip
    assert columns["document"] == [0, 2, 2]
    assert columns["rank"] == [1, 1, 2]
    assert columns["label"] == ["tea", "bread", "food"]
    assert columns["label_id"] == ["2", "0", "1"]  # as in files: the number where there is no URI
    expected = [score for tags in tagger.tag_batch(["tea", "bread"], k=2) for _, score in tags]
    assert columns["score"] == pytest.approx(expected)
    assert len(table.column_names if output == "arrow" else table.columns) == 5


def test_the_index_of_pandas_and_what_is_known_of_labels_are_kept():
    pandas = pytest.importorskip("pandas", reason="not installed")
    space = LabelSpace(["food > tea", "food"], concepts=[Concept("http://x/tea"), Concept()])
    tagger = fitted(["green tea", "food"] * 2, [["food > tea"], ["food"]] * 2, label_names=space)
    tagger.labels_ = replace(tagger.labels_.with_paths(), counts=tagger.labels_.counts)
    table = tagger.tag_batch(pandas.Series(["tea", "food"], index=["q-7", "q-8"]), k=1, output="pandas")
    assert table["document"].tolist() == ["q-7", "q-8"]
    assert table["uri"].tolist()[0] == "http://x/tea"
    assert table["label_id"].tolist() == ["http://x/tea", "1"]
    assert list(table.columns) == ["document", "rank", "label", "label_id", "notation", "score", "path", "uri"]
    assert table["path"].tolist() == ["food > tea", "food"]
    blend = Tagger(members="neighbors", boosting_rounds=2).fit(["green tea", "rye bread"] * 20, ["tea", "bread"] * 20)
    frame = blend.tag_batch(["green tea"], output="pandas")
    assert frame["probability"].tolist() == pytest.approx([s for _, s in blend.named(
        blend.predict_topk(["green tea"], calibrated=True))[0]])  # fmt: skip


def test_an_unknown_output_or_option_is_refused(monkeypatch):
    tagger = fitted(ROWS["title"], ROWS["tags"])
    with pytest.raises(ParameterError, match="output must be None or one of pandas, polars, arrow, but is 'excel'"):
        tagger.tag_batch(["tea"], output="excel")
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"output='pandas' needs the package 'pandas'.*labelspace\[pandas\]"):
        tagger.tag_batch(["tea"], output="pandas")
    with pytest.raises(ParameterError, match="an option must be one of text, .* but is 'label'"):
        tagger.fit(["a"], [["x"]], label="tags")


@pytest.mark.parametrize(
    "fields", [[], {"text": "title"}, {"text": ["title"], "color": 1}, {"id": 7}, {"indicators": "no"}, {"labels": [7]}]
)
def test_saved_fields_are_checked(fields, tmp_path):
    fitted([{"title": "tea", "tags": "a"}] * 2, text="title", labels="tags").save(tmp_path / "m")
    manifest = store.read_manifest(tmp_path / "m")
    with pytest.raises(ModelError, match="must have|fit together"), store.refusing_damage(tmp_path / "m"):
        Tagger._assembled(tmp_path / "m", {**manifest, "fields": fields}, None)
