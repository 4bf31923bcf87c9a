"""Mutators of the arrays of safetensors files: the file stays well-formed, its content does not."""

from collections.abc import Callable
from random import Random

import numpy as np

from tests.fuzz.mutators.array_file import DTYPES, ArrayFile
from tests.fuzz.mutators.subject import Subject

MOST_ELEMENTS = 8
Edit = Callable[[np.ndarray, Random, ArrayFile], tuple[np.ndarray, str]]


def edits(edit: Edit) -> Callable[[Subject], str]:
    """A mutator that replaces one array by what ``edit`` makes of it."""

    def mutator(subject: Subject) -> str:
        found = subject.some_arrays()
        if found is None:
            return ""
        name, file = found
        key = some_key(file, subject.rng)
        file.arrays[key], done = edit(file.arrays[key].copy(), subject.rng, file)
        subject.files[name] = file.write()
        return f"{name} {key}: {done}"

    return mutator


def some_key(file: ArrayFile, rng: Random) -> str:
    """An array; those of integers more often, for they are what loops are led by."""
    whole = [key for key, array in file.arrays.items() if array.dtype.kind in "iu"]
    return rng.choice(whole if whole and rng.random() < 0.6 else list(file.arrays))


def interesting(array: np.ndarray, rng: Random, file: ArrayFile) -> float | int:
    """A value at a limit: of the type, of the lengths of arrays, of what is there."""
    if array.dtype.kind == "f":
        largest = float(np.finfo(array.dtype).max)
        return rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, largest, -largest, 1e-40, rng.gauss(0, 1e6)])
    if array.dtype.kind == "b":
        return rng.randrange(2)
    limits = np.iinfo(array.dtype)
    sizes = [size for other in file.arrays.values() for size in (*other.shape, other.size)] or [0]
    size, own = rng.choice(sizes), len(array) if array.ndim else 1
    there = int(array.max()) if array.size else 0
    near = [
        0,
        -1,
        1,
        size - 1,
        size,
        size + 1,
        own,
        own + 1,
        there + 1,
        -size,
        10**6,
        2**31 - 1,
        limits.max,
        limits.min,
    ]
    return int(np.clip(rng.choice([*near, rng.randint(limits.min, limits.max)]), limits.min, limits.max))


def set_elements(array: np.ndarray, rng: Random, file: ArrayFile) -> tuple[np.ndarray, str]:
    flat, done = array.reshape(-1), []
    for _ in range(rng.randint(1, MOST_ELEMENTS) if array.size else 0):
        # The first and the last are where limits are read.
        at = rng.choice([0, len(flat) - 1, rng.randrange(len(flat)), rng.randrange(len(flat))])
        flat[at] = interesting(array, rng, file)
        done.append(f"[{at}]={flat[at]}")
    return array, " ".join(done)


def set_all(array: np.ndarray, rng: Random, file: ArrayFile) -> tuple[np.ndarray, str]:
    value = interesting(array, rng, file)
    array[...] = value
    return array, f"all={value}"


def shift(array: np.ndarray, rng: Random, file: ArrayFile) -> tuple[np.ndarray, str]:
    if array.dtype.kind == "b":
        return ~array, "inverted"
    step = array.dtype.type(rng.choice([1, 2]))
    with np.errstate(all="ignore"):
        return (array + step, f"+{step}") if rng.random() < 0.5 else (array - step, f"-{step}")


def scale(array: np.ndarray, rng: Random, file: ArrayFile) -> tuple[np.ndarray, str]:
    by = rng.choice([-1, 0, 2, 1000, 1e30])
    with np.errstate(all="ignore"):
        return (array.astype(np.float64) * by).astype(array.dtype), f"*{by:g}"


def reorder(array: np.ndarray, rng: Random, file: ArrayFile) -> tuple[np.ndarray, str]:
    flat = array.reshape(-1)
    how = rng.choice(["sorted", "reversed", "shuffled", "rolled", "swapped"])
    if how == "swapped" and array.size:
        i, j = rng.randrange(len(flat)), rng.randrange(len(flat))
        flat[[i, j]] = flat[[j, i]]
        return array, f"swapped {i} {j}"
    orders = {
        "sorted": np.argsort(flat, kind="stable"), "reversed": np.arange(len(flat))[::-1],
        "shuffled": np.array(rng.sample(range(len(flat)), len(flat)), int), "rolled": np.roll(np.arange(len(flat)), 1),
    }  # fmt: skip
    return flat[orders.get(how, orders["rolled"])].reshape(array.shape), how


def duplicate(array: np.ndarray, rng: Random, file: ArrayFile) -> tuple[np.ndarray, str]:
    flat = array.reshape(-1)
    if not array.size:
        return array, "nothing to duplicate"
    i, j, n = rng.randrange(len(flat)), rng.randrange(len(flat)), rng.randint(1, len(flat))
    n = min(n, len(flat) - i, len(flat) - j)
    flat[j : j + n] = flat[i : i + n].copy()
    return array, f"[{j}:{j + n}]=[{i}:{i + n}]"


