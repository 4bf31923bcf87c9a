"""Check API keys, which allow to read or also to write; they are compared in constant time, by their hashes."""

import hashlib
import hmac
from dataclasses import dataclass
from pathlib import Path

from labelspace.errors import DataError

READ, WRITE = "read", "write"
MIN_CHARACTERS = 16
MAX_FILE_BYTES = 2**20


@dataclass(frozen=True)
class ApiKeys:
    """The hashes of the keys of each role."""

    hashes: tuple[tuple[bytes, str], ...]

    def role(self, key: str | None) -> str | None:
        """Return the role of a key, or None for an unknown key. All keys are compared, so the time tells nothing."""
        given = _hash(key or "")
        found = None
        for known, role in self.hashes:
            if hmac.compare_digest(known, given):
                found = role
        return found

    @classmethod
    def parse(cls, lines: list[str], source: str) -> "ApiKeys":
        """Read lines ``read KEY`` or ``write KEY``; a write key also reads. Empty lines and text after # are ignored.

        >>> keys = ApiKeys.parse(["# team", "write 3f786850e387550f", "read da39a3ee5e6b4b0d"], "keys.txt")
        >>> keys.role("3f786850e387550f"), keys.role("da39a3ee5e6b4b0d"), keys.role("guess")
        ('write', 'read', None)
        """
        found: dict[bytes, str] = {}
        for number, line in enumerate(lines, 1):
            words = line.split("#", 1)[0].split()
            if not words:
                continue
            if len(words) != 2 or words[0] not in (READ, WRITE) or len(words[1]) < MIN_CHARACTERS:
                raise DataError(
                    f"{source}:{number}: a line must be 'read KEY' or 'write KEY' with a key of at least "
                    f"{MIN_CHARACTERS} characters, but is not; write for example: write $(openssl rand -hex 32)"
                )
            if _hash(words[1]) in found:
                raise DataError(
                    f"{source}:{number}: a key must stand on one line, but this one stands on two; remove one"
                )
            found[_hash(words[1])] = words[0]
        if not found:
            raise DataError(f"a file of API keys must have at least one, but {source} has none; add a line: write KEY")
        return cls(tuple(found.items()))


def read_api_keys(path: str | Path) -> ApiKeys:
    """Read the API keys of a file."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise DataError(f"a file of API keys must have at most {MAX_FILE_BYTES} bytes, but {path} has more; cut it")
        return ApiKeys.parse(content.decode("utf-8").splitlines(), str(path))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise DataError(f"API keys must be readable, but {path} is not ({reason}); check --api-key-file") from error


def _hash(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
