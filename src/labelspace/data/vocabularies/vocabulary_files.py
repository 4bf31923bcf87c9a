"""Read a vocabulary of any format, by the ending of its name or by the named format."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from labelspace.data.archives import without_compression, zip_archive
from labelspace.data.files import UTF_8
from labelspace.data.read_options import ReadOptions
from labelspace.data.vocabularies.concept_tables import read_csv, read_list, read_tsv
from labelspace.data.vocabularies.rdf import read_ntriples, read_rdf
from labelspace.data.vocabularies.skos import PROPERTIES, Statements
from labelspace.data.vocabularies.vocabulary import Vocabulary
from labelspace.errors import ParameterError


def _skos_in_ntriples(path: str | Path, language: str | None, options: ReadOptions) -> Vocabulary:
    statements = Statements()
    for triple in read_ntriples(path, PROPERTIES, options.encoding or UTF_8):
        statements.add(*triple)
    return statements.vocabulary(str(path))


def _skos_in_rdf(kind: str, path: str | Path, language: str | None, options: ReadOptions) -> Vocabulary:
    statements = Statements()
    read_rdf(path, kind, statements.add)
    return statements.vocabulary(str(path))


FORMATS: dict[str, Callable[[str | Path, str | None, ReadOptions], Vocabulary]] = {
    "ntriples": _skos_in_ntriples,
    "turtle": partial(_skos_in_rdf, "turtle"),
    "rdfxml": partial(_skos_in_rdf, "xml"),
    "jsonld": partial(_skos_in_rdf, "json-ld"),
    "csv": read_csv,
    "tsv": read_tsv,
    "list": read_list,
}
_WITH_ENCODING, _WITH_DELIMITER = ("ntriples", "csv", "tsv", "list"), ("csv",)  # the others fix them
ENDINGS = {
    ".nt": "ntriples",
    ".ttl": "turtle",
    ".rdf": "rdfxml",
    ".xml": "rdfxml",
    ".owl": "rdfxml",
    ".jsonld": "jsonld",
    ".json": "jsonld",
    ".csv": "csv",
    ".tsv": "tsv",
    ".txt": "list",
}


def vocabulary_format(path: str | Path, given: str | None = None) -> str:
    """Return the format of a file: the given one, else by the ending of its name without compression.

    >>> vocabulary_format("yso-skos.nt.gz")
    'ntriples'
    """
    if given is not None:
        if given not in FORMATS:
            listed = ", ".join(FORMATS)
            raise ParameterError(
                f"format must be one of {listed}, but is {given!r}; choose one of these", options=["format"]
            )
        return given
    archive = zip_archive(path)
    ending = Path(without_compression(str(path) if archive is None else archive[1])).suffix.lower()
    if ending not in ENDINGS:
        listed = ", ".join(ENDINGS)
        raise ParameterError(
            f"a vocabulary must end with {listed} (also with .gz, .zst or .zip), but is {Path(path).name!r}; name its "
            "format, such as format='turtle'",
            options=["format="],
        )
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
    return FORMATS[kind](path, language, options)
