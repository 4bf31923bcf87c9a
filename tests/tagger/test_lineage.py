"""The lineage of a tagger: what is written, and what is refused when it is read."""

import json

import pytest

import labelspace
from labelspace import Tagger, store
from labelspace.errors import DataError, ModelError, ParameterError
from labelspace.store.model_folder import sealed
from labelspace.tagger.lineage import MAX_ENTRIES, Version, now
from tests.learning_model import learns  # noqa: F401 - a fixture

TEXTS = ["red apple pie", "green apple tart", "fast red car", "slow old car"]
NAMES = [["fruit"], ["fruit", "baking"], ["vehicle"], ["vehicle"]]


@pytest.fixture
def tagger(learns, monkeypatch):  # noqa: F811
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    return Tagger("counting").fit(TEXTS, NAMES)


def changed(folder, **entries):
    """Change entries of a model.json, as whoever made the folder may do."""
    path = folder / "model.json"
    path.write_text(json.dumps(sealed({**json.loads(path.read_text()), **entries})))


def test_a_trained_model_has_none_and_learning_adds_to_it(tagger, tmp_path):
    assert tagger.lineage_ == ()
    tagger.save(tmp_path / "a")
    assert "lineage" not in json.loads((tmp_path / "a" / "model.json").read_text())
    tagger.learn(["a toast"], [["toast", "fruit"]])
    first, second = tagger.lineage_
    assert first == Version(1, "train", n_documents=4, n_labels=3)
    assert second == Version(
        2,
        "learn",
        "1970-01-01T00:00:00Z",
        n_documents=5,
        n_new_documents=1,
        n_labels=4,
        n_new_labels=1,
        new_labels=("toast",),
        left_out=("shapes",),
    )
    tagger.save(tmp_path / "b")
    assert labelspace.load(tmp_path / "b").lineage_ == tagger.lineage_
    assert tagger.learn(["again"], [["fruit"]]).lineage_[-1].number == 3
    assert tagger.fit(TEXTS, NAMES).lineage_ == ()


def test_each_edit_of_labels_adds_to_it_and_a_failed_one_does_not(tagger):
    tagger.add_label("toast", ["a toast"], description="Fried bread.")
    assert (tagger.lineage_[1].made_by, tagger.lineage_[1].n_new_documents) == ("labels", 1)
    tagger.rename_label("toast", "hot toast").merge_labels("hot toast", "baking").retire_label("vehicle")
    assert [each.number for each in tagger.lineage_] == [1, 2, 3, 4, 5]
    tagger.split_label("fruit", {"apple": ["red apple"], "pear": ["green pear"]})  # edits that make one
    assert (len(tagger.lineage_), tagger.lineage_[-1].new_labels) == (6, ("apple", "pear"))
    with pytest.raises(DataError):
        tagger.rename_label("apple", "pear")
    assert len(tagger.lineage_) == 6


def test_the_same_documents_give_the_same_bytes(tagger, tmp_path):
    tagger.learn(["a toast"], [["toast"]]).save(tmp_path / "a")
    Tagger("counting").fit(TEXTS, NAMES).learn(["a toast"], [["toast"]]).save(tmp_path / "b")
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_only_the_last_entries_are_written(tagger, tmp_path):
    tagger.lineage_ = tuple(Version(number, "learn") for number in range(1, MAX_ENTRIES + 3))
    tagger.save(tmp_path / "a")
    loaded = labelspace.load(tmp_path / "a")
    assert [loaded.lineage_[0].number, loaded.lineage_[-1].number] == [3, MAX_ENTRIES + 2]


def test_a_time_must_be_a_number(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    with pytest.raises(ParameterError, match="SOURCE_DATE_EPOCH must be the seconds since 1970"):
        now()


FIGURES = {"source": "test.jsonl", "n": 9, "old": [1.0, 0.5, 2.0], "new": [1.0, 0.5, 2.0]}


@pytest.mark.parametrize(
    ("lineage", "rule"),
    [
        ("versions", "a lineage of at most"),
        ([7], "a number and how it was made"),
        ([{"number": 2}], "a number and how it was made"),
        ([{"number": "2", "made_by": "learn"}], "an integer of at least 1 and below 2^31 as number"),
        ([{"number": True, "made_by": "learn"}], "as number"),
        ([{"number": 2.0, "made_by": "learn"}], "as number"),
        ([{"number": 2**31, "made_by": "learn"}], "as number"),
        ([{"number": 10**400, "made_by": "learn"}], "as number"),
        ([{"number": 2, "made_by": "magic"}], "one of train, learn, labels, rollback as made_by"),
        ([{"number": 2, "made_by": ["learn"]}], "as made_by"),
        ([{"number": 2, "made_by": "learn", "time": "\x1b[2J"}], "a time such as"),
        ([{"number": 2, "made_by": "learn", "new_labels": "toast"}], "as new_labels"),
        ([{"number": 2, "made_by": "learn", "new_labels": [1]}], "as new_labels"),
        ([{"number": 2, "made_by": "learn", "sha256": "x"}], "64 hexadecimal digits"),
        ([{"number": 2, "made_by": "learn", "colour": "red"}], "the fields"),
        ([{"number": 2, "made_by": "learn", "held_out": 5}], "the figures of a version"),
        ([{"number": 2, "made_by": "learn", "held_out": {**FIGURES, "new": [1, 2]}}], "a percentage"),
        ([{"number": 2, "made_by": "learn", "held_out": {**FIGURES, "new": [1, 2, float("nan")]}}], "a percentage"),
        ([{"number": 2, "made_by": "learn", "held_out": {**FIGURES, "n": 0}}], "as n of the figures"),
        ([{"number": 3, "made_by": "learn"}, {"number": 2, "made_by": "learn"}], "whose numbers rise"),
        ([{"number": 2, "made_by": "learn"}] * 2, "whose numbers rise"),
        ([{"number": n, "made_by": "learn"} for n in range(1, MAX_ENTRIES + 2)], "a lineage of at most"),
    ],
)
def test_a_lineage_of_a_stranger_is_refused_in_one_line(tagger, tmp_path, lineage, rule):
    tagger.save(tmp_path / "a")
    changed(tmp_path / "a", lineage=lineage)
    with pytest.raises(ModelError) as raised:
        labelspace.load(tmp_path / "a")
    assert rule in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_lineage_at_the_largest_number_cannot_go_on(tagger, tmp_path):
    tagger.save(tmp_path / "a")
    changed(tmp_path / "a", lineage=[{"number": 2**31 - 1, "made_by": "learn"}])
    with pytest.raises(ModelError, match="numbered below 2147483648"):
        labelspace.load(tmp_path / "a").learn(["a toast"], [["toast"]])
    assert store.read_manifest(tmp_path / "a")["lineage"][0]["number"] == 2**31 - 1
