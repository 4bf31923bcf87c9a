r"""Read a vocabulary of any format, by the ending of its name or by the named format; tables and lists of concepts.

- CSV has a header: ``uri``, ``label`` or ``label_en``, ``label_fi``, ..., ``notation``; besides what Annif reads,
  ``alt``, ``hidden`` and ``broader`` (URIs, or names without URIs), with ``|`` between several; and ``description`` or
  ``definition``, which may have a language too (``description_en``).
- TSV is ``<uri>\tname\tnotation`` without a header, the notation optional; with a header it is as CSV.
- A list is one name per line.

A row with a URI and no name is a concept that is not in use any more, as in Annif. Labels keep the order of the file.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from labelspace.data.archives import without_compression, zip_archive
from labelspace.data.files import UTF_8, lines
from labelspace.data.formats import csvfile
from labelspace.data.read_options import ReadOptions
from labelspace.data.records import Location
from labelspace.data.vocabularies.concept_texts import TextColumn, Texts
from labelspace.data.vocabularies.rdf import read_ntriples, read_rdf
from labelspace.data.vocabularies.skos import PROPERTIES, Statements
from labelspace.data.vocabularies.vocabulary import Note, Vocabulary
from labelspace.errors import DataError, ParameterError
from labelspace.types import Longs

SEPARATOR = "|"
_TSV_COLUMNS = ("uri", "label", "notation")
_DESCRIPTIONS = ("description", "definition")  # the preferred one first
_BY_LANGUAGE = ("label", *_DESCRIPTIONS)  # columns that may name a language, as label_en does
_COLUMNS = ("uri", *_BY_LANGUAGE, "notation", "alt", "hidden", "broader")
_TEXTS = ("label", "alt", "hidden", "notation", *_DESCRIPTIONS)
Row = tuple[Location, Mapping[str, object]]


def read_csv(path: str | Path, language: str | None, options: ReadOptions) -> Vocabulary:
    """Read a table with a header; the delimiter is detected if it is not given."""
    with csvfile.rows(path, options) as table:
        header = table.names()
        known = [name for name in header if _is_column(name)]
        if not any(_kind(name) == "label" for name in known):
            rule, remedy = "a header with a column 'label' or 'label_en'", "name the columns in the first line"
            raise Location(path, 1).expected(rule, f"it has: {', '.join(header)[:80] or 'nothing'}", remedy)
        return _vocabulary(path, table.read(known), header, language)


def read_tsv(path: str | Path, language: str | None, options: ReadOptions) -> Vocabulary:
    """Read URI, name and notation separated by tabs; or a table with a header, whose first column is one of CSV's."""
    encoding = options.encoding or UTF_8
    first = next((line for _, line in lines(path, encoding)), "").split("\t")[0].strip()
    if _is_column(first):
        return read_csv(path, language, replace(options, delimiter="\t"))
    return _vocabulary(path, _tsv_rows(path, encoding), _TSV_COLUMNS, language)


def read_list(path: str | Path, language: str | None, options: ReadOptions) -> Vocabulary:
    """Read one name per line."""
    return _vocabulary(path, _lines_as_rows(path, options.encoding or UTF_8), ("label",), language)


def _kind(name: str) -> str:
    """Return the name of a column without its language."""
    kind = name.partition("_")[0]
    return kind if kind in _BY_LANGUAGE else name


def _is_column(name: str) -> bool:
    return _kind(name) in _COLUMNS


def _tsv_rows(path: str | Path, encoding: str) -> Iterator[Row]:
    for number, line in lines(path, encoding):
        cells = line.rstrip("\r\n").split("\t")
        location = Location(path, number)
        if len(cells) > len(_TSV_COLUMNS):
            problem = f"there are {len(cells)} cells"
            raise location.expected("<uri>, name and notation separated by tabs", problem, "remove the others")
        yield location, dict(zip(_TSV_COLUMNS, cells, strict=False))


def _lines_as_rows(path: str | Path, encoding: str) -> Iterator[Row]:
    for number, line in lines(path, encoding):
        location = Location(path, number)
        if "\t" in line.strip():
            remedy = "read it as a table: format='tsv'"
            raise location.expected("one name per line", "there is a tab", remedy, options=["format="])
        yield location, {"label": line}


class _Columns:
    """Rows of a table as they are read."""

    def __init__(self, language: str | None) -> None:
        self.language = (language or "").lower()  # of names without one
        self.uris: list[str | None] = []
        self.known: dict[str, int] = {}  # URI or name -> row
        self.texts = {name: TextColumn() for name in _TEXTS}
        self.broader: list[tuple[int, str]] = []
        self.unused: list[str] = []

    def add(self, location: Location, row: Mapping[str, object]) -> None:
        cells = {name: " ".join(str(cell).split()) for name, cell in row.items()}
        uri = cells.get("uri", "").removeprefix("<").removesuffix(">")
        names = self._by_language("label", cells)
        if not names:
            self.unused += [uri] if uri else []
            return
        at = len(self.uris)
        key = uri or next(iter(names.values()))
        if self.known.setdefault(key, at) != at:
            raise location.expected("each concept once", f"{key!r} is in a row before too", "remove one of them")
        self.uris.append(uri or None)
        for language, name in names.items():
            self.texts["label"].add(at, name, language)
        for column in _DESCRIPTIONS:
            for language, description in self._by_language(column, cells).items():
                self.texts[column].add(at, description, language)
        self.texts["notation"].add(at, cells.get("notation", ""))
        for column in ("alt", "hidden"):
            for name in cells.get(column, "").split(SEPARATOR):
                self.texts[column].add(at, name)
        above = (name.strip().removeprefix("<").removesuffix(">") for name in cells.get("broader", "").split(SEPARATOR))
        self.broader += [(at, name) for name in above if name]

    def _by_language(self, column: str, cells: Mapping[str, str]) -> dict[str, str]:
        """Return the cells of a column by language; one without language has that of names without one."""
        start = f"{column}_"
        given = {name.removeprefix(start).lower(): cell for name, cell in cells.items() if name.startswith(start)}
        found = {language: cell for language, cell in given.items() if cell}
        if cells.get(column):
            found.setdefault(self.language, cells[column])
        return found

    def edges(self) -> tuple[Longs, int]:
        """Return rows (narrower, broader), and how many links lead to no row."""
        found = [(at, self.known[name]) for at, name in self.broader if name in self.known]
        return np.array(found, np.int64).reshape(-1, 2), len(self.broader) - len(found)


