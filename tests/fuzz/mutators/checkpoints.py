"""Mutators of what a checkpoint says beside its arrays: the fingerprint of its training, and its values."""

import json

from tests.fuzz.mutators.array_file import ArrayFile
from tests.fuzz.mutators.manifest import ODD, paths, put
from tests.fuzz.mutators.subject import Subject


def checkpoint_values(subject: Subject) -> str:
    name = subject.some_file(".safetensors")
    file = ArrayFile.read(subject.files[name]) if name else None
    if file is None or "values" not in file.metadata:
        return ""
    values, rng = json.loads(file.metadata["values"]), subject.rng
    where = list(paths(values))
    path = rng.choice(where) if where and rng.random() < 0.8 else ()
    new = rng.choice([*ODD, *range(6), [0.5] * 3, [float("nan")]])
    if path:
        put(values, path, new)
    else:
        values = new
    file.metadata["values"] = json.dumps(values)
    subject.files[name] = file.write()
    return f"{name} values {path}: {str(new)[:40]!r}"


def checkpoint_metadata(subject: Subject) -> str:
    name = subject.some_file(".safetensors")
    file = ArrayFile.read(subject.files[name]) if name else None
    if file is None or not file.metadata:
        return ""
    rng = subject.rng
    key = rng.choice(sorted(file.metadata))
    odd = ["", "null", "[]", "{}", "3", "{", "NaN", "[" * 5000, '{"epoch": 1}', None, 3, [], "x" * 10**5]
    new = rng.choice(odd)
    if rng.random() < 0.2:
        del file.metadata[key]
    else:
        file.metadata[key] = new
    subject.files[name] = file.write()
    return f"{name} metadata {key}: {str(new)[:40]!r}"


MUTATORS = {mutator.__name__: mutator for mutator in (checkpoint_values, checkpoint_metadata)}
