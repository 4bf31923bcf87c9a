"""Labels that are added, retired, renamed, merged and split after the training."""

import numpy as np
import pytest
import scipy.sparse as sp

import labelspace
from labelspace import Tagger
from labelspace.data.texts import dataset_from_names
from labelspace.errors import DataError, ModelError, ParameterError
from labelspace.experiment import evaluate
from labelspace.labels import edits
from labelspace.models.registry import METHODS, create
from labelspace.store.labels import label_arrays, parse_labels
from labelspace.types import LabelSpace
from tests.models.variants import SMALL

WORDS = {
    "bread": "rye dough loaf crust",
    "fish": "salmon river net scales",
    "rice": "paddy bowl steam grain",
    "tea": "leaf cup kettle brew",
    "soup": "broth spoon pot ladle",
    "salad": "lettuce tomato dressing crisp",
}
QUICK = ["one_vs_rest", "neighbors", "label_tree", "pdsparse", "fastxml", "leml", "lexical"]
DEFAULT = {"members": "neighbors,label_tree,lexical", "n_folds": 2}


def documents(n=120, seed=0):
    """Texts of three words of a label, some with the name of the label too."""
    rng = np.random.default_rng(seed)
    labels = [list(WORDS)[i % len(WORDS)] for i in range(n)]
    texts = [" ".join([*rng.choice(WORDS[label].split(), 3), *[label] * (rng.random() < 0.5)]) for label in labels]
    return texts, [[label] for label in labels]


def named_documents(n=400, seed=0):
    """Texts of noise and the name of a rare label: only names tell the label."""
    rng = np.random.default_rng(seed)
    labels = [f"{first}{last}" for first in "bakelomunitapor" for last in ("ral", "den", "vik", "mos", "tup", "gan")]
    labels = list(dict.fromkeys(labels))
    noise = [word for words in WORDS.values() for word in words.split()]
    rows = [labels[i] for i in rng.integers(0, len(labels), n)]
    return [" ".join([*rng.choice(noise, 4), row]) for row in rows], [[row] for row in rows]


