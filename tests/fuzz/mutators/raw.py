"""Mutators of the bytes of any file, and of the files of a folder."""

from tests.fuzz.mutators.subject import Subject

MOST_FLIPS = 16


def flip_bytes(subject: Subject) -> str:
    name = subject.some_file()
    content = bytearray(subject.files[name] or b"") if name else bytearray()
    if not content:
        return ""
    done = []
    for _ in range(subject.rng.randint(1, MOST_FLIPS)):
        at = subject.rng.randrange(len(content))
        how = subject.rng.random()
        content[at] = (
            content[at] ^ (1 << subject.rng.randrange(8))
            if how < 0.5
            else subject.rng.choice(b'\x00\xff\x7f\x80 0,:\n"[{')
        )
        done.append(str(at))
    subject.files[name] = bytes(content)
    return f"{name}: bytes {' '.join(done)}"


def cut_bytes(subject: Subject) -> str:
    name = subject.some_file()
    content = subject.files[name] if name else b""
    if not content:
        return ""
    at, n = subject.rng.randrange(len(content)), subject.rng.choice([1, 8, 100, len(content)])
    subject.files[name] = content[:at] + content[at + n :]
    return f"{name}: without bytes {at}:{at + n}"


def insert_bytes(subject: Subject) -> str:
    name = subject.some_file()
    content = subject.files[name] if name else b""
    if not content:
        return ""
    rng = subject.rng
    at, source, n = rng.randrange(len(content)), rng.randrange(len(content)), rng.choice([1, 8, 100])
    piece = rng.choice([content[source : source + n], rng.randbytes(n), b"\0" * n, b"\xff" * n, b"\n" * n, b"9" * n])
    subject.files[name] = content[:at] + piece + content[at:]
    return f"{name}: {len(piece)} bytes more at {at}"


def overwrite_bytes(subject: Subject) -> str:
    name = subject.some_file()
    content = subject.files[name] if name else b""
    if not content:
        return ""
    rng = subject.rng
    at, n = rng.randrange(len(content)), rng.choice([4, 8, 64])
    value = rng.choice([0, 1, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1, rng.getrandbits(64)]).to_bytes(8, "little")
    piece = (value * 8)[: min(n, len(content) - at)]
    subject.files[name] = content[:at] + piece + content[at + len(piece) :]
    return f"{name}: {piece[:8].hex()} over {at}:{at + len(piece)}"


def change_files(subject: Subject) -> str:
    """A file is missing, empty, a folder, another's, or that of another model."""
    names, rng = sorted(subject.files), subject.rng
    name, other = rng.choice(names), rng.choice(names)
    shared = sorted(set(names) & set(subject.donor))
    how = rng.choice(["missing", "empty", "a folder", "swapped", "more", *["of another"] * 3])
    if how == "missing":
        del subject.files[name]
    elif how == "empty":
        subject.files[name] = b""
    elif how == "a folder":
        subject.files[name] = None
    elif how == "swapped":
        subject.files[name], subject.files[other] = subject.files[other], subject.files[name]
        return f"{name} and {other}: swapped"
    elif how == "more":
        name = rng.choice(["more.safetensors", "index.faiss", "features.safetensors", "model.pkl"])
        subject.files[name] = subject.files[other]
    elif not shared:
        return ""
    else:
        name = rng.choice(shared)
        subject.files[name] = subject.donor[name]
    return f"{name}: {how}"


MUTATORS = {
    mutator.__name__: mutator for mutator in (flip_bytes, cut_bytes, insert_bytes, overwrite_bytes, change_files)
}