def resize(array: np.ndarray, rng: Random, file: ArrayFile) -> tuple[np.ndarray, str]:
    if not array.ndim:
        return array.reshape(1), "one axis"
    axis = rng.randrange(array.ndim)
    n = array.shape[axis]
    new = rng.choice([0, 1, n - 1, n + 1, n // 2, 2 * n, n + 1000])
    made = np.resize(array, (*array.shape[:axis], max(new, 0), *array.shape[axis + 1 :]))
    return made, f"axis {axis} from {n} to {max(new, 0)}"


def empty(array: np.ndarray, rng: Random, file: ArrayFile) -> tuple[np.ndarray, str]:
    shape = rng.choice([(0,), (0, *array.shape[1:]), (*array.shape[:-1], 0)])
    return np.zeros(shape, array.dtype), f"empty {shape}"


def reshape(array: np.ndarray, rng: Random, file: ArrayFile) -> tuple[np.ndarray, str]:
    n = array.size
    shape = rng.choice([array.shape[::-1], (n,), (1, n), (n, 1), (*array.shape, 1), (1,) * 32 + (n,), ()])
    return (array.reshape(-1)[:1].reshape(()) if shape == () and n else array.reshape(shape or (n,))), f"shape {shape}"


def retype(array: np.ndarray, rng: Random, file: ArrayFile) -> tuple[np.ndarray, str]:
    dtype = np.dtype(rng.choice(sorted(DTYPES.values())))
    with np.errstate(all="ignore"):
        return array.astype(dtype), f"as {dtype}"


def reinterpret(array: np.ndarray, rng: Random, file: ArrayFile) -> tuple[np.ndarray, str]:
    content = np.ascontiguousarray(array).tobytes()
    fitting = [code for code in sorted(DTYPES.values()) if len(content) % np.dtype(code).itemsize == 0]
    dtype = np.dtype(rng.choice(fitting))
    return np.frombuffer(content, dtype).copy(), f"bytes as {dtype}"


def raw_bytes(array: np.ndarray, rng: Random, file: ArrayFile) -> tuple[np.ndarray, str]:
    content = bytearray(np.ascontiguousarray(array).tobytes())
    for _ in range(rng.randint(1, MOST_ELEMENTS) if content else 0):
        content[rng.randrange(len(content))] = rng.randrange(256)  # of a bool too: it may be neither 0 nor 1
    return np.frombuffer(bytes(content), array.dtype).reshape(array.shape), "bytes"


def drop_array(subject: Subject) -> str:
    found = subject.some_arrays()
    if found is None:
        return ""
    name, file = found
    key = some_key(file, subject.rng)
    del file.arrays[key]
    subject.files[name] = file.write()
    return f"{name} {key}: dropped"


def add_array(subject: Subject) -> str:
    found = subject.some_arrays()
    if found is None:
        return ""
    name, file = found
    key = subject.rng.choice(["more", "", "model", "__metadata__x", some_key(file, subject.rng) + "/more"])
    file.arrays[key] = np.zeros(subject.rng.choice([0, 1, 1000]), np.float32)
    subject.files[name] = file.write()
    return f"{name} {key!r}: added"


def swap_arrays(subject: Subject) -> str:
    found = subject.some_arrays()
    if found is None:
        return ""
    name, file = found
    one, other = some_key(file, subject.rng), some_key(file, subject.rng)
    file.arrays[one], file.arrays[other] = file.arrays[other], file.arrays[one]
    subject.files[name] = file.write()
    return f"{name} {one} and {other}: swapped"


def transplant_array(subject: Subject) -> str:
    """An array of another model under the same key, or under any."""
    found = subject.some_arrays()
    donors = [
        ArrayFile.read(content) for name, content in sorted(subject.donor.items()) if name.endswith(".safetensors")
    ]
    given = {key: array for file in donors if file is not None for key, array in file.arrays.items()}
    if found is None or not given:
        return ""
    name, file = found
    shared = sorted(set(given) & set(file.arrays))
    key = subject.rng.choice(shared) if shared and subject.rng.random() < 0.7 else some_key(file, subject.rng)
    source = key if key in shared else subject.rng.choice(sorted(given))
    file.arrays[key] = given[source]
    subject.files[name] = file.write()
    return f"{name} {key}: that of another model's {source}"


def cut_all_arrays(subject: Subject) -> str:
    """All arrays of one length get another one, so that they still fit together."""
    found = subject.some_arrays()
    if found is None:
        return ""
    name, file = found
    lengths = sorted({len(array) for array in file.arrays.values() if array.ndim})
    if not lengths:
        return ""
    n = subject.rng.choice(lengths)
    new = max(0, subject.rng.choice([0, 1, n - 1, n + 1, 2 * n]))
    for key, array in file.arrays.items():
        if array.ndim and len(array) == n:
            file.arrays[key] = np.resize(array, (new, *array.shape[1:]))
    subject.files[name] = file.write()
    return f"{name}: all arrays of length {n} now of {new}"


_EDITS = (
    set_elements,
    set_all,
    shift,
    scale,
    reorder,
    duplicate,
    resize,
    empty,
    reshape,
    retype,
    reinterpret,
    raw_bytes,
)
_WHOLE = (drop_array, add_array, swap_arrays, transplant_array, cut_all_arrays)
MUTATORS = {edit.__name__: edits(edit) for edit in _EDITS} | {mutator.__name__: mutator for mutator in _WHOLE}
