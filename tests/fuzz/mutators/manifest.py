"""Mutators of ``model.json``: values of other types and sizes, keys missing or twice, parts in wrong places."""

from collections.abc import Iterator
from copy import deepcopy
from random import Random
from typing import Any

from labelspace.models.registry import METHODS
from tests.fuzz.mutators.subject import Subject

DEEP = 100_000
Path = tuple[Any, ...]
ODD: list[Any] = [
    None, True, False, 0, 1, -1, 2, 1000, 10**9, 2**31, 2**63, -(2**63), 10**30, 0.5, -0.0, 1e308, float("nan"),
    float("inf"), "", "x", "\0", "\ud800", "é" * 20_000, "../model", "/etc/passwd", "name", [], {}, [[]], [0], [None],
    [-1, -1], ["a"] * 1000, {"a": 1}, {"value": 1}, {"array": "float32 [1]"}, {"sparse": "csr", "shape": [1, 1]},
    {"sparse": "csr", "shape": [10**9, 10**9]}, {"list": []}, {"dict": {}}, {"state": {}}, {"fields": {}},
    {"state": {}, "name": "popular", "params": {}}, {"list": [{"value": 1}] * 50},
]  # fmt: skip


def paths(value: Any, path: Path = ()) -> Iterator[Path]:  # noqa: ANN401 - any JSON
    """Where every value stands, branches included."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from paths(item, (*path, key))


def get(value: Any, path: Path) -> Any:  # noqa: ANN401 - any JSON
    for key in path:
        value = value[key]
    return value


def put(value: Any, path: Path, new: Any) -> None:  # noqa: ANN401 - any JSON
    get(value, path[:-1])[path[-1]] = new


def some_path(manifest: dict[str, Any], rng: Random) -> Path:
    """A place; those of the model and the features more often than those of the files and versions."""
    every = list(paths(manifest))
    state = [path for path in every if path[0] in ("model", "features", "columns", "method")]
    return rng.choice(state if state and rng.random() < 0.85 else every)


def shown(path: Path) -> str:
    return "/".join(map(str, path))


def replace_value(subject: Subject) -> str:
    manifest = subject.manifest()
    if not manifest:
        return ""
    path, new = some_path(manifest, subject.rng), deepcopy(subject.rng.choice(ODD))
    old = get(manifest, path)
    put(manifest, path, new)
    subject.put_manifest(manifest)
    return f"model.json {shown(path)}: {str(old)[:40]!r} became {str(new)[:40]!r}"


def change_number(subject: Subject) -> str:
    """A number or a parameter gets another value of the same type."""
    manifest = subject.manifest()
    numbers = [p for p in paths(manifest or {}) if isinstance(get(manifest, p), (int, float)) and p[0] != "checksum"]
    if not numbers:
        return ""
    path = subject.rng.choice(numbers)
    old = get(manifest, path)
    near = [0, 1, -1, 2, 3, 7, 64, 1000, 10**6, 10**9, 2**31 - 1, 2**31, 2**63 - 1, 2**63, -(2**31), 10**20]
    near += [old + 1, old - 1, old * 2, -old, old * 1000]
    new = subject.rng.choice(near if isinstance(old, int) else [*near, 1e-300, 1e300, float("nan"), float("-inf")])
    put(manifest, path, new)
    subject.put_manifest(manifest)
    return f"model.json {shown(path)}: {old} became {new}"


def change_parameter(subject: Subject) -> str:
    """A declared parameter of any part is absurd."""
    manifest = subject.manifest()
    given = [path for path in paths(manifest or {}) if len(path) > 1 and path[-2] == "params"]
    if not given:
        return ""
    path = subject.rng.choice(given)
    large = [10**9, 2**31, 2**63, 10**30, -1, 0, 1e300, float("nan")]
    new = subject.rng.choice(
        [*large, "", "auto", "none", "chars", "x" * 5000, None, True, [], {}, "1,2,3", "999999999"]
    )
    put(manifest, path, new)
    subject.put_manifest(manifest)
    return f"model.json {shown(path)}: {str(new)[:40]!r}"


def remove_key(subject: Subject) -> str:
    manifest = subject.manifest()
    if not manifest:
        return ""
    path = some_path(manifest, subject.rng)
    del get(manifest, path[:-1])[path[-1]]
    subject.put_manifest(manifest)
    return f"model.json {shown(path)}: removed"


def add_key(subject: Subject) -> str:
    manifest = subject.manifest()
    if not manifest:
        return ""
    places = [path for path in [(), *paths(manifest)] if isinstance(get(manifest, path), (dict, list))]
    path, new = subject.rng.choice(places), deepcopy(subject.rng.choice(ODD))
    place = get(manifest, path)
    if isinstance(place, list):
        place.insert(subject.rng.randint(0, len(place)), deepcopy(subject.rng.choice(place)) if place else new)
        key = "an item"
    else:
        key = subject.rng.choice(["more", "", "value", "state", "name", "array", "__class__", "columns", "features"])
        place[key] = new
    subject.put_manifest(manifest)
    return f"model.json {shown(path)}: {key} more"


def swap_values(subject: Subject) -> str:
    """Two values change places: parts that are well-formed, where they do not belong."""
    manifest = subject.manifest()
    if not manifest:
        return ""
    one, other = some_path(manifest, subject.rng), some_path(manifest, subject.rng)
    a, b = deepcopy(get(manifest, one)), deepcopy(get(manifest, other))
    put(manifest, one, b)
    try:
        put(manifest, other, a)
    except (LookupError, TypeError):
        pass  # the one was inside the other
    subject.put_manifest(manifest)
    return f"model.json {shown(one)} and {shown(other)}: swapped"


def change_name(subject: Subject) -> str:
    """The name of the method or of a part is another's."""
    manifest = subject.manifest()
    names = [path for path in paths(manifest or {}) if path[-1] in ("name", "method", "kind", "storage", "sparse")]
    if not names:
        return ""
    path = subject.rng.choice(names)
    others = [
        *METHODS,
        "exact",
        "quantized",
        "approximate",
        "ball",
        "tfidf",
        "hashing",
        "ivf",
        "hnsw",
        "int8",
        "fp16",
        "csr",
        "csc",
    ]
    new = subject.rng.choice(
        [*others, "", "os.system", "labelspace.models.baselines:Popular", "../x", None, 3, ["exact"]]
    )
    put(manifest, path, new)
    if path == ("method",) or subject.rng.random() < 0.3:
        manifest["method"] = new
    subject.put_manifest(manifest)
    return f"model.json {shown(path)}: {new!r}"


