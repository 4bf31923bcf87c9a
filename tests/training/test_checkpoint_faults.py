"""Checkpoints, with a fault at every step and in every bit: the state before or the new one, or a refusal."""

import errno
import json
import os

import numpy as np
import pytest
from safetensors.numpy import save_file

from labelspace.errors import ModelError
from labelspace.training.checkpoints import Checkpoint, _checksum, _describe
from tests.store.faults import each_step, ended, failing, in_child, kills

FINGERPRINT = {"learning_rate": 0.1}


def arrays(value):
    return {"a": np.full((2, 3), value, np.float32), "empty": np.zeros((0, 2)), "number": np.array(value, np.int64)}


def state(checkpoint):
    """The number that was saved; a mix of two states is a failure."""
    into = arrays(-1)
    values = checkpoint.read(into)
    if values is None:
        return None
    assert all(np.array_equal(into[key], array) for key, array in arrays(values["epoch"]).items())
    return values["epoch"]


@pytest.fixture
def checkpoint(tmp_path):
    checkpoint = Checkpoint(tmp_path, FINGERPRINT)
    checkpoint.write(arrays(1), {"epoch": 1})
    return checkpoint


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_killed_at_every_step(checkpoint):
    seen = []
    for _ in kills(lambda: checkpoint.write(arrays(2), {"epoch": 2})):
        seen.append(state(checkpoint))
        checkpoint.write(arrays(1), {"epoch": 1})
        assert os.listdir(checkpoint.path.parent) == ["checkpoint.safetensors"]
    assert seen == sorted(seen)
    assert set(seen) == {1, 2}
    assert state(checkpoint) == 2


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_failing_at_any_step(checkpoint, number):
    failed = 0
    for faults in each_step(failing(number)):
        error = None
        with faults.installed():
            try:
                checkpoint.write(arrays(2), {"epoch": 2})
            except ModelError as raised:
                error = str(raised)
        assert state(checkpoint) == (1 if error else 2)
        if error:
            failed += 1
            assert f"({os.strerror(number)}); free some space" in error
            assert "\n" not in error
        if not faults.while_removing:
            assert os.listdir(checkpoint.path.parent) == ["checkpoint.safetensors"]
        checkpoint.write(arrays(1), {"epoch": 1})
        assert os.listdir(checkpoint.path.parent) == ["checkpoint.safetensors"]
    assert failed > 5


def test_any_flipped_bit_is_refused_and_nothing_is_filled(checkpoint):
    whole, into = checkpoint.path.read_bytes(), arrays(-1)
    for at in range(len(whole)):
        for bit in range(8) if at % 7 == 0 else (at % 8,):
            damaged = bytearray(whole)
            damaged[at] ^= 1 << bit
            checkpoint.path.write_bytes(damaged)
            with pytest.raises(ModelError, match="cannot be read .*; delete it to start again$"):
                checkpoint.read(into)
    assert all(np.array_equal(into[key], array) for key, array in arrays(-1).items())
    checkpoint.path.write_bytes(whole)
    assert state(checkpoint) == 1


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"a": np.ones((1, 3), np.float32)}, r"array 'a' is float32 \[1, 3\], not float32 \[2, 3\]"),  # would broadcast
        ({"a": np.ones((3, 2), np.float32)}, r"array 'a' is float32 \[3, 2\]"),
        ({"a": np.ones((2, 3), np.float64)}, "array 'a' is float64"),
        ({"number": np.ones(1, np.int64)}, r"array 'number' is int64 \[1\], not int64 \[\]"),
        ({"zzz": np.ones(1)}, "its arrays are others: 'zzz'"),
    ],
)
def test_other_arrays_are_refused_and_nothing_is_filled(checkpoint, change, problem):
    checkpoint.write({**arrays(1), **change}, {"epoch": 1})
    into = arrays(-1)
    with pytest.raises(ModelError, match=problem):
        checkpoint.read(into)
    assert all(np.array_equal(into[key], array) for key, array in arrays(-1).items())
    checkpoint.write(arrays(1), {"epoch": 1})
    with pytest.raises(ModelError, match="its arrays are others: 'more'"):
        checkpoint.read({**into, "more": np.ones(2)})


@pytest.mark.parametrize(
    "values", [[], 3, None, {"epoch": "1"}, {"epoch": True}, {"epoch": 1, "more": 2}, {}, {"epoch": 1.5}]
)
def test_values_of_other_types_are_refused(checkpoint, values):
    checkpoint.write(arrays(1), values)
    with pytest.raises(ModelError, match="its values are not those of a training"):
        checkpoint.read(arrays(1), {"epoch": 0})


@pytest.mark.parametrize("values", ["[" * 100_000, "nothing", '{"epoch": 1'])
def test_what_is_not_json_is_refused(checkpoint, values):
    metadata = {"fingerprint": checkpoint.fingerprint, "values": values}
    metadata["checksum"] = _checksum(metadata, _describe(arrays(1).items()))
    save_file(arrays(1), checkpoint.path, metadata)
    with pytest.raises(ModelError, match="cannot be read .*; delete it"):
        checkpoint.read(arrays(1))


def test_dtypes_that_numpy_has_not_are_refused(checkpoint):
    header = {"__metadata__": {"fingerprint": checkpoint.fingerprint, "values": "{}", "checksum": "0"}}
    for dtype, size in (("BF16", 2), ("F8_E4M3", 1)):
        about = {**header, "a": {"dtype": dtype, "shape": [1], "data_offsets": [0, size]}}
        content = json.dumps(about).encode()
        checkpoint.path.write_bytes(len(content).to_bytes(8, "little") + content + b"x" * size)
        with pytest.raises(ModelError, match="cannot be read .*; delete it"):
            checkpoint.read(arrays(1))


def test_arrays_in_any_memory_order_come_back(tmp_path):
    """safetensors writes the memory as it is, whatever the order of the axes."""
    array = np.arange(12.0).reshape(3, 4)
    for given in (np.asfortranarray(array), np.repeat(array, 2, axis=1)[:, ::2], array[::-1][::-1]):
        Checkpoint(tmp_path, FINGERPRINT).write({"a": given}, {})
        into = {"a": np.zeros((3, 4))}
        Checkpoint(tmp_path, FINGERPRINT).read(into)
        assert np.array_equal(into["a"], array)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_second_training_with_the_same_file_is_refused_until_the_first_ends(tmp_path):
    def second():
        with Checkpoint(tmp_path / "new", FINGERPRINT).in_use():
            pass

    with Checkpoint(tmp_path / "new", FINGERPRINT).in_use():
        with pytest.raises(ModelError, match="one training at a time, but another one uses .*; wait until it ends, or"):
            second()
        with Checkpoint(tmp_path / "new", FINGERPRINT, "tree-1").in_use():
            pass  # another file
    assert os.listdir(tmp_path / "new") == []
    assert ended(in_child(second))
