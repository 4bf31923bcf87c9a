"""Mutators of the labels of a model: lines that are no labels, lengths that are off, hierarchies that are none."""

import numpy as np

from tests.fuzz.mutators.array_file import ArrayFile
from tests.fuzz.mutators.subject import Subject

LINES, ARRAYS = "labels.jsonl", "labels.safetensors"
ODD_LINES = [
    b"\n", b"{}\n", b"[]\n", b"null\n", b"3\n", b'"label"\n', b'{"label": 3}\n', b'{"label": null}\n',
    b'{"label": ""}\n', b'{"label": ["a"]}\n', b'{"label": "a", "alt": 3}\n', b'{"label": "a", "alt": [3]}\n',
    b'{"label": "a", "alt": "b"}\n', b'{"label": "a", "alt": {"b": 1}}\n', b'{"label": "a", "description": ["b"]}\n',
    b'{"label": "a", "description": "\\u0000"}\n', b'{"label": "\\ud800"}\n',
    b'{"label": "\xff"}\n', b'{"label": "a"\n', b"{\n", b'{"label": "a\\nb\\u0000"}\n', b'{"label": NaN}\n',
    b"[" * 5000 + b"]" * 5000 + b"\n", b'{"label": "' + b"x" * 10**5 + b'"}\n', b'{"label": "a", "label": "b"}\n',
    b'{"label": "<script>"}\n', b"", b'{"label": "a"}', b'{"label": "a"}, {"label": "b"}\n',
]  # fmt: skip


def label_lines(subject: Subject) -> str:
    """Some lines are odd, missing or twice; their ends follow or do not."""
    content, rng = subject.files.get(LINES), subject.rng
    if not content:
        return ""
    lines, done = content.splitlines(keepends=True), []
    for _ in range(rng.randint(1, 3)):
        at, how = rng.randrange(len(lines) + 1), rng.random()
        if how < 0.6 or at == len(lines):
            lines[at : at + 1] = [rng.choice(ODD_LINES)]
            done.append(f"line {at} {lines[at][:30]!r}")
        elif how < 0.8:
            del lines[at]
            done.append(f"line {at} removed")
        else:
            lines[at:at] = [rng.choice(lines)]
            done.append(f"line {at} copied from another")
        lines = lines or [b""]
    subject.files[LINES] = b"".join(lines)
    file = ArrayFile.read(subject.files.get(ARRAYS))
    if file is not None and rng.random() < 0.7:
        file.arrays["line_ends"] = np.cumsum([len(line) for line in lines]).astype(np.int64)
        subject.files[ARRAYS] = file.write()
        done.append("ends redone")
    return f"{LINES}: {', '.join(done)}"


def label_hierarchy(subject: Subject) -> str:
    """Edges with a cycle, out of range, twice, or far too many."""
    file, rng = ArrayFile.read(subject.files.get(ARRAYS)), subject.rng
    if file is None or "line_ends" not in file.arrays:
        return ""
    n = len(file.arrays["line_ends"])
    edges = [tuple(edge) for edge in file.arrays.get("hierarchy", np.zeros((0, 2), np.int32)).reshape(-1, 2).tolist()]
    odd = {
        "a cycle of one": [*edges, (1, 1)], "a cycle of two": [*edges, (0, 1), (1, 0)],
        "out of range": [*edges, (n, 0)], "parent out of range": [*edges, (0, n)],
        "negative": [*edges, (-1, 0), (0, -1)], "twice": edges + edges, "huge": [*edges, (2**31 - 1, 0)],
        "a chain": [(i + 1, i) for i in range(n - 1)], "a ring": [((i + 1) % n, i) for i in range(n)],
        "all pairs": [(i, j) for i in range(n) for j in range(i)], "many": edges * 1000,
        "least": [(-(2**31), -(2**31))],
    }  # fmt: skip
    how = rng.choice(sorted(odd))
    file.arrays["hierarchy"] = np.array(odd[how], np.int64).astype(np.int32).reshape(-1, 2)
    subject.files[ARRAYS] = file.write()
    return f"{ARRAYS} hierarchy: {how}"


def label_arrays(subject: Subject) -> str:
    """Where lines end, how often labels were seen, and what else is beside them."""
    file, rng = ArrayFile.read(subject.files.get(ARRAYS)), subject.rng
    if file is None or not file.arrays:
        return ""
    key = rng.choice(sorted(file.arrays))
    array = file.arrays[key]
    size = len(subject.files.get(LINES) or b"")
    odd = {
        "off by one": array + 1 if array.dtype.kind != "b" else ~array, "reversed": array[::-1],
        "negative": -np.abs(array.astype(np.int64)),
        "beyond": np.full_like(array, min(size + 1, np.iinfo(array.dtype).max if array.dtype.kind == "i" else 1)),
        "all the last": np.repeat(array[-1:], len(array), axis=0), "shorter": array[:-1],
        "longer": np.concatenate([array, array]), "none": array[:0], "floats": array.astype(np.float64),
        "scalar": array.reshape(-1)[:1].reshape(()) if array.size else array,
    }  # fmt: skip
    how = rng.choice(sorted(odd))
    file.arrays[key] = np.ascontiguousarray(odd[how])
    subject.files[ARRAYS] = file.write()
    return f"{ARRAYS} {key}: {how}"


MUTATORS = {mutator.__name__: mutator for mutator in (label_lines, label_hierarchy, label_arrays)}
