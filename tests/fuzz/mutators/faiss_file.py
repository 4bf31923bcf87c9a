"""Mutators of ``index.faiss``: numbers and lengths in a file of faiss's own format."""

from tests.fuzz.mutators.subject import Subject

FILE = "index.faiss"


def faiss_numbers(subject: Subject) -> str:
    """Some aligned numbers get other values: sizes, ids, counts."""
    content, rng = subject.files.get(FILE), subject.rng
    if not content:
        return ""
    changed, done = bytearray(content), []
    # Half of them in the first bytes, where what the rest is read by stands.
    for _ in range(rng.randint(1, 3)):
        size = rng.choice([4, 8])
        at = rng.randrange(min(len(content), 200) if rng.random() < 0.5 else len(content)) // 4 * 4
        old = int.from_bytes(content[at : at + size], "little")
        near = [0, 1, old + 1, old - 1, old * 2, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**64 - 1, len(content)]
        new = (rng.choice(near) % 2 ** (8 * size)).to_bytes(size, "little")
        changed[at : at + size] = new[: len(changed) - at]
        done.append(f"{new.hex()} at {at}")
    subject.files[FILE] = bytes(changed)
    return f"{FILE}: {', '.join(done)}"


def faiss_length(subject: Subject) -> str:
    """The file is cut, empty, longer, or begins as another kind of index."""
    content, rng = subject.files.get(FILE), subject.rng
    if not content:
        return ""
    odd = {
        "cut": content[: rng.randrange(len(content))], "empty": b"", "longer": content + b"\0" * 100,
        "another kind": rng.choice([b"IxFI", b"IwFl", b"IHNf", b"IHNs", b"IwSq", b"IxPT", b"null"]) + content[4:],
        "another's": subject.donor.get(FILE) or content[:100],
    }  # fmt: skip
    how = rng.choice(sorted(odd))
    subject.files[FILE] = odd[how]
    return f"{FILE}: {how}"


MUTATORS = {mutator.__name__: mutator for mutator in (faiss_numbers, faiss_length)}
