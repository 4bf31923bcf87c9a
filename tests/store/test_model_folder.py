import json
import os

import numpy as np
import pytest

import labelspace
from labelspace import store
from labelspace.errors import ModelError
from labelspace.models.registry import create
from labelspace.store import model_folder as folder_module
from labelspace.types import Concept


@pytest.fixture
def folder(data, tmp_path):
    train, _ = data
    create("one_vs_rest").fit(train.X, train.Y, labels=train.labels).save(tmp_path / "model")
    return tmp_path / "model"


def flip_a_byte(path, at):
    content = bytearray(path.read_bytes())
    content[at] ^= 0xFF
    path.write_bytes(content)


def test_the_folder_can_be_read_by_eye(folder):
    manifest = json.loads((folder / "model.json").read_text())
    assert manifest["format"] == folder_module.FORMAT
    assert manifest["method"] == "one_vs_rest"
    assert manifest["model"]["params"]["C"] == create("one_vs_rest").C
    assert manifest["model"]["state"]["n_labels_"] == {"value": 40}
    assert manifest["versions"]["numpy"] == np.__version__
    assert manifest["files"]["model.safetensors"]["arrays"]["classifiers_/bias"] == "float32 [40]"
    assert json.loads((folder / "labels.jsonl").read_text().splitlines()[3]) == {"label": "label 3"}


def test_safetensors_itself_reads_the_arrays(folder):
    from safetensors.numpy import load_file

    ours = store.read_arrays(folder, store.read_manifest(folder), "model.safetensors")
    theirs = load_file(folder / "model.safetensors")
    assert ours.keys() == theirs.keys()
    assert all(np.array_equal(ours[key], theirs[key]) for key in ours)


def test_loaded_arrays_are_mapped_and_a_change_never_reaches_the_file(folder):
    before = (folder / "model.safetensors").read_bytes()
    arrays = store.read_arrays(folder, store.read_manifest(folder), "model.safetensors")
    assert arrays["classifiers_/bias"].flags.writeable
    assert not arrays["classifiers_/bias"].flags.owndata
    arrays["classifiers_/bias"][:] = 7
    assert (folder / "model.safetensors").read_bytes() == before


def test_hierarchy_counts_and_names_come_back(folder, data):
    labels = labelspace.load(folder).labels_
    train, _ = data
    assert list(labels.names) == list(train.labels.names)
    assert labels.counts.tolist() == train.Y.sum(axis=0).A1.astype(int).tolist()
    assert labels.n_documents == len(train)
    assert labels.hierarchy.edges.tolist() == train.labels.hierarchy.edges.tolist()


@pytest.mark.parametrize("name", ["model.safetensors", "labels.jsonl", "labels.safetensors"])
def test_a_truncated_missing_or_damaged_file_is_refused(folder, name):
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[:-7])
    with pytest.raises(ModelError, match="truncated or of another model; copy the whole folder again"):
        labelspace.load(folder)
    (folder / name).write_bytes(whole)
    flip_a_byte(folder / name, len(whole) // 2)
    with pytest.raises(ModelError, match="must match its checksum, but does not"):
        labelspace.load(folder)
    (folder / name).unlink()
    with pytest.raises(ModelError, match="is missing; copy the whole folder"):
        labelspace.load(folder)


def test_a_damaged_header_is_refused_even_unverified(folder):
    flip_a_byte(folder / "model.safetensors", 12)
    with pytest.raises(ModelError, match="is damaged"):
        labelspace.load(folder, verify=False)


def test_foreign_newer_and_older_folders_are_refused(folder, tmp_path):
    with pytest.raises(ModelError, match="does not exist; give the folder"):
        labelspace.load(tmp_path / "nowhere")
    with pytest.raises(ModelError, match="holds none"):
        labelspace.load(tmp_path)
    manifest = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps({**manifest, "format": 99}))
    with pytest.raises(ModelError, match="is of format 99, written by labelspace .*; upgrade"):
        labelspace.load(folder)
    (folder / "model.json").write_text(json.dumps({**manifest, "method": "popular"}))
    with pytest.raises(ModelError, match="it was damaged or edited; copy or train it again"):
        labelspace.load(folder)
    for content in ("{}", "[]", "5", '"x"'):
        (folder / "model.json").write_text(content)
        with pytest.raises(ModelError, match="must be a labelspace model, but cannot be read as one"):
            labelspace.load(folder)
    (folder / "model.json").write_text('{"format": 1')
    with pytest.raises(ModelError, match="cannot be read as one"):
        labelspace.load(folder)


def test_a_saved_parameter_this_version_does_not_know_is_refused(folder):
    manifest = json.loads((folder / "model.json").read_text())
    manifest["model"]["params"]["color"] = 1
    (folder / "model.json").write_text(json.dumps(store.sealed(manifest)))
    with pytest.raises(ModelError, match="no parameter 'color'.*train it again"):
        labelspace.load(folder)


def test_files_that_do_not_fit_together_are_refused(folder):
    manifest = json.loads((folder / "model.json").read_text())
    del manifest["model"]["state"]["classifiers_"]
    (folder / "model.json").write_text(json.dumps(store.sealed(manifest)))
    with pytest.raises(ModelError, match="must have the state widths_, .*, but has another"):
        labelspace.load(folder)
    del manifest["model"]
    (folder / "model.json").write_text(json.dumps(store.sealed(manifest)))
    with pytest.raises(ModelError, match=r"do not fit together \(KeyError: 'model'\)"):
        labelspace.load(folder)