def transplant_part(subject: Subject) -> str:
    """A part of another model's manifest, or all of it with these files."""
    manifest = subject.manifest()
    donor = Subject(dict(subject.donor), {}, subject.rng).manifest()
    if not manifest or not donor:
        return ""
    shared = sorted((path for path in paths(manifest) if _has(donor, path)), key=str)
    if not shared:
        return ""
    path = subject.rng.choice(shared)
    put(manifest, path, deepcopy(get(donor, path)))
    subject.put_manifest(manifest)
    return f"model.json {shown(path)}: that of another model"


def manifest_text(subject: Subject) -> str:
    """What only text can say."""
    content = subject.files.get("model.json")
    if not content:
        return ""
    text, rng = content.decode(errors="replace"), subject.rng
    odd = {
        "deep lists": "[" * DEEP + "]" * DEEP,
        "deep state": text.replace('"state": {', '"state": {"a":' * 2000 + "{", 1),
        "deep value": text.replace('"value": ', '"value": ' + "[" * 3000 + "]" * 3000 + ', "was": ', 1),
        "cut": text[: rng.randrange(len(text))], "list": f"[{text}]", "null": "null", "number": "2", "empty": "",
        "NaN": text.replace('"value": ', '"value": NaN, "was": ', 1), "twice": text + text,
        "long number": text.replace('"value": ', f'"value": {"9" * 5000}, "was": ', 1),
        "key twice": text.replace('"model": {', '"model": {"state": {}, ', 1),
        "format twice": text.replace("{", '{"format": 1, ', 1), "byte order mark": "\ufeff" + text,
        "state twice": text.rstrip()[:-1] + ', "model": {"name": "popular", "params": {}, "state": {}}}',
        "surrogate": text.replace('"name": "', '"name": "\\ud800', 1),
        "format": text.replace('"format": ', '"format": 9', 1),
    }  # fmt: skip
    how = rng.choice(sorted(odd))
    subject.files["model.json"] = odd[how].encode(errors="replace")
    return f"model.json: {how}"


def _has(value: Any, path: Path) -> bool:  # noqa: ANN401 - any JSON
    try:
        get(value, path)
    except (LookupError, TypeError):
        return False
    return True


MUTATORS = {
    mutator.__name__: mutator
    for mutator in (
        replace_value, change_number, change_parameter, remove_key, add_key, swap_values, change_name, transplant_part,
        manifest_text,
    )
}  # fmt: skip
