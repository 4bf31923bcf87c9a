"""Tagger.explain: words of the raw text, members, documents that voted, and shares that add up."""

import json

import numpy as np
import pytest

from labelspace import Tagger, load
from labelspace.data.texts import dataset_from_names
from labelspace.errors import DataError, ParameterError
from labelspace.models.blend.explanations import OTHER_LABELS
from labelspace.types import Columns, Dataset, LabelSpace

METHODS = ("label_tree", "one_vs_rest", "pdsparse", "neighbors", "network", "lexical", "blend")
KITCHEN = {
    "bread": "loaf rye crust knead yeast bake".split(),
    "fish": "cod grill smoke trout fillet scales".split(),
    "rice": "steam grain pilaf basmati cook pot".split(),
}


def kitchen(n=90, seed=0):
    """Texts of few words, most of which speak for one label."""
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for i in range(n):
        label = list(KITCHEN)[i % 3]
        words = [*rng.choice(KITCHEN[label], 3), *rng.choice(["the", "hot", "old", "my", "how"], 2)]
        texts.append(" ".join([label.title() if i % 2 else "it", *words]))
        labels.append([label])
    return texts, labels


@pytest.fixture(scope="module")
def blend():
    texts, labels = kitchen()
    documents = dataset_from_names(texts, labels)
    ids = [f"doc-{i}" for i in range(len(texts))]
    return Tagger("blend").fit_dataset(
        Dataset(documents.Y, documents.labels, texts=texts, ids=ids), keep_texts=True
    ), texts


@pytest.mark.parametrize("name", METHODS)
def test_shares_of_words_add_up_to_the_log_odds_less_the_baseline(name):
    texts, labels = kitchen()
    tagger = Tagger(name).fit(texts, labels)
    for text in ("Knead the RYE bread, twice", "grill a trout; hot!", "unheard of", ""):
        for why in tagger.explain(text, labels=["bread", "fish", "rice"]):
            words = sum(word.share for word in why.words)
            assert words + why.remainder == pytest.approx(why.log_odds - why.baseline, abs=1e-4)
            for word in why.words:
                assert text[word.start : word.end] == word.text
            if why.members:
                assert sum(member.share for member in why.members) == pytest.approx(why.total, abs=1e-4)


@pytest.mark.parametrize("name", METHODS)
def test_the_words_of_a_label_speak_for_it(name):
    texts, labels = kitchen()
    tagger = Tagger(name).fit(texts, labels)
    why = tagger.explain("My old bread and the rye crust", labels=["bread"])[0]
    assert why.for_and_against()[0][0].text in ("bread", "rye", "crust")
    assert {word.text for word in why.marked()} <= {"bread", "rye", "crust"}


def test_an_explanation_has_the_probability_of_the_answer(blend):
    tagger, texts = blend
    for text in texts[:10]:
        for (name, score), why in zip(tagger.tag(text, k=3), tagger.explain(text, k=3), strict=True):
            assert (why.label, why.probability) == (name, pytest.approx(score, abs=1e-5))


def test_the_members_of_a_blend_are_named_with_score_and_rank(blend):
    tagger, texts = blend
    why = tagger.explain(texts[0], k=1)[0]
    names = [member.name for member in why.members]
    assert names[-1] == OTHER_LABELS
    assert "lexical" in names
    assert {"neighbors:words"} <= set(names)
    assert why.members[0].rank == 1


def test_documents_that_voted_have_ids_shared_words_and_kept_texts(blend, tmp_path):
    tagger, texts = blend
    tagger.save(tmp_path / "model")
    for one in (tagger, load(tmp_path / "model")):
        why = one.explain("rye crust loaf", labels=["bread"])[0]
        for neighbor in why.neighbors:
            row = int(neighbor.id.removeprefix("doc-"))
            assert neighbor.text == texts[row]
            assert neighbor.words
            assert set(neighbor.words) <= set(texts[row].lower().split())
        similarities = [neighbor.similarity for neighbor in why.neighbors]
        assert similarities == sorted(similarities, reverse=True)


def test_texts_are_kept_only_where_they_are_asked_for():
    texts, labels = kitchen()
    why = Tagger("neighbors").fit(texts, labels).explain("rye crust", k=1)[0]
    assert why.neighbors[0].text is None
    assert 1 <= int(why.neighbors[0].id) <= len(texts)  # documents without ids have the numbers of their rows
    with pytest.raises(ParameterError, match="texts are kept for a method that names training documents"):
        Tagger("label_tree").fit(texts, labels, keep_texts=True)


def test_rows_of_a_sample_held_out_are_not_named(monkeypatch):
    """Where members are trained once without a sample, their row 0 need not be the first document."""
    from labelspace.models.blend import training

    monkeypatch.setattr(training, "MAX_OUT_OF_FOLD", 60)
    texts, labels = kitchen()
    tagger = Tagger("blend").fit(texts, labels, keep_texts=True)
    held_out = set(range(len(texts))) - set(tagger.model.trained_rows.tolist())
    assert held_out
    for text in texts[:12]:
        for neighbor in tagger.explain(text, k=1)[0].neighbors:
            assert neighbor.text == texts[int(neighbor.id) - 1]
            assert int(neighbor.id) - 1 not in held_out


