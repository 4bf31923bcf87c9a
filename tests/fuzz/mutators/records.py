"""Mutators of data files by their text: cells, tokens, lines, quotes, numbers, encodings; also inside gzip."""

import gzip
import re
import zlib
from collections.abc import Callable
from random import Random

from tests.fuzz.mutators.subject import Subject

TOKEN = re.compile(rb"[A-Za-z_]+|-?\d+(?:\.\d+)?|\s+|.", re.DOTALL)
ODD_TOKENS = [
    b"", b"0", b"-1", b"1", b"99999999999999999999", b"2147483648", b"4294967296", b"1e400", b"-1e400", b"nan", b"inf",
    b"NaN", b"Infinity", b"1e-400", b"0x10", b"1_000", b"+1", b"1.5", b".", b"-", b":", b"::", b",", b",,", b"|", b"||",
    b"\t", b"\r", b"\n", b"\r\n", b"\0", b'"', b'""', b'"""', b"'", b"\\", b"\\u0000", b"\\ud800", b"[", b"]", b"{",
    b"}", b"[]", b"{}", b"null", b"true", b"[[]]", b'{"a": 1}', b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf",
    b"\xe2\x80\xa8", b"#", b">", b" > ", b"9" * 400, b"9" * 5000, b"x" * 100_000, b"[" * 5000, b'{"a":' * 5000, b"text",
    b"labels", b"features", b"id", b"label", b"alt", b"description",
]  # fmt: skip


def inside(edit: Callable[[bytes, Random], tuple[bytes, str]]) -> Callable[[Subject], str]:
    """A mutator of the content of a file, which is unpacked before and packed again where it is gzipped."""

    def mutator(subject: Subject) -> str:
        name = subject.some_file()
        content = subject.files[name] if name else None
        if not content:
            return ""
        packed = name.endswith(".gz")
        try:
            plain = gzip.decompress(content) if packed else content
        except (OSError, EOFError, zlib.error):
            return ""
        plain, done = edit(plain, subject.rng)
        subject.files[name] = gzip.compress(plain, 1, mtime=0) if packed else plain
        return f"{name}: {done}"

    return mutator


def change_tokens(content: bytes, rng: Random) -> tuple[bytes, str]:
    tokens, done = TOKEN.findall(content) or [b""], []
    for _ in range(rng.randint(1, 4)):
        at, new = rng.randrange(len(tokens)), rng.choice(ODD_TOKENS)
        tokens[at] = new if rng.random() < 0.6 else tokens[at] + new
        done.append(f"token {at} {new[:20]!r}")
    return b"".join(tokens), ", ".join(done)


def swap_tokens(content: bytes, rng: Random) -> tuple[bytes, str]:
    tokens = TOKEN.findall(content) or [b""]
    i, j = rng.randrange(len(tokens)), rng.randrange(len(tokens))
    tokens[i], tokens[j] = tokens[j], tokens[i]
    return b"".join(tokens), f"tokens {i} and {j} swapped"


def change_lines(content: bytes, rng: Random) -> tuple[bytes, str]:
    lines = content.splitlines(keepends=True) or [b""]
    at = rng.randrange(len(lines))
    how = rng.choice(["removed", "twice", "empty", "cut", "joined", "moved first", "many", "all empty"])
    if how == "removed":
        del lines[at]
    elif how == "twice":
        lines.insert(at, lines[at])
    elif how == "empty":
        lines[at] = b"\n"
    elif how == "cut":
        lines[at] = lines[at][: len(lines[at]) // 2]
    elif how == "joined":
        lines[at] = lines[at].rstrip(b"\r\n")
    elif how == "moved first":
        lines.insert(0, lines.pop(at))
    elif how == "many":
        lines[at:at] = [lines[at]] * 500
    else:
        lines = [b"\n"] * len(lines)
    return b"".join(lines), f"line {at} {how}"


def change_number(content: bytes, rng: Random) -> tuple[bytes, str]:
    numbers = list(re.finditer(rb"\d+", content))
    if not numbers:
        return content + b"1", "a number at the end"
    found = rng.choice(numbers)
    old = int(found[0][:18])
    near = [0, -1, old + 1, old - 1, old * 10, 2**31 - 1, 2**31, 2**32, 2**63, 10**30, 50_000_001, 10**8]
    new = str(rng.choice(near)).encode()
    return content[: found.start()] + new + content[found.end() :], f"{old} at {found.start()} became {new.decode()}"


def change_encoding(content: bytes, rng: Random) -> tuple[bytes, str]:
    text = content.decode(errors="replace")
    how = rng.choice(["utf-16", "utf-32", "latin-1", "utf-8-sig", "cr", "crlf", "nul", "bytes"])
    if how in ("cr", "crlf"):
        return content.replace(b"\n", b"\r" if how == "cr" else b"\r\n"), how
    if how == "nul":
        return content.replace(b" ", b"\0"), how
    if how == "bytes":
        return rng.randbytes(len(content)), how
    return text.encode(how, errors="replace"), how


MUTATORS = {
    edit.__name__: inside(edit) for edit in (change_tokens, swap_tokens, change_lines, change_number, change_encoding)
}