def _vocabulary(path: str | Path, rows: Iterable[Row], header: Sequence[str], language: str | None) -> Vocabulary:
    columns = _Columns(language)
    for location, row in rows:
        columns.add(location, row)
    if not columns.uris:
        raise DataError(f"a vocabulary must have names of labels, but {path} has none; write one per line")
    n = len(columns.uris)
    edges, n_outside = columns.edges()
    texts = (columns.texts[name] for name in _TEXTS)
    grouped = (Texts.grouped(text.nodes, text.values, text.languages, n) for text in texts)
    names, alt, hidden, notations, *described = grouped
    not_read = [name for name in header if not _is_column(name)]
    notes = [
        Note("deprecated", len(columns.unused), "rows with a URI and no name: concepts not in use any more, left out"),
        Note("broader_outside", n_outside, "links to broader concepts that are not in use here, left out"),
        Note("columns_left_out", len(not_read), f"columns that are not read ({', '.join(not_read)[:80]})"),
    ]
    none = Texts.grouped([], [], [], n)
    broader = edges if "broader" in header else None
    replaced = dict.fromkeys(columns.unused, ())
    return Vocabulary(columns.uris, names, none, alt, hidden, notations, broader, notes, replaced, described)


def _skos(kind: str | None, path: str | Path, language: str | None, options: ReadOptions) -> Vocabulary:
    """Read SKOS as N-Triples, or by rdflib as the named kind of RDF."""
    statements = Statements()
    if kind is not None:
        read_rdf(path, kind, statements.add)
    else:
        for triple in read_ntriples(path, PROPERTIES, options.encoding or UTF_8):
            statements.add(*triple)
    return statements.vocabulary(str(path))


Reader = Callable[[str | Path, str | None, ReadOptions], Vocabulary]
FORMATS: dict[str, tuple[Reader, tuple[str, ...]]] = {  # how they are read, and how their files end
    "ntriples": (partial(_skos, None), (".nt",)),
    "turtle": (partial(_skos, "turtle"), (".ttl",)),
    "rdfxml": (partial(_skos, "xml"), (".rdf", ".xml", ".owl")),
    "jsonld": (partial(_skos, "json-ld"), (".jsonld", ".json")),
    "csv": (read_csv, (".csv",)),
    "tsv": (read_tsv, (".tsv",)),
    "list": (read_list, (".txt",)),
}
_WITH_ENCODING, _WITH_DELIMITER = ("ntriples", "csv", "tsv", "list"), ("csv",)  # the others fix them
ENDINGS = {ending: name for name, (_, endings) in FORMATS.items() for ending in endings}


def vocabulary_format(path: str | Path, given: str | None = None) -> str:
    """Return the format of a file: the given one, else by the ending of its name without compression.

    >>> vocabulary_format("yso-skos.nt.gz")
    'ntriples'
    """
    if given is not None:
        if given not in FORMATS:
            rule = f"format must be one of {', '.join(FORMATS)}"
            raise ParameterError(f"{rule}, but is {given!r}; choose one of these", options=["format"])
        return given
    archive = zip_archive(path)
    ending = Path(without_compression(str(path) if archive is None else archive[1])).suffix.lower()
    if ending not in ENDINGS:
        rule = f"a vocabulary must end with {', '.join(ENDINGS)} (also with .gz, .zst or .zip)"
        problem = f"is {Path(path).name!r}"
        raise ParameterError(f"{rule}, but {problem}; name its format, such as format='turtle'", options=["format="])
    return ENDINGS[ending]


def read_vocabulary(
    path: str | Path, format: str | None = None, language: str | None = None, options: ReadOptions | None = None
) -> Vocabulary:
    """Read the concepts of a file; ``language`` is that of names for which the file has none."""
    kind = vocabulary_format(path, format)
    options = options or ReadOptions()
    for option, formats in (("encoding", _WITH_ENCODING), ("delimiter", _WITH_DELIMITER)):
        value = getattr(options, option)
        if value is not None and kind not in formats:
            rule = f"{option} has an effect on {', '.join(formats)} only"
            raise ParameterError(f"{rule}, but is {value!r} for {kind}; leave it out", options=[option])
    read, _ = FORMATS[kind]
    vocabulary = read(path, language, options)
    vocabulary.check_descriptions()
    return vocabulary
