import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("torch")
pytest.importorskip("tokenizers")

from labelspace.data.synthetic import planted  # noqa: E402
from labelspace.data.table import describe_labels  # noqa: E402
from labelspace.errors import DataError, ParameterError  # noqa: E402
from labelspace.models.capabilities import Checkpoints, ProbabilitiesByColumn  # noqa: E402
from labelspace.models.text2text.model import Text2Text  # noqa: E402
from labelspace.tagger import Tagger  # noqa: E402
from labelspace.types import Columns, Dataset, LabelSpace  # noqa: E402
from tests.checks import same_topk  # noqa: E402
from tests.models.text2text.products import PRODUCTS, best_by_column, small_model  # noqa: E402


def scores_of(model, text):
    """The score of each label by its name."""
    top = model.predict_topk([text], k=model.n_labels_)
    pairs = zip(top.labels[0].tolist(), top.scores[0].tolist(), strict=True)
    return {model.labels_.names[label]: score for label, score in pairs if label >= 0}


def test_it_fills_in_a_table(fitted):
    leaf, cup = best_by_column(fitted, ["title: leaf no 3; price: 4", "title: cup"])
    assert leaf == {"brand": "Kettle", "L0": "Drinks", "L1": "Tea"}
    assert cup == {"brand": "Foam", "L0": "Drinks", "L1": "Tea"}


def test_na_takes_its_probability_from_the_values_of_the_column(fitted):
    scores = scores_of(fitted, "title: mist no 1")
    assert scores["L0: Care"] > 0.8
    assert sum(score for name, score in scores.items() if name.startswith("L1: ")) < 0.3
    for column in ("brand", "L0"):
        assert sum(score for name, score in scores.items() if name.startswith(column)) == pytest.approx(1.0, abs=0.01)


def test_the_score_of_a_label_is_the_sum_over_its_targets(fitted):
    scores = scores_of(fitted, "title: leaf cup")
    tea_or_coffee = scores["L1: Tea"] + scores.get("L1: Coffee", 0.0)
    assert scores["L0: Drinks"] == pytest.approx(tea_or_coffee, abs=1e-5), "every drink is tea or coffee"


def test_the_best_of_each_column_form_a_path_that_exists(products):
    texts, Y, labels = products
    paths = {tuple(labels.names[i] for i in row.indices if labels.names[i][0] == "L") for row in Y}
    rng = np.random.default_rng(0)
    models = [small_model(random_state=seed).fit(texts, Y, labels=labels) for seed in range(2)]  # hardly trained
    for model in models:
        queries = ["", "nothing known", *(" ".join(rng.choice(list(PRODUCTS), 3)) for _ in range(40))]
        for best in best_by_column(model, queries):
            assert any({f"L0: {best['L0']}", f"L1: {best['L1']}"} == set(path) for path in paths), best
    assert not np.array_equal(models[0].weights_, models[1].weights_), "another seed, another model"


def test_paths_stay_apart_where_a_value_has_several_parents():
    rows = [("red", "A", "Other", "x"), ("green", "B", "Other", "y"), ("blue", "C", "Other", "z")]
    columns = Columns(("title",), (("L0", "L1", "L2"),))
    names = [f"L{level}: {value}" for level in range(3) for value in sorted({row[level + 1] for row in rows})]
    Y = [[name in [f"L{i}: {v}" for i, v in enumerate(row[1:])] for name in names] for row in rows]
    Y = sp.csr_matrix(np.array(Y * 30, np.float32))
    labels = describe_labels(LabelSpace(names), Y, columns)
    tagger = Tagger(small_model(epochs=8))
    tagger.fit_dataset(Dataset(Y, labels, [f"title: {row[0]}" for row in rows] * 30, columns=columns))
    for word, *path in rows:
        for consistent in (False, True):
            tags = [name for name, _ in tagger.tag(f"title: {word}", k=7, consistent=consistent)]
            assert [next(name for name in tags if name.startswith(f"L{i}")) for i in range(3)] == [
                f"L{i}: {value}" for i, value in enumerate(path)
            ]


@pytest.mark.slow
def test_any_labels_will_do_with_and_without_a_hierarchy():
    data = planted(n=300, d=80, l=12, texts=True, seed=3)
    for labels in (data.labels, LabelSpace(data.labels.names)):
        model = small_model(epochs=12, embedding_dim=32, batch_size=16)
        model.fit(data.texts[:250], data.Y[:250], labels=labels)
        first = model.predict_topk(data.texts[250:], k=1).labels[:, 0]
        assert data.Y[np.arange(250, 300), first].mean() > 0.7


def test_the_size_of_blocks_does_not_matter(fitted, products, monkeypatch):
    expected = fitted.predict_topk(products[0], k=4)
    monkeypatch.setattr("labelspace.models.text2text.model.ROW_BLOCK", 7)
    assert same_topk(fitted.predict_topk(products[0], k=4), expected)


def test_a_saved_model_has_no_pickle(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    assert {path.suffix for path in (tmp_path / "model").iterdir()} == {".json", ".jsonl", ".safetensors"}
    assert Text2Text.load(tmp_path / "model").report() == fitted.report()


def test_it_declares_its_capabilities():
    assert isinstance(Text2Text(), Checkpoints)
    assert isinstance(Text2Text(), ProbabilitiesByColumn)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"embedding_dim": 10, "n_heads": 4}, "embedding_dim of text2text must be a multiple of n_heads"),
        ({"pretrained": ""}, "pretrained of text2text must be none, or a folder or the name of a T5"),
    ],
)
def test_bad_parameters_are_refused(params, message, products):
    with pytest.raises(ParameterError, match=message):
        Text2Text(**params).fit(*products[:2])


def test_features_are_refused():
    with pytest.raises(DataError, match="text"):
        small_model().fit(np.eye(3), np.eye(3))


def test_neither_the_library_nor_the_list_of_methods_needs_torch():
    script = (
        "import sys, labelspace, json; from labelspace.models.registry import methods; methods(); "
        "print(json.dumps([name for name in ('torch', 'transformers', 'tokenizers') if name in sys.modules]))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout) == []


def test_one_sequence_and_no_prior_from_scratch(products):
    texts, Y, labels = products
    rows = {frozenset(labels.names[i] for i in row.indices) for row in Y}
    model = small_model(one_sequence=True, prior=False).fit(texts, Y, labels=labels)
    assert model.report()["answers"] == [5]
    assert not model._decoder.tokenization.tries[0].log_prior.any()
    for best in best_by_column(model, ["", "title: leaf bar", "title: mist"]):
        written = {f"{column}: {value}" for column, value in best.items()}
        assert any(written >= row for row in rows), "the best of all columns are of one row"
