"""Importing again over labels from before: ids stay, names stay while they hold, nothing is lost."""

import json

import pytest

from labelspace.data.label_files import read_hierarchy, read_labels
from labelspace.data.vocabularies import LabelsBefore, plan_update, read_vocabulary

A = "http://example.org/"


def vocabulary(tmp_path, rows, header="uri,label_en,label_fi,notation,broader"):
    path = tmp_path / "v.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return read_vocabulary(path)


def update(tmp_path, *rows, write=True, language=None, **options):
    planned = plan_update(vocabulary(tmp_path, rows, **options), LabelsBefore.of(tmp_path / "out"), language)
    if write:
        planned.write(tmp_path / "out")
    return planned


def counts(planned):
    return {kind: len(labels) for kind, labels in planned.changes.items() if labels}


@pytest.fixture
def before(tmp_path):
    return update(tmp_path, f"{A}1,animals,,,", f"{A}2,cats,kissat,02,{A}1", f"{A}3,dogs,,,{A}1", f"{A}4,pugs,,,{A}3")


def test_what_is_new_renamed_changed_and_gone(tmp_path, before):
    assert counts(before) == {"new": 4}
    planned = update(
        tmp_path, f"{A}0,fauna,,,", f"{A}1,animals,,,{A}0", f"{A}2,house cats,kissat,02,{A}1", f"{A}4,pugs,mopsit,,"
    )
    assert counts(planned) == {"new": 1, "renamed": 1, "changed": 1, "gone": 1}
    assert (planned.changes["gone"], planned.n_newly_gone) == ([2], 1)
    labels = read_hierarchy(tmp_path / "out/hierarchy.tsv", read_labels(tmp_path / "out/labels.jsonl"))
    assert labels.names == ["animals", "house cats", "dogs", "pugs", "fauna"]  # ids stay, new ones are last
    assert labels.hierarchy.edges.tolist() == [[0, 4], [1, 0], [2, 0]]  # what is gone keeps its parent
    assert (tmp_path / "out/gone.txt").read_text() == "dogs\n"


def test_again_and_back(tmp_path, before):
    rows = [f"{A}1,animals,,,", f"{A}2,cats,kissat,02,{A}1", f"{A}4,pugs,,,"]
    update(tmp_path, *rows)
    again = update(tmp_path, *rows)
    assert (counts(again), again.n_newly_gone) == ({"gone": 1}, 0)
    back = update(tmp_path, *rows, f"{A}3,dogs,,,{A}1")
    assert counts(back) == {"returned": 1}
    assert not (tmp_path / "out/gone.txt").exists()


def test_a_changed_description_is_a_change_and_a_missing_one_is_none(tmp_path):
    header = "label,description"
    update(tmp_path, "cats,Carnivores.", "dogs,Pets.", header=header)
    planned = update(tmp_path, "cats,Small carnivores.", "dogs,", header=header)
    assert (counts(planned), planned.changes["changed"]) == ({"changed": 1}, [0])
    labels = read_labels(tmp_path / "out/labels.jsonl")
    assert [concept.description for concept in labels.concepts] == ["Small carnivores.", "Pets."]


def test_the_same_file_changes_nothing(tmp_path, animals):
    first = plan_update(read_vocabulary(animals[".nt"]), LabelsBefore.of(tmp_path / "out"))
    first.write(tmp_path / "out")
    written = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    again = plan_update(read_vocabulary(animals[".nt"]), LabelsBefore.of(tmp_path / "out"))
    again.write(tmp_path / "out")
    assert counts(again) == {}
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == written


def test_a_plan_writes_nothing(tmp_path, before):
    written = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    update(tmp_path, f"{A}9,fish,,,", write=False)
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == written


def test_a_new_homonym_does_not_rename_the_old_one(tmp_path, before):
    planned = update(
        tmp_path, f"{A}1,animals,,,", f"{A}2,cats,kissat,02,{A}1", f"{A}3,dogs,,,{A}1", f"{A}4,pugs,,,{A}3",
        f"{A}5,cats,,C5,", f"{A}6,dogs,,,",
    )  # fmt: skip
    assert counts(planned) == {"new": 2}
    assert planned.after.names[4:] == ["cats (C5)", "dogs (6)"]
    assert counts(update(tmp_path, *(f"{A}{at},x{at},,," for at in range(1, 7)))) == {"renamed": 6}


def test_names_may_change_places(tmp_path, before):
    planned = update(
        tmp_path, f"{A}1,animals,,,", f"{A}2,dogs,kissat,02,{A}1", f"{A}3,cats,,,{A}1", f"{A}4,pugs,,,{A}3"
    )
    assert planned.after.names == ["animals", "dogs", "cats", "pugs"]
    assert counts(planned) == {"renamed": 2}


def test_the_language_of_the_folder_stays(tmp_path):
    rows = [f"{A}1,animals,,,", f"{A}2,cats,kissat,,", f"{A}3,dogs,koirat,,"]
    assert update(tmp_path, *rows, language="fi").after.names == ["animals", "kissat", "koirat"]
    assert counts(update(tmp_path, *rows)) == {}


def test_labels_without_uri_are_matched_by_name(tmp_path):
    (tmp_path / "out").mkdir()
    lines = [{"label": "dogs"}, {"label": "cats", "alt": ["felines"]}]
    (tmp_path / "out/labels.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    planned = update(tmp_path, f"{A}2,cats,kissat,,")
    assert counts(planned) == {"changed": 1, "gone": 1}
    assert (planned.after.names, planned.after.concept(1).uri) == (["dogs", "cats"], f"{A}2")


def test_a_list_keeps_uris_and_hierarchy(tmp_path, before):
    planned = update(tmp_path, "animals", "cats", "dogs", "pugs", "fish", header="label")
    assert planned.after.names == ["animals", "cats", "dogs", "pugs", "fish"]
    assert planned.after.concept(1).uri == f"{A}2"
    assert planned.after.hierarchy.edges.tolist() == [[1, 0], [2, 0], [3, 2]]


def test_a_vocabulary_without_links_removes_the_hierarchy(tmp_path, before):
    update(tmp_path, *(f"{A}{at},{name},,," for at, name in enumerate(("animals", "cats", "dogs", "pugs"), 1)))
    assert not (tmp_path / "out/hierarchy.tsv").exists()


def test_a_failure_leaves_all_files_as_they_were(tmp_path, before, monkeypatch):
    written = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("labelspace.data.vocabularies.update.write_hierarchy", fail)
    with pytest.raises(ValueError, match="No space left"):
        update(tmp_path, f"{A}1,animals,,,", f"{A}9,fish,,,{A}1")
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == written