def test_an_older_model_is_replaced_and_anything_else_is_not(folder, data, tmp_path):
    train, _ = data
    create("popular").fit(train.X, train.Y).save(folder)
    assert labelspace.load(folder).model.name == "popular"
    other = tmp_path / "photos"
    other.mkdir()
    (other / "holiday.jpg").write_text("x")
    with pytest.raises(ModelError, match="holds other files; give another folder"):
        create("popular").fit(train.X, train.Y).save(other)
    with pytest.raises(ModelError, match="is a file; give another name"):
        create("popular").fit(train.X, train.Y).save(other / "holiday.jpg")
    assert os.listdir(other) == ["holiday.jpg"]


def test_nothing_but_a_model_is_replaced(folder, data, tmp_path):
    train, _ = data
    model = create("popular").fit(train.X, train.Y)
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(ModelError, match="holds other files"):
        model.save(folder)
    assert (folder / "notes.txt").read_text() == "mine"
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "model.json").write_text('{"modelTopology": {}}')
    with pytest.raises(ModelError, match="holds other files"):
        model.save(foreign)
    with pytest.raises(ModelError, match=r"notes.txt cannot \(Not a directory\); give another folder"):
        model.save(folder / "notes.txt" / "below")


def test_a_link_is_followed_and_files_can_be_read_by_others(folder, data, tmp_path):
    train, _ = data
    (tmp_path / "link").symlink_to(folder)
    create("popular").fit(train.X, train.Y).save(tmp_path / "link")
    assert labelspace.load(folder).model.name == "popular"
    assert sorted(os.listdir(tmp_path)) == ["link", "model"]
    modes = {path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert len(modes) == 1, "as the umask says, for every file"


def test_a_full_disk_leaves_the_old_model_and_nothing_else(folder, data, monkeypatch):
    import safetensors.numpy

    def full(*args):
        raise OSError(28, "No space left on device")

    train, _ = data
    monkeypatch.setattr(safetensors.numpy, "save_file", full)
    with pytest.raises(ModelError, match="No space left on device.*free some space"):
        create("popular").fit(train.X, train.Y).save(folder)
    assert os.listdir(folder.parent) == ["model"]
    assert labelspace.load(folder).model.name == "one_vs_rest"


def test_numbers_of_numpy_as_parameters_are_saved_as_plain_ones(data, tmp_path):
    train, test = data
    model = create("neighbors", n_neighbors=np.int64(3)).fit(train.X, train.Y)
    model.save(tmp_path / "model")
    loaded = labelspace.load(tmp_path / "model").model
    assert type(loaded.n_neighbors) is int
    assert loaded.get_params() == model.get_params()
    assert np.array_equal(loaded.predict_topk(test.X).scores, model.predict_topk(test.X).scores)


def test_a_model_without_names_cannot_ask_for_any_number_of_them(data, tmp_path):
    train, _ = data
    create("label_tree").fit(train.X, train.Y).save(tmp_path / "model")
    manifest = json.loads((tmp_path / "model" / "model.json").read_text())
    manifest["model"]["state"]["n_labels_"]["value"] = 2**31 - 1
    (tmp_path / "model" / "model.json").write_text(json.dumps(store.sealed(manifest)))
    with pytest.raises(ModelError, match="at most 5000000 labels without names, but says 2147483647; .*MAX_LABELS"):
        labelspace.load(tmp_path / "model")


def test_a_model_that_could_not_be_loaded_is_not_saved(data, tmp_path):
    train, _ = data
    create("popular").fit(train.X, train.Y).save(tmp_path / "model")
    diverged = create("one_vs_rest").fit(train.X, train.Y)
    diverged.classifiers_.bias[3] = np.nan
    with pytest.raises(ModelError, match="so nothing was saved: .*bias of a saved model must hold finite numbers"):
        diverged.save(tmp_path / "model")
    assert labelspace.load(tmp_path / "model").model.name == "popular"
    assert os.listdir(tmp_path) == ["model"]


def test_a_file_with_other_arrays_than_those_saved_does_not_replace_a_model(folder, data, monkeypatch):
    import safetensors.numpy

    train, _ = data
    before, write = (folder / "model.json").read_bytes(), safetensors.numpy.save_file

    def lose_precision(arrays, path):
        write({key: value.astype(np.float16) for key, value in arrays.items()}, path)

    monkeypatch.setattr(safetensors.numpy, "save_file", lose_precision)
    with pytest.raises(ModelError, match="model.safetensors must hold the arrays that were saved, but holds others"):
        create("one_vs_rest").fit(train.X, train.Y, labels=train.labels).save(folder)
    assert (folder / "model.json").read_bytes() == before


def test_what_a_vocabulary_says_of_labels_is_saved_with_a_model(tmp_path):
    labels = labelspace.LabelSpace(
        ["cats", "dogs"], [["catz"], []], concepts=[Concept("http://example.org/p1", hidden=("catz",)), Concept()]
    )
    labelspace.Tagger("lexical").fit_labels(labels).save(tmp_path / "model")
    loaded = labelspace.load(tmp_path / "model").labels_
    assert list(loaded.concepts) == list(labels.concepts)
    assert list(loaded.synonyms) == [["catz"], []]
    assert loaded.find("<http://example.org/p1>") == 0