@pytest.fixture(scope="module")
def named_folder(tmp_path_factory):
    """A saved blend that learned to trust names."""
    path = tmp_path_factory.mktemp("named") / "model"
    Tagger("blend", **DEFAULT).fit(*named_documents()).save(path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A saved blend."""
    path = tmp_path_factory.mktemp("saved") / "model"
    Tagger("blend", **DEFAULT).fit(*documents()).save(path)
    return path


def names(tagger, text, **options):
    return [name for name, _ in tagger.tag(text, **options)]


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in ("glas", "sleec"))])
def test_every_method_retires_renames_and_merges(name, tmp_path):
    tagger = Tagger(name, **SMALL.get(name, {})).fit(*documents())
    text = "rye dough loaf bread"
    first = names(tagger, text, k=1)[0]
    other = {"bread": "fish"}.get(first, "bread")
    assert first not in names(tagger.retire_label(first), text)
    assert first in names(tagger.add_label(first), text)
    tagger.rename_label(first, "renamed")
    assert names(tagger, text, k=1) == ["renamed"]
    tagger.merge_labels("renamed", other)
    assert names(tagger, text, k=1) == [other]
    assert len(names(tagger, text, k=6)) == len(set(names(tagger, text, k=6)))
    tagger.save(tmp_path / "m")
    loaded = labelspace.load(tmp_path / "m")
    assert loaded.tag_batch([text, "rice"], k=5) == tagger.tag_batch([text, "rice"], k=5)
    assert loaded.labels_.synonyms[loaded.labels_.index[other]] == ["renamed", first]
    tagger.add_label("renamed")
    assert names(tagger, text, k=1) == ["renamed"]


def test_a_method_that_cannot_learn_says_so_and_stays_as_it_was():
    tagger = Tagger("fastxml", **SMALL["fastxml"]).fit(*documents())
    before = tagger.tag_batch(["rye loaf", "tea"])
    for examples in (None, ["a toast"]):
        with pytest.raises(ParameterError, match="needs a method that can go on learning, but fastxml cannot"):
            tagger.add_label("toast", examples)
    with pytest.raises(ParameterError, match="fastxml cannot"):
        tagger.split_label("bread", {"rye": ["rye"], "wheat": ["wheat"]})
    assert tagger.tag_batch(["rye loaf", "tea"]) == before
    assert "toast" not in tagger.labels_.names


def test_a_label_by_its_name_is_answered_at_once(named_folder, tmp_path):
    tagger = Tagger.load(named_folder)
    tagger.add_label("couscous", alt=["bulgur", "semolina"])
    for text in ("a bulgur", "couscous", "steam semolina in a bowl"):
        assert "couscous" in names(tagger, text, k=5), text
    tagger.save(tmp_path / "m")
    assert "couscous" in names(labelspace.load(tmp_path / "m"), "steam semolina in a bowl", k=5)
    lexical = Tagger("lexical").fit(*documents())
    assert names(lexical.add_label("couscous", alt=["bulgur"]), "a bulgur", k=5)[0] == "couscous"
    zero_shot = Tagger("lexical").fit_labels(LabelSpace(["bread", "fish"]))
    assert names(zero_shot.add_label("couscous", alt=["bulgur"]), "a bulgur") == ["couscous"]


def test_synonyms_of_a_known_label_are_read_at_once(named_folder):
    tagger = Tagger.load(named_folder)
    before = names(tagger, "an oolong")
    label = next(name for name in tagger.labels_.names if name not in before)
    assert label in names(tagger.add_label(label, alt=["oolong"]), "an oolong")


def test_names_of_edited_labels_in_lexical():
    tagger = Tagger("lexical").fit(*documents())
    shifts = np.array(tagger.model.shift_)
    counts = tagger.model.counts_
    tagger.merge_labels("fish", "soup")
    assert names(tagger, "fish") == ["soup"]
    tagger.retire_label("rice")
    assert names(tagger, "rice") == []
    assert not tagger.reads(["rice"])[0]
    tagger.rename_label("tea", "hot drink")
    assert names(tagger, "tea")[0] == names(tagger, "a hot drink")[0] == "hot drink"
    assert np.array_equal(tagger.model.shift_, shifts)
    assert tagger.model.counts_ is counts
    tagger.learn(["rice and fish"] * 3, [["rice", "fish"]] * 3)
    assert names(tagger, "rice and fish") == ["soup"]
    counts = tagger.labels_.counts
    assert counts[tagger.labels_.index["soup"]] == 23
    assert counts[tagger.labels_.index["rice"]] == 20


def test_a_lexical_member_without_counts_keeps_its_labels(named_folder):
    """It was saved before counts were kept: it cannot take new labels, and must not point to them."""
    tagger = Tagger.load(named_folder)
    n = len(tagger.labels_)
    tagger.model.members_[-1].counts_ = None
    tagger.add_label("couscous")
    tagger.rename_label(tagger.labels_.names[7], "hot drink")
    assert tagger.model.members_[-1].n_labels_ == n
    assert tagger.model.members_[-1].phrases_.owners.max() == n - 1
    assert names(tagger, "a hot drink couscous")[0] == "hot drink"


def test_a_split_is_made_as_a_whole_or_not_at_all(folder, tmp_path, monkeypatch):
    tagger = Tagger.load(folder)
    examples = {"rye bread": ["rye dough", "rye loaf"], "crusty bread": ["crust crust", "crust loaf"]}
    before = tagger.tag_batch(["rye crust dough", "fish"])
    state = dict(tagger.model.__dict__), tagger.labels_, tagger.model.members_[0].labels_

    def fails(name):
        raise KeyboardInterrupt

    monkeypatch.setattr(tagger, "retire_label", fails, raising=False)
    with pytest.raises(KeyboardInterrupt):
        tagger.split_label("bread", examples)
    monkeypatch.undo()
    assert tagger.tag_batch(["rye crust dough", "fish"]) == before
    assert tagger.labels_ is state[1]
    assert tagger.model.members_[0].labels_ is state[2]
    assert tagger.model.__dict__.keys() >= state[0].keys()
    for wrong, said in [
        ({"rye bread": ["rye"]}, "at least two, but 'bread' into 1"),
        ({"rye bread": ["rye"], "fish": ["x"]}, "'fish' is a label already"),
        ({"rye bread": ["rye"], "x": []}, "at least one example"),
    ]:
        with pytest.raises(DataError, match=said):
            tagger.split_label("bread", wrong)
    assert tagger.tag_batch(["rye crust dough", "fish"]) == before
    tagger.split_label("bread", examples)
    assert "rye bread" in names(tagger, "rye dough", k=3)
    assert "bread" not in names(tagger, "rye dough bread", k=8)


def test_evaluation_counts_merged_labels_as_the_other_one_and_no_retired_ones(folder):
    tagger = Tagger.load(folder)
    texts, labels = documents(60, seed=1)
    assert tagger.evaluate(texts, labels, ks=[1])["P@1"] == 100
    tagger.merge_labels("fish", "soup").retire_label("rice")
    found = tagger.evaluate(texts, labels, ks=[1])
    assert found["P@1"] == 100
    figures = evaluate(tagger, tagger.to_dataset(texts, labels), ks=[1])
    assert figures["P@1"] == 100
    assert figures["n_unknown_labels"] == 0
    both = tagger.evaluate(["salmon broth"], [["fish", "soup"]], ks=[1, 2])
    assert both["P@1"] == 100
    assert both["P@2"] == 50  # the two are one label now


def test_explanations_and_members_of_edited_labels(folder):
    tagger = Tagger.load(folder)
    text = "salmon river fish"
    tagger.merge_labels("fish", "soup").retire_label("rice")
    why = tagger.explain(text, k=1)[0]
    assert why.label == "soup"
    assert {"salmon", "river"} & {word.text for word in why.marked()}
    assert [each.label for each in tagger.explain(text, ["fish", "soup"])] == ["soup"]
    with pytest.raises(DataError, match="'rice' is retired"):
        tagger.explain(text, ["rice"])
    for top in tagger.predict_members([text, "paddy bowl rice"], k=6).values():
        ids = top.labels[top.labels >= 0]
        assert tagger.labels_.in_use[ids].all()
    assert {len(top.labels[0]) for top in tagger.predict_members([text], k=3).values()} == {3}


def test_filters_and_ready_made_features_of_edited_labels():
    train = dataset_from_names(*documents())
    X = sp.random(120, 50, 0.2, "csr", np.float32, random_state=0)
    tagger = Tagger("neighbors").fit(X, train.Y)
    best = tagger.tag_batch(X[:1], k=1)[0][0][0]
    other = "0" if best != "0" else "1"
    tagger.merge_labels(best, other)
    assert tagger.tag_batch(X[:1], k=1)[0][0][0] == other
    assert other not in [name for name, _ in tagger.tag_batch(X[:1], k=5, exclude=[best])[0]]
    assert {name for name, _ in tagger.tag_batch(X[:1], k=5, include=[best])[0]} == {other}
    tagger.add_label("new", X[:3])
    assert tagger.tag_batch(X[:1], k=6)


def test_probabilities_and_thresholds_of_merged_labels(folder):
    tagger = Tagger.load(folder)
    text = "salmon river broth spoon"
    single = dict(tagger.tag(text, k=6))
    tagger.merge_labels("fish", "soup")
    either = 1 - (1 - single["fish"]) * (1 - single["soup"])
    assert dict(tagger.tag(text, k=6))["soup"] == pytest.approx(either, abs=1e-3)
    assert names(tagger, text, min_probability=0.0, k=5)[0] == "soup"
    assert tagger.predict_proba([text], k=2).shape == (1, 6)


@pytest.mark.parametrize(
    ("current", "edges"),
    [
        ([0, 1], []),  # too few
        ([3, 1, 2], []),
        ([-2, 1, 2], []),
        ([1, 2, 2], []),
        ([1, 0, 2], []),
        ([-1, 0, 2], []),
        ([1, 1, 2], [[2, 0]]),  # an answer would include an ancestor that is not in use
        ([-1, 1, 2], [[0, 2]]),
    ],
)
def test_hostile_current_labels_are_refused(current, edges):
    lines = b'{"label": "a"}\n{"label": "b"}\n{"label": "c"}\n'
    arrays = label_arrays(LabelSpace(["a", "b", "c"], current=np.arange(3, dtype=np.int32)))
    arrays |= {"line_ends": np.array([15, 30, 45]), "hierarchy": np.array(edges, np.int32).reshape(-1, 2)}
    assert parse_labels(lines, arrays).names[2] == "c"
    arrays["current"] = np.array(current, np.int32)
    with pytest.raises(ModelError) as error:
        parse_labels(lines, arrays)
    assert "\n" not in str(error.value)


def test_a_model_without_edits_saves_the_same_bytes_after_an_edit_and_back(folder, tmp_path):
    tagger = Tagger.load(folder)
    tagger.retire_label("rice").add_label("rice")
    assert tagger.labels_.current is None
    tagger.save(tmp_path / "m")
    for path in folder.iterdir():
        if path.name != "labels.jsonl" and path.suffix not in (".json", ".md"):
            assert (tmp_path / "m" / path.name).read_bytes() == path.read_bytes(), path.name


def test_every_method_of_the_registry_that_reads_names_can_be_relabeled():
    relabeled = [name for name in METHODS if hasattr(create(name), "relabel")]
    assert relabeled == ["lexical", "blend"]


def test_names_of_a_retired_label_are_not_taken_by_others(folder):
    tagger = Tagger.load(folder).retire_label("rice")
    with pytest.raises(DataError, match="'rice' is a label that is retired"):
        tagger.rename_label("tea", "rice")
    with pytest.raises(DataError, match="'rice' is retired"):
        tagger.merge_labels("tea", "rice")
    with pytest.raises(DataError, match="did you mean 'bread'"):
        tagger.retire_label("breed")
    assert edits.state_of(tagger.labels_, tagger.labels_.index["rice"]) == "retired"