def test_phrases_that_name_a_label_have_their_place_in_the_text(blend):
    tagger, _ = blend
    why = tagger.explain("Old BREAD, hot Bread", labels=["bread"])[0]
    assert [(phrase.text, phrase.start, phrase.kind) for phrase in why.phrases] == [
        ("BREAD", 4, "name"), ("Bread", 15, "name"),
    ]  # fmt: skip


def test_the_path_through_a_tree_has_a_chance_at_each_step():
    texts, labels = kitchen()
    tagger = Tagger("label_tree", max_leaf_size=2, branching_factor=2).fit(texts, labels)
    path = tagger.explain("rye crust loaf", labels=["bread"])[0].path
    assert path[-1].labels == ["bread"]
    assert [node.n_labels for node in path] == sorted([node.n_labels for node in path], reverse=True)
    score = dict(tagger.tag("rye crust loaf", k=3))["bread"]
    assert np.prod([node.probability for node in path]) == pytest.approx(score, abs=1e-5)


def test_words_outside_ascii_have_the_places_of_the_raw_text():
    texts, labels = kitchen()
    tagger = Tagger("one_vs_rest", feature_params={"min_df": 1}).fit(
        [*texts, "İstanbul'da çok güzel Brötchen"] * 2, [*labels, ["bread"]] * 2
    )
    text = "ΑΣ İstanbul \t GÜZEL\n\nBrötchen"
    words = {word.text for word in tagger.explain(text, labels=["bread"])[0].words}
    assert {"GÜZEL", "Brötchen"} <= words


def test_features_are_explained_by_their_columns(data):
    train, test = data
    tagger = Tagger("blend").fit_dataset(Dataset(train.Y, train.labels, X=train.X))
    why = tagger.explain(test.X[0], k=1)[0]
    assert why.words == []
    assert {feature.column for feature in why.features} <= set(test.X[0].indices.tolist())
    shares = sum(feature.share for feature in why.features)
    assert shares + why.remainder == pytest.approx(why.total, abs=1e-4)


def test_a_row_of_a_table_is_explained_as_its_text():
    texts, labels = kitchen()
    documents = dataset_from_names(texts, labels)
    columns = Columns(("title", "note"), (("kind",),))
    named = Dataset(documents.Y, documents.labels, texts=texts, columns=columns)
    why = Tagger("one_vs_rest").fit_dataset(named).explain({"title": "rye loaf", "note": "crust"}, labels=["bread"])[0]
    assert {word.text for word in why.words} >= {"rye", "crust"}


def test_what_cannot_be_explained_is_said(blend, data):
    tagger, _ = blend
    with pytest.raises(ParameterError, match="'braed' is none of 3 labels; did you mean 'bread'"):
        tagger.explain("rye", labels=["braed"])
    train = data[0]
    of_rows = Tagger("one_vs_rest").fit_dataset(Dataset(train.Y, train.labels, X=train.X))
    with pytest.raises(DataError, match="explain takes one document, but was given 2"):
        of_rows.explain(train.X[:2])
    texts, labels = kitchen()
    with pytest.raises(ParameterError, match="can explain its scores, but popular cannot; train with --method .*blend"):
        Tagger("popular").fit(texts, labels).explain("rye")


def test_plain_values_are_json(blend):
    tagger, texts = blend
    values = json.loads(json.dumps(tagger.explain(texts[0], k=2)[0].to_dict()))
    assert values["label"]
    assert values["words"][0].keys() == {"text", "start", "end", "share"}
    assert values["members"][0].keys() == {"name", "score", "rank", "share"}
    assert values["neighbors"][0].keys() == {"id", "similarity", "share", "words", "text"}


def test_at_most_an_eighth_of_the_words_is_marked(blend):
    tagger, _ = blend
    text = " ".join([*KITCHEN["bread"], *KITCHEN["fish"], *KITCHEN["rice"], "the hot old my how it"])
    assert 1 <= len(tagger.explain(text, k=1)[0].marked()) <= len(text.split()) // 8


def test_scores_that_are_no_probabilities_stay_as_they_are():
    texts, labels = kitchen()
    tagger = Tagger("glas", loss="softmax", embedding_dim=16, epochs=2).fit(texts, labels)
    answers = dict(tagger.tag("rye crust", k=3))
    for why in tagger.explain("rye crust", k=3):
        assert (why.score, why.probability) == (pytest.approx(answers[why.label], abs=1e-2), None)


def test_a_synonym_is_shown_where_it_says_more_than_the_name():
    texts, labels = kitchen()
    documents = dataset_from_names(texts, labels)
    known = LabelSpace(documents.labels.names, [["Bread", "what is baked"], [], ["rice"]])
    tagger = Tagger("neighbors").fit_dataset(Dataset(documents.Y, known, texts=texts))
    assert [why.synonym for why in tagger.explain("rye", labels=known.names)] == ["what is baked", None, None]


def test_members_that_vote_by_other_views_name_a_document_once_and_words_in_full():
    texts, labels = kitchen()
    tagger = Tagger(members="neighbors:words,neighbors:chars").fit(texts, labels)
    neighbors = tagger.explain("rye crust loaf", labels=["bread"])[0].neighbors
    assert len({neighbor.id for neighbor in neighbors}) == len(neighbors) > 1
    assert {word for neighbor in neighbors for word in neighbor.words} <= {"rye", "crust", "loaf"}
