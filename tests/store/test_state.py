from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.errors import ModelError, NotFittedError
from labelspace.estimator import Estimator, Stateful, learned, param
from labelspace.estimator.parameter_constraints import anything, integer
from labelspace.estimator.state_constraints import array, named_parts, part, parts, plain, sparse
from labelspace.store import LoadedBundle, ModelBundle, pack, unpack


@dataclass(frozen=True)
class Leaf:
    values: Annotated[np.ndarray, array("float64", "n")]
    depth: Annotated[int, plain(integer(0))]


class Pair(NamedTuple):
    left: Annotated[np.ndarray, array("float64", "n_left")]
    right: Annotated[np.ndarray, array("float64", "n_right")]


class Counter(Stateful):
    name = "counter"
    counts: np.ndarray = learned(array("int64", "n"))

    def files(self):
        return {"bin": lambda path: path.write_bytes(b"seven")}

    def read_files(self, path_of):
        self.content = path_of("bin").read_bytes()


class Whole(Estimator):
    name = "whole"
    size: int = param(3, integer(1), "Size.")
    matrix_: sp.csr_matrix = learned(sparse("float32", "n_rows", "n_columns"))
    leaf_: Leaf = learned(part(Leaf))
    pair_: Pair = learned(part(Pair))
    counters_: list[Counter] = learned(parts({"counter": Counter}.__getitem__, "n_counters"))
    by_name_: dict[str, Counter] = learned(named_parts(Counter))
    plain_: dict = learned(plain(anything()))


def counter(n):
    made = Counter()
    made.counts = np.arange(n)
    return made


@pytest.fixture
def fitted():
    model = Whole(size=np.int64(5))
    model.matrix_ = sp.random(4, 6, 0.4, format="csr", dtype=np.float32, random_state=1)
    model.leaf_, model.pair_ = Leaf(np.ones(2), 7), Pair(np.zeros(1), np.ones(3))
    model.counters_, model.by_name_ = [counter(2), counter(3)], {"a": counter(4)}
    model.plain_ = {"a": [1, 2], "b": None}
    return model


def test_whatever_declares_its_state_comes_back(fitted, tmp_path):
    bundle = ModelBundle()
    packed = pack(fitted, bundle)
    assert set(bundle.arrays) >= {
        "matrix_.indptr",
        "leaf_/values",
        "pair_/right",
        "counters_/1/counts",
        "by_name_/a/counts",
    }
    assert set(bundle.files) == {"counters.0.bin", "counters.1.bin", "by_name.a.bin"}
    for name, write in bundle.files.items():
        write(tmp_path / name)
    loaded = unpack(packed, LoadedBundle(bundle.arrays, tmp_path.joinpath), Whole)
    assert loaded.get_params() == {"size": 5}
    assert type(loaded.size) is int, "a number of NumPy is saved as a plain one"
    assert (loaded.matrix_ != fitted.matrix_).nnz == 0
    assert loaded.leaf_.depth == 7
    assert np.array_equal(loaded.pair_.right, np.ones(3))
    assert [len(part.counts) for part in (*loaded.counters_, *loaded.by_name_.values())] == [2, 3, 4]
    assert loaded.counters_[0].content == b"seven"
    assert loaded.plain_ == fitted.plain_


def test_a_missing_field_or_unknown_parameter_is_refused(fitted):
    packed = pack(fitted, ModelBundle())
    broken = {**packed, "params": {"color": 1}}
    with pytest.raises(ModelError, match="saved whole must have parameters of this version.*no parameter 'color'"):
        unpack(broken, LoadedBundle({}, None), Whole)
    with pytest.raises(ModelError, match="must have the state matrix_, leaf_, .*, but has another"):
        unpack({**packed, "state": {}}, LoadedBundle({}, None), Whole)


def test_what_is_new_in_a_state_may_be_missing_in_an_old_one():
    class Old(Stateful):
        name = "part"
        size_: int = learned(plain(integer(0)))

    class New(Old):
        notes_: list | None = learned(plain(anything()), default=None)

    class Changed(Old):
        notes_: list = learned(plain(anything()))

    old = Old()
    old.size_ = 3
    packed = pack(old, ModelBundle())
    loaded = unpack(packed, LoadedBundle({}, None), New)
    assert (loaded.size_, loaded.notes_, loaded.is_fitted) == (3, None, True)
    with pytest.raises(ModelError, match="must have the state size_, notes_, but has another"):
        unpack(packed, LoadedBundle({}, None), Changed)


def test_nothing_is_saved_before_it_is_fitted(fitted):
    with pytest.raises(NotFittedError, match="whole must be fitted first"):
        pack(Whole(), ModelBundle())
    fitted.forget()
    assert not fitted.is_fitted
    assert fitted.size == 5
    with pytest.raises(AttributeError, match="no matrix_ before it is fitted"):
        _ = fitted.matrix_
