"""What is particular to the method that reads label names."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

import labelspace
from labelspace.data.source import open_source
from labelspace.errors import DataError, ParameterError
from labelspace.experiment import Recipe, evaluate, train
from labelspace.models.lexical.kernels import FULL_GRADES, N_BUCKETS, N_FULL_BUCKETS, PARTIAL_GRADES
from labelspace.models.lexical.model import SOME_WEIGHTS, WHOLE_WEIGHTS, Lexical, bucket_probabilities, indicators
from labelspace.tagger import Tagger
from labelspace.types import Dataset, LabelSpace


def tags(labels, text, k=5):
    return [name for name, _ in Tagger(Lexical()).fit_labels(labels).tag(text, k)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("gluten-free", "Is it gluten free?"),
        ("gluten free", "GLUTEN-FREE bread"),
        ("gluten_free", "gluten free"),
        ("stir-fry", "a stirfry"),
        ("strawberries", "one strawberry"),
        ("baking", "how to bake"),
        ("bank (finance)", "the bank lends"),
        ("vitamin C", "too much vitamin C, perhaps"),
        ("C", "written in C"),
        ("crème brûlée", "CRÈME BRÛLÉE"),
        ("abstraction, abstract entity", "an abstract entity"),
        ("Ökologie", "die ÖKOLOGIE"),
    ],
)
def test_a_name_is_found_in_its_other_spellings(name, text):
    assert tags(LabelSpace([name, "nothing"]), text) == [name]


def test_synonyms_are_found_and_names_rank_first():
    labels = LabelSpace(["adhesive", "paper"], [["glue"], []])
    assert tags(labels, "glue for wood") == ["adhesive"]
    assert tags(labels, "glue and paper") == ["paper", "adhesive"]


def test_a_leading_code_is_no_part_of_the_name_where_all_have_one():
    assert tags(LabelSpace(["p10 environmental awareness", "p7 art"]), "environmental awareness at school") == [
        "p10 environmental awareness"
    ]
    assert tags(LabelSpace(["p10 art", "p7 music"]), "see p7") == ["p7 music"]
    assert tags(LabelSpace(["18th century", "art"]), "a new century")[:1] != ["art"]


def test_some_words_of_a_phrase_count_less_than_all():
    labels = LabelSpace(["olive oil", "sunflower oil", "bread"])
    assert tags(labels, "oil of the sunflower") == ["sunflower oil", "olive oil"]
    assert tags(labels, "olive oil on bread")[0] == "olive oil"


def test_nothing_found_is_no_label():
    model = Lexical.from_labels(LabelSpace(["bread", "?!", "-"]))
    top = model.predict_topk(["", "nothing of the kind", "?! - ..."], k=3)
    assert (top.labels == -1).all()
    assert np.isneginf(top.scores).all()


def test_labels_without_words_or_with_one_name_are_allowed():
    labels = LabelSpace(["...", "Bread", "bread", " "], [[], [""], ["(loaf)"], ["[]"]])
    top = Lexical.from_labels(labels).predict_topk(["bread"], k=4)
    assert top.labels.tolist() == [[1, 2, -1, -1]]
    only = Lexical.from_labels(LabelSpace(["..."]))
    assert only.predict_topk(["..."], k=1).labels.tolist() == [[-1]]


def test_what_too_many_labels_share_tells_none_of_them():
    labels = LabelSpace([f"kind {i}, unspecified" for i in range(50)])
    assert tags(labels, "unspecified") == []


def test_a_misleading_name_is_learned_and_an_unseen_label_keeps_the_prior():
    texts = ["a can of beans"] * 30 + ["salt the soup"] * 30
    labels = LabelSpace(["can", "salt", "beans", "soup"])
    Y = np.zeros((60, 4))
    Y[30:, 1] = Y[:30, 2] = 1  # can: found and never right; soup likewise
    model = Lexical().fit(texts, sp.csr_matrix(Y), labels=labels)
    top = model.predict_topk(["a can of beans", "salt the soup"], k=2)
    assert top.labels.tolist() == [[2, 0], [1, 3]]
    assert (top.scores[:, 0] > 0.8).all()
    assert (top.scores[:, 1] < 0.2).all()


def test_new_labels_are_suggested_after_training():
    labels = LabelSpace(["bread", "fish", "saffron"])
    texts = ["bread dough", "grilled fish", "fish soup", "rye bread"] * 5
    Y = sp.csr_matrix(np.array([[1, 0, 0], [0, 1, 0], [0, 1, 0], [1, 0, 0]] * 5))
    model = Lexical().fit(texts, Y, labels=labels)
    assert model.predict_topk(["where to buy saffron"], k=1).labels.tolist() == [[2]]


def test_a_new_label_whose_name_is_a_common_word_is_less_likely_than_one_of_a_rare_name():
    labels = LabelSpace(["bread", "fish", "recipe", "saffron"])
    texts = ["recipe of bread"] * 2 + ["recipe of fish"] * 2 + ["recipe of something else"] * 36
    Y = sp.csr_matrix(np.eye(4)[[0, 0, 1, 1]])
    Y.resize(40, 4)
    scores = []
    for new_labels in (False, True):
        model = Lexical(new_labels=new_labels).fit(texts, Y, labels=labels)
        top = model.predict_topk(["a recipe with saffron"], k=2)
        assert top.labels.tolist() == [[3, 2]]
        scores.append(float(top.scores[0, 1]))
    never_right, as_if_new = scores
    assert never_right < as_if_new
    among = np.array([False, False, True, True])
    assert model.text_topk(["a recipe with saffron"], 2, among).scores[0, 1] == np.float32(as_if_new)


def test_scores_are_probabilities_that_hold_on_other_documents():
    rng = np.random.default_rng(0)
    labels = LabelSpace([f"word{i}" for i in range(20)])
    drawn = rng.random((4000, 20)) < 0.2
    Y = drawn & (rng.random((4000, 20)) < np.linspace(0.1, 0.9, 20))
    texts = [" ".join(f"word{i}" for i in np.flatnonzero(row)) for row in drawn]
    model = Lexical().fit(texts[:3000], sp.csr_matrix(Y[:3000], dtype=float), labels=labels)
    top = model.predict_topk(texts[3000:], k=20)
    scores = np.zeros((1000, 20))
    rows, places = np.nonzero(top.labels >= 0)
    scores[rows, top.labels[rows, places]] = top.scores[rows, places]
    for label in range(20):
        here = drawn[3000:, label]
        assert scores[here, label].mean() == pytest.approx(Y[3000:][here, label].mean(), abs=0.08)


def test_bucket_probabilities_are_the_measured_weights_without_data_and_the_counts_with_much():
    none = bucket_probabilities(np.zeros((N_BUCKETS, 2)))
    expected = np.concatenate([indicators(FULL_GRADES) @ WHOLE_WEIGHTS, indicators(PARTIAL_GRADES) @ SOME_WEIGHTS])
    np.testing.assert_allclose(none, 1 / (1 + np.exp(-expected)))
    many = np.zeros((N_BUCKETS, 2))
    many[:, 0], many[:N_FULL_BUCKETS, 1], many[N_FULL_BUCKETS:, 1] = 1e6, 7e5, 1e5
    np.testing.assert_allclose(bucket_probabilities(many)[:N_FULL_BUCKETS], 0.7, atol=1e-3)
    np.testing.assert_allclose(bucket_probabilities(many)[N_FULL_BUCKETS:], 0.1, atol=1e-3)


def test_stemming_can_be_left_out():
    model = Lexical(stemming="none").fit_labels(LabelSpace(["baking"]))
    assert model.predict_topk(["bake", "Baking"], k=1).labels.tolist() == [[-1], [0]]


def write_labels(path, names):
    path.write_text("".join(json.dumps({"label": name}) + "\n" for name in names))


def test_a_folder_with_labels_alone_makes_a_tagger(tmp_path):
    write_labels(tmp_path / "labels.jsonl", ["bread", "fish", "olive-oil"])
    (tmp_path / "hierarchy.tsv").write_text("fish\tfood\n")
    for data in (tmp_path, tmp_path / "labels.jsonl"):
        tagger = train(open_source(data), Recipe("lexical"))
        tagger.save(tmp_path / "model")
        loaded = labelspace.load(tmp_path / "model")
        assert [name for name, _ in loaded.tag("fish fried in olive oil")] == ["olive-oil", "fish"]
        assert loaded.labels_.n_documents == 0
        assert loaded.labels_.hierarchy is not None
    documents = Dataset(sp.csr_matrix([[1.0, 0, 0, 0]]), loaded.labels_, texts=["rye bread"])
    assert evaluate(loaded, documents)["P@1"] == 100


def test_labels_alone_are_refused_where_documents_are_needed(tmp_path):
    write_labels(tmp_path / "labels.jsonl", ["bread"])
    with pytest.raises(
        ParameterError, match="without documents needs .*, but popular does not; train with --method lexical"
    ):
        train(open_source(tmp_path), Recipe("popular"))
    with pytest.raises(DataError, match="has labels only; add train"):
        open_source(tmp_path).train()
    with pytest.raises(DataError, match="at least one label, but there are 0"):
        Lexical.from_labels(LabelSpace([]))
