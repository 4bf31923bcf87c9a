"""Two forged models that once wrote outside their arrays, and their kind: all are refused when loaded."""

from random import Random

import numpy as np
import pytest

import labelspace
from labelspace.errors import ModelError
from labelspace.tagger import Tagger
from tests.fuzz.bases.models import documents
from tests.fuzz.mutators.array_file import ArrayFile
from tests.fuzz.mutators.sealing import seal
from tests.fuzz.mutators.subject import Subject

ARRAYS = "model.safetensors"
BEYOND = 2**31 - 1


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Files of a model by method."""
    files = {}
    for name, params in (("neighbors", {}), ("label_tree", {"branching_factor": 2, "max_leaf_size": 2})):
        folder = tmp_path_factory.mktemp(name) / "model"
        Tagger(name, **params).fit_dataset(documents()).save(folder)
        files[name] = {path.name: path.read_bytes() for path in folder.iterdir()}
    return files


def check_refused(files, key, change, folder):
    """Change an array, make the checksums right again, and load."""
    subject = Subject(dict(files), {}, Random(0))
    arrays = ArrayFile.read(files[ARRAYS])
    changed = arrays.arrays[key].copy()
    change(changed)
    assert not np.array_equal(changed, arrays.arrays[key])
    arrays.arrays[key] = changed
    subject.files[ARRAYS] = arrays.write()
    seal(subject)
    folder.mkdir()
    for name, content in subject.files.items():
        (folder / name).write_bytes(content)
    for verify in (None, False):
        with pytest.raises(ModelError) as refused:
            labelspace.load(folder, verify=verify)
        assert "checksum" not in str(refused.value), "refused for what is in the array"


def put(at, value):
    def change(array):
        array[at] = np.array(value).astype(array.dtype)  # beyond in a smaller type too

    return change


def test_the_model_as_saved_is_loaded(saved, tmp_path):
    for name, files in saved.items():
        (tmp_path / name).mkdir()
        for file, content in files.items():
            (tmp_path / name / file).write_bytes(content)
        assert labelspace.load(tmp_path / name).predict_topk(documents().X, 3).labels.shape == (60, 3)


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("rows_", put(0, 60)),
        ("rows_", put(-1, BEYOND)),
        ("rows_", put(0, -1)),
        ("rows_", put(slice(None), 2**15)),
        ("starts_", put(-1, BEYOND)),
        ("starts_", put(1, -1)),
        ("starts_", put(0, 5)),
        ("gaps_", put(slice(None), 255)),
        ("gap_starts_", put(-1, BEYOND)),
        ("label_starts_", put(-1, BEYOND)),
        ("labels_of_", put(0, 2**16 - 1)),
        ("starts_", lambda starts: starts.sort() or starts.__setitem__(slice(None), starts[::-1].copy())),
    ],
)
def test_postings_of_neighbors_beyond_the_documents_are_refused(saved, tmp_path, key, change):
    check_refused(saved["neighbors"], key, change, tmp_path / "forged")


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("first_child_", put(0, 0)),  # a cycle: the root is its own child
        ("first_child_", put(slice(None), 0)),
        ("last_child_", put(0, BEYOND)),
        ("last_child_", put(-1, 1)),
        ("first_child_", put(0, -BEYOND)),
        ("label_", put(-1, BEYOND)),
        ("label_", put(-1, 12)),
        ("nodes_", put(0, 2**16 - 1)),
        ("starts_", put(-1, BEYOND)),
        ("roots_", put(0, BEYOND)),
    ],
)
def test_label_trees_with_cycles_or_nodes_out_of_range_are_refused(saved, tmp_path, key, change):
    check_refused(saved["label_tree"], key, change, tmp_path / "forged")
