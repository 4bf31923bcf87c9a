"""Settings of a server, with the default of each option, and its API keys.

Workers get the settings as JSON in the environment. API keys allow to read or also to write; they are compared in
constant time, by their hashes.
"""

import hashlib
import hmac
import json
import os
import re
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from labelspace.errors import DataError, ParameterError

VARIABLE = "LABELSPACE_SERVE"  # that workers read their settings from
SUPERVISOR = "LABELSPACE_SERVE_SUPERVISOR"  # the process that ends them
MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class RequestLimits:
    """The limits of a request, which ``GET /v1`` reports."""

    max_body_bytes: int = 2_000_000
    max_documents: int = 32  # of a batch
    max_text_characters: int = 200_000
    max_k: int = 100
    max_concurrent_requests: int = 48  # of one worker; beyond it the answer is 429
    timeout_seconds: float = 30.0

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value <= 0:
                option = f"--{each.name.replace('_', '-')}"
                raise ParameterError(f"{option} must be above 0, but is {value}; leave it out for {each.default}")


@dataclass(frozen=True)
class Settings:
    """The settings of a server."""

    models: dict[str, str]  # name -> folder
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    database: str | None = None  # a URL; None for a file next to the first model
    data: str | None = None  # the data that models are trained on again
    inbox: str | None = None  # a file of documents to review
    keep_versions: int | None = None  # older versions of each model; None for as many as the library keeps
    api_key_file: str | None = None
    no_auth: bool = False
    read_only: bool = False
    cors_origins: list[str] = field(default_factory=list)
    allowed_hosts: list[str] = field(default_factory=list)
    access_log: bool = False
    limits: RequestLimits = field(default_factory=RequestLimits)
    job_threads: int = 1  # a worker has one
    cluster: dict[str, Any] | None = None  # the fields of a ``cluster.serving.ServingCluster``

    def __post_init__(self) -> None:
        if self.api_key_file is None and not self.no_auth and self.host not in LOOPBACK:
            problem = f"--host is {self.host} without --api-key-file"
            remedy = "give the file, or --no-auth if everyone may use it"
            raise ParameterError(f"a server that other machines can reach needs API keys, but {problem}; {remedy}")
        if self.api_key_file is not None and self.no_auth:
            raise ParameterError("--api-key-file and --no-auth exclude each other, but both are given; leave one out")
        if "*" in self.cors_origins and self.api_key_file is None:
            problem = "--cors-origin is * without --api-key-file; name the origins, or give the file"
            raise ParameterError(f"any web site may call a server only if it needs a key, but {problem}")

    @property
    def database_url(self) -> str:
        """The address of the database."""
        folder = Path(os.path.realpath(next(iter(self.models.values()))))
        return self.database or f"sqlite:///{folder.with_name(f'{folder.name}.feedback.db')}"

    @property
    def shown_database(self) -> str:
        """The address of the database without a password."""
        url = re.sub(r"//([^:/@]*):.*@", r"//\1:***@", self.database_url)  # a password may have an @
        return re.sub(r"(password=)[^&]*", r"\1***", url)

    @property
    def checks_host(self) -> bool:
        """Return whether requests must name a host of this machine.

        Without this check a web site could reach the server by a name of its own (DNS rebinding).
        """
        return self.api_key_file is None and (self.host in LOOPBACK or bool(self.allowed_hosts))

    def to_json(self) -> str:
        """Return the settings as JSON, for the environment of workers."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Settings":
        """Return the settings that ``to_json`` wrote."""
        values: dict[str, Any] = json.loads(text)
        return cls(**{**values, "limits": RequestLimits(**values["limits"])})


def parse_models(given: list[str]) -> dict[str, str]:
    """Return folders by name; the name is that of the folder, or is given as ``NAME=FOLDER``.

    >>> parse_models(["runs/demo", "tags=runs/cooking-blend"])
    {'demo': 'runs/demo', 'tags': 'runs/cooking-blend'}
    """
    models: dict[str, str] = {}
    for item in given:
        name, _, folder = item.partition("=")
        if not folder or Path(item).exists():
            name, folder = Path(item).resolve().name, item
        if not MODEL_NAME.fullmatch(name):
            rule = "the name of a served model must be letters, digits, dots, dashes and underscores, at most 64"
            raise ParameterError(f"{rule}, but is {name[:80]!r}; give it another: NAME={folder}")
        if name in models:
            raise ParameterError(f"served models must have different names, but two are {name!r}; write NAME={folder}")
        models[name] = folder
    return models


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
                rule = f"a line must be 'read KEY' or 'write KEY' with a key of at least {MIN_CHARACTERS} characters"
                remedy = "write for example: write $(openssl rand -hex 32)"
                raise DataError(f"{source}:{number}: {rule}, but is not; {remedy}")
            if _hash(words[1]) in found:
                problem = "this one stands on two"
                raise DataError(f"{source}:{number}: a key must stand on one line, but {problem}; remove one")
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
