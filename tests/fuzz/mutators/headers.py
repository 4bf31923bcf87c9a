"""Mutators of the header of safetensors files: offsets, shapes, types and JSON that do not fit the data."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

from tests.fuzz.mutators.array_file import joined, split
from tests.fuzz.mutators.subject import Subject

DEEP = 100_000


def entries(edit: Callable[[dict[str, Any], int, Random], None]) -> Callable[[Subject], str]:
    """A mutator that edits the header's entry of one array."""

    def mutator(subject: Subject) -> str:
        name = subject.some_file(".safetensors")
        try:
            header, payload = split(subject.files[name]) if name else ({}, b"")
            keys = [key for key in header if key != "__metadata__"]
            key = subject.rng.choice(keys) if keys else ""
            before = json.dumps(header[key])
            edit(header[key], len(payload), subject.rng)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return ""
        subject.files[name] = joined(json.dumps(header).encode(), payload)
        return f"{name} header {key}: {before} became {json.dumps(header[key])[:200]}"

    return mutator


def header_offsets(entry: dict[str, Any], size: int, rng: Random) -> None:
    start, stop = entry["data_offsets"]
    n = stop - start
    entry["data_offsets"] = rng.choice([
        [0, n], [start + 1, stop + 1], [start - 1, stop - 1], [stop, start], [size, size + n], [-n, 0], [-8, n - 8],
        [start, stop + 8], [start, start], [2**63, 2**63 + n], [start, 2**63], [size - n + 1, size + 1], [start],
        [start, stop, stop], [], None, "0", [str(start), str(stop)], [float(start), float(stop)], [None, None],
        [True, n], [1e308, 1e308], [-(2**63), -(2**63) + n], {"0": start, "1": stop},
    ])  # fmt: skip


def header_shape(entry: dict[str, Any], size: int, rng: Random) -> None:
    shape = entry["shape"]
    n = 1
    for length in shape:
        n *= length
    entry["shape"] = rng.choice([
        [-1], [-n], [n, -1], [-1, -n], [2**62, 4], [2**32, 2**32, n], [2**64, n], [n + 1], [n - 1], [0], [0, 2**62], [],
        [n, 1, 1], [1] * 70 + [n], [1] * 10_000, None, "3", [str(n)], [float(n)], [n + 0.5], [True] * 2, [None], [[n]],
        {"n": n}, [10**400], shape[::-1],
    ])  # fmt: skip


def header_dtype(entry: dict[str, Any], size: int, rng: Random) -> None:
    others = ["F64", "F32", "F16", "I64", "I32", "I8", "U8", "BOOL", "BF16", "F8_E4M3", "O", "object", "f4", "", "V8"]
    entry["dtype"] = rng.choice([*others, None, 3, ["F32"], {"F32": 1}, True, "F" * 10_000])


def header_entry(entry: dict[str, Any], size: int, rng: Random) -> None:
    if rng.random() < 0.5:
        del entry[rng.choice(sorted(entry))]
    else:
        entry[rng.choice(["more", "data", "offset", "__class__"])] = rng.choice([1, None, "x", []])


def header_json(subject: Subject) -> str:
    """The header as text that is no header."""
    name = subject.some_file(".safetensors")
    if name is None:
        return ""
    try:
        header, payload = split(subject.files[name])
    except (ValueError, RecursionError):
        return ""
    if not isinstance(header, dict):  # another mutation did that
        return ""
    text = json.dumps(header)
    rng = subject.rng
    odd = {
        "cut": text[: rng.randrange(len(text))], "empty": "", "list": "[]", "null": "null", "number": "3",
        "string": '"x"', "deep lists": "[" * DEEP + "]" * DEEP, "deep objects": '{"a":' * DEEP + "1" + "}" * DEEP,
        "entries are lists": json.dumps({key: [] for key in header}),
        "entries are null": json.dumps(dict.fromkeys(header)), "key twice": text[:-1] + ", " + text[1:],
        "metadata is a list": '{"__metadata__": [], ' + text[1:], "NaN": text.replace("[0, ", "[NaN, ", 1),
        "long number": text.replace("[0, ", f"[{'9' * 5000}, ", 1), "comment": "//" + text, "two": text + text,
        "surrogate": text.replace('"', '"\\ud800', 1),
    }  # fmt: skip
    how = rng.choice(sorted(odd))
    subject.files[name] = joined(odd[how].encode(), payload)
    return f"{name} header: {how}"


def header_bytes(subject: Subject) -> str:
    """The length of the header, its encoding, and how what follows is aligned."""
    name = subject.some_file(".safetensors")
    content = subject.files[name] if name else None
    if not content:
        return ""
    size, rng = int.from_bytes(content[:8], "little"), subject.rng
    lengths = [0, 1, size - 1, size + 1, size + 8, len(content), len(content) - 8, 2**31, 2**40, 2**63, 2**64 - 1]
    header, payload = content[8 : 8 + size], content[8 + size :]
    length = rng.choice(lengths)
    shift = rng.randint(1, 7)
    odd = {
        f"length {length}": length.to_bytes(8, "little") + content[8:],
        f"unaligned by {shift}": joined(header + b" " * (-len(header) % 8 + shift), payload, align=False),
        "not UTF-8": joined(b"\xff\xfe" + header, payload),
        "byte order mark": joined(b"\xef\xbb\xbf" + header, payload), "zeros": joined(header + b"\0" * 8, payload),
        "no data": joined(header, b""), "cut": content[: rng.randrange(9)],
        "more data": content + b"\0" * rng.choice([1, 8, 4096]), "nothing": b"", "only a header": content[: 8 + size],
    }  # fmt: skip
    how = rng.choice(sorted(odd))
    subject.files[name] = odd[how]
    return f"{name} header: {how}"


MUTATORS = {edit.__name__: entries(edit) for edit in (header_offsets, header_shape, header_dtype, header_entry)}
MUTATORS |= {"header_json": header_json, "header_bytes": header_bytes}
