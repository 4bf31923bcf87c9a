"""N-Triples, read line by line: ``<subject> <property> object .``, where the object is an IRI, blank node or literal.

This is the format for large vocabularies: nothing but the line at hand is kept, and no package is needed.
"""

import re
from collections.abc import Callable, Container, Iterator
from pathlib import Path

from labelspace.data.files import UTF_8, lines
from labelspace.data.records import Location

Triple = tuple[str, str, str, str | None]
"""Subject, property, object and language, which is '' for a literal without one and None for what is no literal."""
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
_SURROGATES = range(0xD800, 0xE000)


def read_ntriples(path: str | Path, properties: Container[str], encoding: str = UTF_8) -> Iterator[Triple]:
    """The statements of a file with some properties; all lines are checked, comments and blank lines are skipped."""
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
    """A function that resolves the escapes of a text; what is none is an error of the line."""

    def character(found: re.Match[str]) -> str:
        code, long_code, short = found.groups()
        if short is None:
            point = int(code or long_code, 16)
            if point <= 0x10FFFF and point not in _SURROGATES:
                return chr(point)
        elif short in _CHARACTERS:
            return _CHARACTERS[short]
        raise location.expected("escapes such as \\n and \\u00e4", f"found {found[0]!r}", "correct the escape")

    return lambda text: None if text is None else _ESCAPE.sub(character, text)
