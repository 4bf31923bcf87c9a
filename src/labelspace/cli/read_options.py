"""The options of how files are read, which all commands that read files have."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from labelspace.data.read_options import ReadOptions

PANEL = "How files are read (what is not given is detected, and said)"


def _option(flag: str, metavar: str, help: str) -> Any:  # noqa: ANN401 - of typer
    return Annotated[str | None, typer.Option(flag, metavar=metavar, help=help, rich_help_panel=PANEL)]


DOCUMENTS = {
    "text": _option("--text", "A,B", "Column of the texts; several are joined."),
    "id_column": _option("--id", "COLUMN", "Column of the ids."),
    "embeddings": _option("--embeddings", "COLUMN", "Column of ready-made vectors, in place of texts."),
    "delimiter": _option("--delimiter", "MARK", "Between cells: comma, semicolon, tab, pipe or a character."),
    "encoding": _option("--encoding", "NAME", "Such as utf-8, utf-16, windows-1252."),
    "file_format": _option("--format", "NAME", "Format, such as fasttext or libsvm; docs/formats.md lists them."),
}
LABELS = {
    "labels": _option("--labels", "A,B", "Column of the labels; or several, each with a label or with 0 and 1."),
    "label_separator": _option("--label-separator", "MARK", "Between the labels of a cell, such as ';', or none."),
    "normalize_labels": Annotated[
        bool,
        typer.Option(
            "--normalize-labels", help="Merge labels that differ in case or spaces alone.", rich_help_panel=PANEL
        ),
    ],
    "inputs": _option("--inputs", "A,B", "Of a table with several outputs: its input columns, e.g. title,price."),
    "outputs": _option(
        "--outputs",
        "C,D",
        "Columns to predict, e.g. brand,L0_category,L1_category; levels of a category also as 'department>aisle'.",
    ),
}


def reads_files(with_labels: bool = True) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command these options; it gets them as one value, ``reading``."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        options = {**DOCUMENTS, **LABELS} if with_labels else DOCUMENTS
        command.__annotations__.pop("reading", None)  # its import takes long, and all others are evaluated
        signature = inspect.signature(command, eval_str=True)
        own = [parameter for name, parameter in signature.parameters.items() if name != "reading"]
        more = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=False if name == "normalize_labels" else None,
                annotation=kind,
            )
            for name, kind in options.items()
        ]

        @wraps(command)
        def wrapped(**given: Any) -> None:  # noqa: ANN401 - whatever the command takes
            reading = read_options({name: given.pop(name) for name in options}, bool(given.get("as_json")))
            command(**given, reading=reading)

        wrapped.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
        wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *more)}
        del wrapped.__wrapped__  # what typer would look at
        return wrapped

    return decorate


def read_options(given: dict[str, Any], quiet: bool) -> "ReadOptions":
    """The options as a value; what is detected is said unless ``quiet``."""
    from labelspace.cli.notes import note
    from labelspace.data.columns import parse_columns
    from labelspace.data.read_options import ReadOptions

    options = ReadOptions(
        format=given.get("file_format"),
        encoding=given.get("encoding"),
        delimiter=given.get("delimiter"),
        label_separator=given.get("label_separator"),
        text=_names("--text", given.get("text")),
        labels=_names("--labels", given.get("labels")),
        id=given.get("id_column"),
        embeddings=given.get("embeddings"),
        normalize_labels=bool(given.get("normalize_labels")),
        columns=parse_columns(given.get("inputs"), given.get("outputs")),
    )
    return options if quiet else replace(options, say=note)


def _names(flag: str, text: str | None) -> tuple[str, ...]:
    from labelspace.data.columns import split_names

    return () if text is None else tuple(split_names(flag, text, ","))


def as_words(reading: "ReadOptions") -> list[str]:
    """The options as words of a command."""
    columns = reading.columns
    options = {
        "--text": ",".join(reading.text),
        "--labels": ",".join(reading.labels),
        "--id": reading.id,
        "--embeddings": reading.embeddings,
        "--delimiter": reading.delimiter,
        "--label-separator": reading.label_separator,
        "--encoding": reading.encoding,
        "--format": reading.format,
        "--inputs": "" if columns is None else ",".join(columns.inputs),
        "--outputs": "" if columns is None else ",".join(">".join(group) for group in columns.outputs),
    }
    words = [word for flag, value in options.items() if value for word in (flag, value)]
    return [*words, "--normalize-labels"] if reading.normalize_labels else words
