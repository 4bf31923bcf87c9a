"""Read a data file of any format: what it is, is detected, and reported to ``ReadOptions.say`` in one line."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from labelspace.data.archives import check_is_text, check_no_pipe, files_in, is_data_file
from labelspace.data.dataset_builder import assemble
from labelspace.data.fields import ColumnSample, describe_fields, detect_fields, field_records
from labelspace.data.files import UTF_8, decode_head, detect_encoding, reading
from labelspace.data.formats.base import AnyFormat, RowFormat
from labelspace.data.formats.csvfile import read_dialect
from labelspace.data.formats.registry import ENDINGS, FORMATS, format_named, formats_of
from labelspace.data.label_files import label_files, labels_of_file
from labelspace.data.label_mapping import matched_labels, merge_spellings, merge_synonyms
from labelspace.data.read_options import ReadOptions, say_nothing
from labelspace.data.records import Rows
from labelspace.data.side_columns import dataset_with_vectors, read_vectors, reading_vectors
from labelspace.data.table import is_table, table_records
from labelspace.errors import DataError, ParameterError
from labelspace.types import Columns, Dataset, Fields, LabelSpace

KNOWN = f"{', '.join(ENDINGS)}, each also with .gz, .zst or in a .zip"
SIDE = ("numeric", "categorical", "vectors")
SAMPLE_CHARACTERS = 2**25  # at most, from which the label separator is detected: files with long cells need fewer rows
HEAD_LINES, HEAD_BYTES = 50, 2**18  # from which a format is detected
_USUAL = {"csv": "comma-separated", "tsv": "tab-separated"}


def read_dataset(
    path: str | Path,
    labels: LabelSpace | None = None,
    columns: Columns | None = None,
    options: ReadOptions | None = None,
) -> Dataset:
    r"""Read a data file; its name says the format, or its content if the name leaves that open.

    The label space is ``labels``, or else that of its label file, with unknown names appended; without both it is the
    names in alphabetical order, or the numbers 0, 1, ... if labels are ids. The hierarchy is that of ``labels``, or
    else that of its label file; without both, names that are paths (``a > b``) define one. The label files of ``a.csv``
    are ``a.labels.jsonl`` and ``a.hierarchy.tsv``; for ``train.*``, ``dev.*`` and ``test.*`` also ``labels.jsonl`` and
    ``hierarchy.tsv``.

    With ``columns`` the file is a table (.jsonl, .csv, .parquet, ...); label names and hierarchy are taken from its
    cells, or are ``labels`` with unknown names appended. With ``labels`` it may also be a file with other fields.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "pets.csv").write_text("title;tags\nit purrs;cat, pet\nit barks;dog, pet\nit meows;cat\n")
    ...     dataset = read_dataset(f"{folder}/pets.csv", options=ReadOptions(label_separator=","))
    >>> dataset.labels.names, dataset.Y.sum(axis=0).tolist()
    (['cat', 'dog', 'pet'], [[2.0, 1.0, 2.0]])
    """
    check_no_pipe(path)
    given = options or ReadOptions()
    if given.vectors_file is not None:
        name, rest = reading_vectors(given if columns is None else replace(given, columns=columns))
        vectors = read_vectors(given.vectors_file, path)
        return dataset_with_vectors(read_dataset(path, labels, options=rest), vectors, name, given.vectors_file)
    fmt, given = settle(path, given if columns is None else replace(given, columns=columns))
    if given.columns is not None and (labels is None or _has_columns(path, fmt, given)):
        return _read_table(path, fmt, labels, given)
    file_labels = None if labels is None else labels_of_file(path)
    if labels is None or file_labels is None or _is_prefix(file_labels, labels):
        documents = _read(path, fmt, labels, given)
    else:
        # The file's label ids are those of its label file: read it with those, then map them to ``labels`` by name.
        documents = _read(path, fmt, None, given)
        Y, space = matched_labels(documents.Y, documents.labels, labels)
        documents = replace(documents, Y=Y, labels=space)
    if not given.merges_labels:
        return documents
    merged, n_merged = merge_spellings(documents, 0 if labels is None else len(labels))
    if n_merged:
        given.say(f"{path}: {n_merged:,} labels were merged into others that differ only in case or spaces")
    return merged


def read_for_model(path: str | Path, labels: LabelSpace, columns: Columns | None, options: ReadOptions) -> Dataset:
    """Read a data file for a model with these labels, which it may name by former names: see ``merge_synonyms``."""
    documents, names = merge_synonyms(read_dataset(path, labels, columns, options), labels)
    if names:
        shown = ", ".join(map(repr, names[:3]))
        options.say(
            f"{path}: labels that count as those that have their names as synonyms ({len(names):,}): {shown[:80]}"
        )
    return documents


def settle(path: str | Path, options: ReadOptions) -> tuple[AnyFormat, ReadOptions]:
    """Return the format of a file, and the options with its encoding."""
    fmt = detect_format(path, options)
    if fmt.is_text and options.encoding is None:
        options = replace(options, encoding=detect_encoding(path))
    return fmt, options


def detect_format(path: str | Path, options: ReadOptions) -> AnyFormat:
    """Return the format of a file: as the options say, by its name, or by its first lines, which is reported."""
    if options.format is not None:
        return format_named(options.format)
    if Path(path).is_dir():
        return FORMATS["text_folder"]
    possible = formats_of(path)
    if not possible:
        if is_data_file(Path(path)):
            read_head(path, options.encoding)  # refuses well-known kinds of files with a remedy of their own
        name = Path(path).name
        remedy = "rename or convert it, or name its format"
        raise DataError(f"the name of a data file must end with {KNOWN}, but is {name!r}; {remedy}", options=["format"])
    if len(possible) == 1 or not is_data_file(Path(path)):
        return possible[-1]
    head = read_head(path, options.encoding)
    for fmt in possible:
        if fmt.recognizes is not None and fmt.recognizes(head):
            options.say(f"{path}: {fmt.title}, by its content; the option format names another")
            return fmt
    if possible[-1].recognizes is not None:
        names = " or ".join(fmt.title for fmt in possible)
        remedy = f"name its format, such as format='{possible[0].name}', or convert it"
        raise DataError(f"{path} must be {names}, but its first lines are not; {remedy}", options=["format="])
    return possible[-1]


def files_of(path: Path) -> list[Path]:
    """Return the files that are read with a split: itself and its label files, or its folder if it needs several."""
    if path.is_dir():
        return [*files_in(path), *label_files(path)]
    possible = formats_of(path)
    if possible and possible[0].file_names is not None:  # several files are one split
        return files_in(path.parent)
    return [path, *label_files(path)]


def streamed_format(path: str | Path, options: ReadOptions) -> AnyFormat:
    """Return the format of a file that is read piece by piece; raise DataError if it is read as a whole."""
    fmt = detect_format(path, replace(options, say=say_nothing))
    if not fmt.streams:
        problem = f"{path} is {fmt.title}, which is read as a whole"
        remedy = "convert it to XMC text or JSON lines on a machine with enough memory: labelspace data convert"
        raise DataError(f"what is read into a cache must be read piece by piece, but {problem}; {remedy}")
    return fmt


def read_head(path: str | Path, encoding: str | None) -> list[str]:
    """Return the first lines of a file, without line ends and without a last line that is cut off.

    A line that is the only one stays, even if it is cut off.
    """
    with reading(path) as file:
        head = file.read(HEAD_BYTES)
    check_is_text(path, head)
    found = decode_head(head, encoding).split("\n")
    if len(found) > 1 and (len(head) == HEAD_BYTES or not found[-1]):
        found.pop()
    return [line.removesuffix("\r") for line in found[:HEAD_LINES]]


def _has_columns(path: str | Path, fmt: AnyFormat, options: ReadOptions) -> bool:
    if not isinstance(fmt, RowFormat) or options.columns is None:
        return False
    with fmt.rows(path, options) as rows:
        return is_table(rows.names(), options.columns, with_labels=True)


def _read_table(path: str | Path, fmt: AnyFormat, labels: LabelSpace | None, options: ReadOptions) -> Dataset:
    if not isinstance(fmt, RowFormat) or options.columns is None:
        raise DataError(f"a table must be .jsonl, .csv, .tsv or .parquet, but is {path}; convert it, or set no columns")
    _tell(path, fmt, options, None)
    with fmt.rows(path, options) as rows:
        return assemble(table_records(path, rows, options.columns), path, labels, options.columns)


def _read(path: str | Path, fmt: AnyFormat, labels: LabelSpace | None, options: ReadOptions) -> Dataset:
    if not isinstance(fmt, RowFormat):
        for name in ("text", "labels", "id", "delimiter", "label_separator", "numeric", "categorical", "vectors"):
            value = getattr(options.beside if name in SIDE else options, name, None)
            if value:
                rule = f"{name}='{value if isinstance(value, str) else ','.join(value)}' is for files with columns"
                raise ParameterError(f"{rule}, but {path} is {fmt.title}; leave it out", options=[f"{name}="])
        return fmt.read(path, labels, options)
    fields = _file_fields(path, fmt, labels, options)
    _tell(path, fmt, options, fields)
    with fmt.rows(path, options) as rows:
        return replace(assemble(field_records(rows, fields), path, labels), fields=fields)


def _file_fields(path: str | Path, fmt: RowFormat, labels: LabelSpace | None, options: ReadOptions) -> Fields:
    """Return the fields of a file with rows; known labels help to tell what separates them."""
    known = labels_of_file(path) if labels is None else labels
    with fmt.rows(path, options) as rows:
        names = list(rows.names())

    def sample(columns: Collection[str], n: int) -> list[list[object]]:
        with fmt.rows(path, options) as rows:
            return list(_sampled(rows, columns, n))

    if not names:
        raise DataError(f"{path} must hold at least one document, but has none; give another file")
    is_known = None if known is None else lambda name: known.find(name) is not None
    return detect_fields(ColumnSample(path, names, sample), options, is_known)


def labeled_layout(
    path: str | Path, fmt: RowFormat, known: LabelSpace, options: ReadOptions
) -> Columns | Fields | None:
    """Return what columns hold of documents that may have labels, by the content of a file; None without labels."""
    with fmt.rows(path, options) as rows:
        names = list(rows.names())
    if not names or (options.columns is not None and is_table(names, options.columns, with_labels=False)):
        return layout_of_names(path, names, options)
    fields = _file_fields(path, fmt, known, options)
    if not fields.labels:
        return None
    _tell(path, fmt, options, fields)
    return fields


def layout_of_names(path: str | Path, names: Sequence[str], options: ReadOptions) -> Columns | Fields | None:
    """Return what columns hold of documents that may have labels, by their names only; None without labels."""
    if not names:
        return None
    if options.columns is not None and is_table(names, options.columns, with_labels=False):
        return options.columns if set(options.columns.output_names) <= set(names) else None
    fields = detect_fields(ColumnSample(path, names), options)
    return fields if fields.labels else None


def _sampled(rows: Rows, columns: Collection[str], n: int) -> Iterator[list[object]]:
    size = 0
    for _, row in islice(rows.read(columns), n):
        cells = [row.get(name) for name in columns]
        yield cells
        size += sum(len(cell) for cell in cells if isinstance(cell, str))
        if size > SAMPLE_CHARACTERS:
            return


def _tell(path: str | Path, fmt: RowFormat, options: ReadOptions, fields: Fields | None) -> None:
    """Report what was detected, if a reader of the file's name would not expect it."""
    parts = [] if options.encoding in (None, UTF_8) else [f"encoding {options.encoding}"]
    if fmt.name in _USUAL:
        dialect = str(read_dialect(path, options.encoding or UTF_8, options.delimiter))
        parts += [dialect] if dialect != _USUAL[fmt.name] else []
    if fields is not None and fields != options.fields:
        parts.append(describe_fields(fields))
    if any(parts):
        options.say(f"{path}: {', '.join(filter(None, parts))}")


def _is_prefix(start: LabelSpace, labels: LabelSpace) -> bool:
    return len(start) <= len(labels) and all(a == b for a, b in zip(start.names, labels.names, strict=False))
