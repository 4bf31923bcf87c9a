"""Turtle, RDF/XML and JSON-LD, read by rdflib; what it reads is handed on at once, without a graph in memory.

Nothing is fetched: a context of JSON-LD must be in the file, and an entity of XML must stand for a short text.
"""

import io
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from xml.parsers import expat

from labelspace.data.files import reading
from labelspace.errors import DataError, LabelspaceError, require
from labelspace.types.limits import MAX_RDF_BYTES

FORMATS = {"turtle": "Turtle", "xml": "RDF/XML", "json-ld": "JSON-LD"}
"""Names that rdflib and people have for the formats."""
_MAX_ENTITY = 1000  # characters
AddStatement = Callable[[str, str, str, str | None], None]


def read_rdf(path: str | Path, kind: str, add: AddStatement) -> None:
    """Call ``add`` with each statement of a file: subject, property, object, language (None for what is no literal)."""
    rdflib = require("rdflib", "skos", f"reading {FORMATS[kind]}")
    with reading(path) as file:
        data = file.read(MAX_RDF_BYTES.value + 1)
    if len(data) > MAX_RDF_BYTES.value:
        raise DataError(
            f"a file of {FORMATS[kind]} must have at most {MAX_RDF_BYTES.value:,} bytes, but {path} has more; convert "
            f"it to N-Triples (.nt), which is read line by line, or {MAX_RDF_BYTES.raise_it}"
        )
    graph = rdflib.Graph(store=_sink(add), bind_namespaces="none")
    base = f"file:///{Path(path).name}"  # of relative IRIs; the folder is left out, since it is another one elsewhere
    try:
        with _literals_as_written(rdflib):
            if kind == "json-ld":
                _read_json(data, graph, base)
            else:
                if kind == "xml":
                    _check_entities(data)
                graph.parse(io.BytesIO(data), format=kind, publicID=base)
    except (LabelspaceError, MemoryError, RecursionError):
        raise
    except Exception as error:  # noqa: BLE001 - the parsers raise whatever a malformed file makes them stumble over
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{path} must be {FORMATS[kind]}, but cannot be read ({reason}); correct it") from error


def _sink(add: AddStatement) -> Any:  # noqa: ANN401 - a class of rdflib, which may not be installed
    """A store of rdflib that keeps nothing."""
    from rdflib import Literal
    from rdflib.plugins.stores.memory import SimpleMemory

    class Sink(SimpleMemory):
        def add(self, triple: Any, context: Any, quoted: bool = False) -> None:  # noqa: ANN401 - as in rdflib
            subject, relation, value = triple
            language = (value.language or "").lower() if isinstance(value, Literal) else None
            add(_node_name(subject), str(relation), str(value) if language is not None else _node_name(value), language)

    return Sink()


def _node_name(node: Any) -> str:  # noqa: ANN401 - a class of rdflib
    from rdflib import BNode

    return f"_:{node}" if isinstance(node, BNode) else str(node)


@contextmanager
def _literals_as_written(rdflib: Any) -> Iterator[None]:  # noqa: ANN401 - a module
    """Without this, the notation "007"^^xsd:integer would be read as 7, and "1a"^^xsd:integer logged as an error."""
    log = logging.getLogger(rdflib.__name__)
    before, level = rdflib.NORMALIZE_LITERALS, log.level
    rdflib.NORMALIZE_LITERALS = False
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        rdflib.NORMALIZE_LITERALS = before
        log.setLevel(level)


def _check_entities(data: bytes) -> None:
    """Refuse entities that stand for files, for other entities, or for long texts; those for namespaces are usual."""

    def check(name: str, is_parameter: int, value: str | None, *_: str | None) -> None:
        if is_parameter or value is None or "&" in value or len(value) > _MAX_ENTITY:
            raise DataError(
                f"an entity of RDF/XML must stand for at most {_MAX_ENTITY} characters without other entities, "
                f"but {name[:40]!r} does not; write out what it stands for, or convert the file to Turtle"
            )

    def end_of_declarations(*_: object) -> None:
        raise StopIteration

    parser = expat.ParserCreate()
    parser.EntityDeclHandler, parser.StartElementHandler = check, end_of_declarations
    with suppress(StopIteration):
        parser.Parse(data, True)


def _read_json(data: bytes, graph: Any, base: str) -> None:  # noqa: ANN401 - a class of rdflib
    from rdflib.plugins.parsers.jsonld import to_rdf

    document = json.loads(data)
    for context in _contexts(document):
        if isinstance(context, str) or (isinstance(context, dict) and "@import" in context):
            remote = context if isinstance(context, str) else context["@import"]
            raise DataError(
                f"a context of JSON-LD must be in the file, but {str(remote)[:80]!r} is elsewhere, and nothing is "
                "fetched; put its content there, or convert the file to Turtle"
            )
    to_rdf(document, graph, base)


def _contexts(document: Any) -> Iterator[Any]:  # noqa: ANN401 - any JSON
    """All contexts, also those inside of nodes and of terms; of lists of contexts, each."""
    waiting = [(document, False)]
    while waiting:
        value, is_context = waiting.pop()
        if isinstance(value, list):
            waiting.extend((item, is_context) for item in value)
            continue
        if is_context:
            yield value
        if isinstance(value, dict):
            waiting.extend((item, key == "@context") for key, item in value.items())
