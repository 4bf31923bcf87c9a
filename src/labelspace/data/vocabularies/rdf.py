"""Statements of RDF files: N-Triples line by line; Turtle, RDF/XML and JSON-LD by rdflib.

N-Triples, ``<subject> <property> object .``, is the format for large vocabularies: only one line is in memory, and no
package is needed. rdflib hands on each statement at once, without a graph in memory. Nothing is fetched: a context of
JSON-LD must be in the file, and an entity of XML must stand for a short text.
"""

import io
import json
import logging
import re
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from xml.parsers import expat

from labelspace.data.files import UTF_8, lines, reading
from labelspace.data.records import Location
from labelspace.errors import DataError, LabelspaceError, require
from labelspace.types.limits import MAX_RDF_BYTES

FORMATS = {"turtle": "Turtle", "xml": "RDF/XML", "json-ld": "JSON-LD"}
"""Names that rdflib and people have for the formats."""
_MAX_ENTITY = 1000  # characters
AddStatement = Callable[[str, str, str, str | None], None]


def read_rdf(path: str | Path, kind: str, add: AddStatement) -> None:
    """Call ``add`` with each statement of a file: subject, property, object, language (None unless it is a literal)."""
    rdflib = require("rdflib", "skos", f"reading {FORMATS[kind]}")
    with reading(path) as file:
        data = file.read(MAX_RDF_BYTES.value + 1)
    if len(data) > MAX_RDF_BYTES.value:
        rule = f"a file of {FORMATS[kind]} must have at most {MAX_RDF_BYTES.value:,} bytes"
        remedy = f"convert it to N-Triples (.nt), which is read line by line, or {MAX_RDF_BYTES.raise_it}"
        raise DataError(f"{rule}, but {path} has more; {remedy}")
    graph = rdflib.Graph(store=_sink(add), bind_namespaces="none")
    base = f"file:///{Path(path).name}"  # of relative IRIs; without the folder, which differs elsewhere
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
    """Return a store of rdflib that keeps nothing."""
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
    """Keep literals as written: rdflib would read "007"^^xsd:integer as 7, and log "1a"^^xsd:integer."""
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
    """Raise DataError for entities that stand for files, other entities or long texts; short ones are usual."""

    def check(name: str, is_parameter: int, value: str | None, *_: str | None) -> None:
        if is_parameter or value is None or "&" in value or len(value) > _MAX_ENTITY:
            rule = f"an entity of RDF/XML must stand for at most {_MAX_ENTITY} characters without other entities"
            problem = f"{name[:40]!r} does not"
            raise DataError(f"{rule}, but {problem}; write out what it stands for, or convert the file to Turtle")

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
            problem = f"{str(remote)[:80]!r} is elsewhere, and nothing is fetched"
            remedy = "put its content there, or convert the file to Turtle"
            raise DataError(f"a context of JSON-LD must be in the file, but {problem}; {remedy}")
    to_rdf(document, graph, base)


def _contexts(document: Any) -> Iterator[Any]:  # noqa: ANN401 - any JSON
    """Return all contexts, also those inside of nodes and of terms; of lists of contexts, each."""
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


Triple = tuple[str, str, str, str | None]
"""Subject, property, object and language, which is '' for a literal without one and None for other nodes."""
_LINE = re.compile(
    r"""[ \t]*(?:<([^<>"\s]*)>|(_:[^\s<>"]+))      # 1, 2: subject, an IRI or a blank node
        [ \t]*<([^<>"\s]*)>                        # 3: property
        [ \t]*(?:<([^<>"\s]*)>                     # 4: object that is an IRI
              |(_:[^\s<>".]+(?:\.+[^\s<>".]+)*)    # 5: a blank node, whose name does not end with a dot
              |"([^"\\\r\n]*(?:\\.[^"\\\r\n]*)*)"  # 6: a literal
               (?:@([A-Za-z]+(?:-[A-Za-z0-9]+)*)   # 7: with a language
                 |\^\^<[^<>"\s]*>)?)               #    or a type
        [ \t]*\.[ \t]*(?:\#.*)?[\r\n]*\Z""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")
_CHARACTERS = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}


def read_ntriples(path: str | Path, properties: Container[str], encoding: str = UTF_8) -> Iterator[Triple]:
    """Return the statements with some properties; all lines are checked, comments and blank lines are skipped."""
    match = _LINE.match
    for number, line in lines(path, encoding):
        found = match(line)
        if found is None:
            if line.strip() and not line.lstrip().startswith("#"):
                problem = f"found {line.strip()[:60]!r}"
                remedy = "write IRIs in <>, literals in quotes, and a dot at the end"
                raise Location(path, number).expected("a statement <subject> <property> object .", problem, remedy)
            continue
        subject, blank_subject, relation, iri, blank, literal, language = found.groups()
        if "\\" in line:
            decode = _decoder(Location(path, number))
            subject, relation, iri, literal = map(decode, (subject, relation, iri, literal))
        if relation not in properties:
            continue
        if literal is None:
            yield subject or blank_subject, relation, iri or blank, None
        else:
            yield subject or blank_subject, relation, literal, (language or "").lower()


def _decoder(location: Location) -> Callable[[str | None], str | None]:
    """Return a function that resolves the escapes of a text and raises DataError for an invalid escape."""

    def character(found: re.Match[str]) -> str:
        code, long_code, short = found.groups()
        if short is None:
            point = int(code or long_code, 16)
            if point <= 0x10FFFF and not 0xD800 <= point < 0xE000:  # no half a character
                return chr(point)
        elif short in _CHARACTERS:
            return _CHARACTERS[short]
        raise location.expected("escapes such as \\n and \\u00e4", f"found {found[0]!r}", "correct the escape")

    return lambda text: None if text is None else _ESCAPE.sub(character, text)
