import os

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors import SafetensorError

from labelspace.errors import ModelError
from labelspace.training.checkpoints import Checkpoint, data_fingerprint

FINGERPRINT = {"params": {"learning_rate": 0.1, "random_state": 0}, "data": [1, 2, 3]}


def arrays(value=1.0):
    return {"a": np.full((2, 3), value, np.float32), "b": np.zeros(0), "c": np.array([value * 7.0])}


def test_a_state_comes_back_in_the_arrays_it_is_to_fill(tmp_path):
    folder, values = tmp_path / "not" / "there", {"done": 3, "scores": [0.1, 1 / 3]}
    assert Checkpoint(folder, FINGERPRINT).read(arrays()) is None
    Checkpoint(folder, FINGERPRINT).write(arrays(2.5), values)
    into = arrays(0)
    array = into["a"]
    assert Checkpoint(folder, FINGERPRINT).read(into) == values
    assert into["a"] is array
    assert all(np.array_equal(into[key], value) for key, value in arrays(2.5).items())
    assert os.listdir(folder) == ["checkpoint.safetensors"]


def test_states_of_two_names_are_saved_side_by_side(tmp_path):
    for name, value in (("checkpoint", 1), ("best", 2)):
        Checkpoint(tmp_path, FINGERPRINT, name).write(arrays(value), {"done": value})
    for name, value in (("checkpoint", 1), ("best", 2)):
        into = arrays(0)
        assert Checkpoint(tmp_path, FINGERPRINT, name).read(into) == {"done": value}
        assert into["a"][0, 0] == value


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), SafetensorError("I/O error"), KeyboardInterrupt()]
)
def test_a_failing_write_leaves_the_state_before(tmp_path, monkeypatch, error):
    checkpoint = Checkpoint(tmp_path, FINGERPRINT)
    checkpoint.write(arrays(1), {"done": 1})

    def fail(tensors, path, metadata):
        path.write_bytes(b"half")
        raise error

    monkeypatch.setattr("safetensors.numpy.save_file", fail)
    if isinstance(error, KeyboardInterrupt):
        with pytest.raises(KeyboardInterrupt):
            checkpoint.write(arrays(2), {"done": 2})
    else:
        reason = getattr(error, "strerror", None) or str(error)
        with pytest.raises(ModelError, match=f"must be written to .* but that failed .{reason}.; free some space or"):
            checkpoint.write(arrays(2), {"done": 2})
        assert os.listdir(tmp_path) == ["checkpoint.safetensors"]
    into = arrays(0)
    assert checkpoint.read(into) == {"done": 1}
    assert into["a"][0, 0] == 1


def test_a_failing_rename_leaves_the_state_before(tmp_path, monkeypatch):
    checkpoint = Checkpoint(tmp_path, FINGERPRINT)
    checkpoint.write(arrays(1), {"done": 1})

    def fail(*paths):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(ModelError, match="Permission denied"):
        checkpoint.write(arrays(2), {"done": 2})
    assert checkpoint.read(arrays()) == {"done": 1}
    assert os.listdir(tmp_path) == ["checkpoint.safetensors"]


@pytest.mark.parametrize(
    "fingerprint",
    [{**FINGERPRINT, "data": [1, 2, 4]}, {**FINGERPRINT, "params": {"learning_rate": 0.2, "random_state": 0}}, {}],
)
def test_the_state_of_another_training_is_refused_and_left(tmp_path, fingerprint):
    Checkpoint(tmp_path, FINGERPRINT).write(arrays(1), {"done": 1})
    into = arrays(0)
    with pytest.raises(
        ModelError, match="^a checkpoint must be of the same data and parameters, but .* is of others; delete it, or"
    ):
        Checkpoint(tmp_path, fingerprint).read(into)
    assert not into["a"].any(), "nothing is filled"
    assert Checkpoint(tmp_path, FINGERPRINT).read(into) == {"done": 1}


def test_the_order_of_parameters_does_not_matter(tmp_path):
    Checkpoint(tmp_path, FINGERPRINT).write(arrays(1), {"done": 1})
    assert Checkpoint(tmp_path, dict(reversed(FINGERPRINT.items()))).read(arrays()) == {"done": 1}


@pytest.mark.parametrize(
    "damage",
    [lambda content: content[:-3], lambda content: content[:5], lambda content: b"", lambda content: b"x" * 99],
    ids=["short", "very short", "empty", "foreign"],
)
def test_what_is_no_checkpoint_is_refused_in_one_line(tmp_path, damage):
    checkpoint = Checkpoint(tmp_path, FINGERPRINT)
    checkpoint.write(arrays(1), {"done": 1})
    checkpoint.path.write_bytes(damage(checkpoint.path.read_bytes()))
    with pytest.raises(ModelError, match="must be a checkpoint of this version, but cannot be read .*; delete it") as e:
        checkpoint.read(arrays())
    assert "\n" not in str(e.value)


def test_a_checkpoint_of_other_arrays_is_refused(tmp_path):
    from safetensors.numpy import save_file

    checkpoint = Checkpoint(tmp_path, FINGERPRINT)
    save_file({"a": np.ones(3)}, checkpoint.path)
    with pytest.raises(ModelError, match="cannot be read .'fingerprint'.; delete it to start again"):
        checkpoint.read(arrays())
    checkpoint.write({"a": np.ones((5, 5))}, {})
    for into in ({"a": np.ones((2, 3))}, {"z": np.ones(2)}):
        with pytest.raises(ModelError, match="cannot be read"):
            checkpoint.read(into)


def test_a_fingerprint_differs_where_matrices_differ():
    one = sp.csr_matrix(np.array([[1, 0, 2], [0, 3, 0]], np.float32))
    seen = {tuple(data_fingerprint(one))}
    other_value, other_column = one.copy(), one.copy()
    other_value.data[1] = 5
    other_column.indices[1] = 1
    wider = sp.csr_matrix((one.data, one.indices, one.indptr), shape=(2, 4))
    moved = sp.csr_matrix((one.data, one.indices, [0, 1, 3]), shape=(2, 3))
    for table in (other_value, other_column, wider, moved, sp.csr_matrix((2, 3), dtype=np.float32)):
        seen.add(tuple(data_fingerprint(table)))
    assert len(seen) == 6
    assert data_fingerprint(one, wider) == data_fingerprint(one) + data_fingerprint(wider)
    assert data_fingerprint(one) == data_fingerprint(one.copy())


def test_a_fingerprint_differs_where_texts_or_dense_matrices_differ():
    dense = np.arange(6, dtype=np.float32).reshape(2, 3)
    tables = (dense, dense[::-1], dense.T.reshape(2, 3), ["ab", "c"], ["a", "bc"], ["ab", "c", ""], ["\ud800", "c"], [])
    assert len({tuple(data_fingerprint(table)) for table in tables}) == len(tables)
    assert data_fingerprint(dense, ["ab"]) == data_fingerprint(dense.copy(), ("ab",))


def test_a_file_in_place_of_the_folder_is_one_clear_line(tmp_path):
    (tmp_path / "taken").write_text("a file")
    checkpoint = Checkpoint(tmp_path / "taken", FINGERPRINT)
    assert checkpoint.read(arrays()) is None
    with pytest.raises(ModelError, match="must be written to .*, but that failed .*; free some space or give another"):
        checkpoint.write(arrays(), {})
