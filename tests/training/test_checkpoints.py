import os

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors import SafetensorError

from labelspace.errors import ModelError
from labelspace.training.checkpoints import Checkpoint, fingerprint

WHAT = {"params": {"rate": 0.1, "seed": 0}, "data": [1, 2, 3]}


def arrays(value=1.0):
    return {"a": np.full((2, 3), value, np.float32), "b": np.zeros(0), "c": np.array([value * 7.0])}


def test_a_state_comes_back_in_the_arrays_it_is_to_fill(tmp_path):
    folder, course = tmp_path / "not" / "there", {"done": 3, "accuracies": [0.1, 1 / 3]}
    assert Checkpoint(folder, WHAT).read(arrays()) is None
    Checkpoint(folder, WHAT).write(arrays(2.5), course)
    into = arrays(0)
    held = into["a"]
    assert Checkpoint(folder, WHAT).read(into) == course
    assert into["a"] is held
    assert all(np.array_equal(into[key], value) for key, value in arrays(2.5).items())
    assert os.listdir(folder) == ["checkpoint.safetensors"]


def test_states_of_two_names_stand_side_by_side(tmp_path):
    for name, value in (("checkpoint", 1), ("best", 2)):
        Checkpoint(tmp_path, WHAT, name).write(arrays(value), {"done": value})
    for name, value in (("checkpoint", 1), ("best", 2)):
        into = arrays(0)
        assert Checkpoint(tmp_path, WHAT, name).read(into) == {"done": value}
        assert into["a"][0, 0] == value


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), SafetensorError("I/O error"), KeyboardInterrupt()]
)
def test_a_failing_write_leaves_the_state_before(tmp_path, monkeypatch, error):
    checkpoint = Checkpoint(tmp_path, WHAT)
    checkpoint.write(arrays(1), {"done": 1})

    def fail(tensors, path, about):
        path.write_bytes(b"half")
        raise error

    monkeypatch.setattr("safetensors.numpy.save_file", fail)
    if isinstance(error, KeyboardInterrupt):
        with pytest.raises(KeyboardInterrupt):
            checkpoint.write(arrays(2), {"done": 2})
    else:
        said = getattr(error, "strerror", None) or str(error)
        with pytest.raises(ModelError, match=f"must be written to .* but that failed .{said}.; free some space or"):
            checkpoint.write(arrays(2), {"done": 2})
        assert os.listdir(tmp_path) == ["checkpoint.safetensors"]
    into = arrays(0)
    assert checkpoint.read(into) == {"done": 1}
    assert into["a"][0, 0] == 1


def test_a_failing_rename_leaves_the_state_before(tmp_path, monkeypatch):
    checkpoint = Checkpoint(tmp_path, WHAT)
    checkpoint.write(arrays(1), {"done": 1})

    def fail(*paths):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(ModelError, match="Permission denied"):
        checkpoint.write(arrays(2), {"done": 2})
    assert checkpoint.read(arrays()) == {"done": 1}
    assert os.listdir(tmp_path) == ["checkpoint.safetensors"]


@pytest.mark.parametrize("what", [{**WHAT, "data": [1, 2, 4]}, {**WHAT, "params": {"rate": 0.2, "seed": 0}}, {}])
def test_the_state_of_another_training_is_refused_and_left(tmp_path, what):
    Checkpoint(tmp_path, WHAT).write(arrays(1), {"done": 1})
    into = arrays(0)
    with pytest.raises(
        ModelError, match="^a checkpoint must be of the same data and parameters, but .* is of others; delete it, or"
    ):
        Checkpoint(tmp_path, what).read(into)
    assert not into["a"].any(), "nothing is filled"
    assert Checkpoint(tmp_path, WHAT).read(into) == {"done": 1}


def test_the_order_of_parameters_does_not_matter(tmp_path):
    Checkpoint(tmp_path, WHAT).write(arrays(1), {"done": 1})
    assert Checkpoint(tmp_path, dict(reversed(WHAT.items()))).read(arrays()) == {"done": 1}


@pytest.mark.parametrize(
    "damage",
    [lambda whole: whole[:-3], lambda whole: whole[:5], lambda whole: b"", lambda whole: b"x" * 99],
    ids=["short", "very short", "empty", "foreign"],
)
def test_what_is_no_checkpoint_is_refused_in_one_line(tmp_path, damage):
    checkpoint = Checkpoint(tmp_path, WHAT)
    checkpoint.write(arrays(1), {"done": 1})
    checkpoint.path.write_bytes(damage(checkpoint.path.read_bytes()))
    with pytest.raises(ModelError, match="must be a checkpoint of this version, but cannot be read .*; delete it") as e:
        checkpoint.read(arrays())
    assert "\n" not in str(e.value)


def test_a_checkpoint_of_other_arrays_is_refused(tmp_path):
    from safetensors.numpy import save_file

    checkpoint = Checkpoint(tmp_path, WHAT)
    save_file({"a": np.ones(3)}, checkpoint.path)
    with pytest.raises(ModelError, match="cannot be read .'what'.; delete it to begin anew"):
        checkpoint.read(arrays())
    checkpoint.write({"a": np.ones((5, 5))}, {})
    for into in ({"a": np.ones((2, 3))}, {"z": np.ones(2)}):
        with pytest.raises(ModelError, match="cannot be read"):
            checkpoint.read(into)


def test_a_fingerprint_tells_tables_apart():
    one = sp.csr_matrix(np.array([[1, 0, 2], [0, 3, 0]], np.float32))
    seen = {tuple(fingerprint(one))}
    other_value, other_place = one.copy(), one.copy()
    other_value.data[1] = 5
    other_place.indices[1] = 1
    wider = sp.csr_matrix((one.data, one.indices, one.indptr), shape=(2, 4))
    moved = sp.csr_matrix((one.data, one.indices, [0, 1, 3]), shape=(2, 3))
    for table in (other_value, other_place, wider, moved, sp.csr_matrix((2, 3), dtype=np.float32)):
        seen.add(tuple(fingerprint(table)))
    assert len(seen) == 6
    assert fingerprint(one, wider) == fingerprint(one) + fingerprint(wider)
    assert fingerprint(one) == fingerprint(one.copy())


def test_a_file_in_the_place_of_the_folder_is_one_clear_line(tmp_path):
    (tmp_path / "taken").write_text("a file")
    checkpoint = Checkpoint(tmp_path / "taken", WHAT)
    assert checkpoint.read(arrays()) is None
    with pytest.raises(ModelError, match="must be written to .*, but that failed .*; free some space or give another"):
        checkpoint.write(arrays(), {})
