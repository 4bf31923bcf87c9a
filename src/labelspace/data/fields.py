"""Which columns of a file hold the texts, the labels and the ids of its documents, and its rows as records.

1. The columns that the options name; a name that the file does not have is an error.
2. For another file of a model or a data set, the columns that its training file had, if they are present.
3. The columns ``text``, ``labels`` and ``id``.
4. Columns with names that people give them: ``title`` and ``description``, ``tags``, ``sku``. Several text columns are
   joined; several columns that may be labels are an error that asks. The one column that is left is the text.
5. Columns that hold only 0 and 1 are labels with the names of their columns.

No column is taken twice, and of the columns of rule 4 none as labels whose cells are texts: see ``column_values``.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from labelspace.data.column_values import (
    JUDGED_ROWS,
    ColumnValues,
    column_values,
    likely_labels,
    unclear_labels,
    unclear_text,
)
from labelspace.data.label_separator import IsKnown, describe_other, detect_separator, shown_mark
from labelspace.data.read_options import NO_SEPARATOR, ReadOptions
from labelspace.data.records import Label, Location, Record, Rows, cell_labels, is_json, shown, to_record
from labelspace.data.side_columns import with_values
from labelspace.errors import DataError, ParameterError
from labelspace.types import Fields

# Names in lower case that people give to such columns.
TEXT_NAMES = """title subtitle headline name product_name question abstract abstracttext summary description content
    contents body document review comment sentence""".split()
LABEL_NAMES = """labels label tags tag categories category subjects subject subject_uris keywords topics topic genres
    genre classes class codes meshmajor targets target""".split()
ID_NAMES = "id doc_id docid document_id uid uuid sku pmid identifier _id".split()
FEATURES = "features"
# Rows that are read to tell what a column holds: few show whether its cells are texts; the separator of the labels, and
# 0 and 1, need many, as a rare value decides.
FEW_ROWS, MANY_ROWS = 200, 20_000
_SUBJECT = "subject"  # of a mail a text, of a book a label
_ANNIF_URIS = "subject_uris"  # in its CSV files; separated by spaces
_INDICATORS = frozenset({"", "0", "1", "0.0", "1.0", "true", "false"})  # in lower case
_TRUE = frozenset({"1", "1.0", "true"})
_TEXT = re.compile(r"(?<![a-z])texts?(?![a-z])")  # comment_text, text_en
_NUMBERED = re.compile(r"(.*?)[ _-]?\d+")


@dataclass(frozen=True)
class ColumnSample:
    """The names of a file's columns, and a reader of the cells of some of them in the first rows."""

    path: str | Path
    names: Sequence[str]
    sample: Callable[[Collection[str], int], list[list[object]]] = lambda columns, n: []  # n rows at most

    @property
    def unique(self) -> list[str]:
        """The columns whose names no other column has, so that they can be read."""
        return [name for name in self.names if self.names.count(name) == 1]

    def values(self, names: Sequence[str]) -> list[ColumnValues]:
        """Return what the first rows hold in some columns."""
        rows = self.sample(names, JUDGED_ROWS)
        return [column_values(name, [row[i] for row in rows if row[i] is not None]) for i, name in enumerate(names)]


def detect_fields(
    columns: ColumnSample, options: ReadOptions, is_known: IsKnown | None = None, with_labels: bool = True
) -> Fields:
    """Detect the fields of a file, with its label separator if ``with_labels``; see the rules above."""
    beside = options.side_columns
    for name in (*options.text, *options.labels, options.id, options.embeddings, *beside.names):
        if name is not None:
            check_column(columns.path, columns.names, name)
    twice = [name for name in options.text if name in options.labels]
    if twice:
        problem = f"{twice[0]!r} is named twice; leave it out of text or of labels"
        raise ParameterError(f"a column must be named once, but {problem}", options=["text", "labels"])
    columns = replace(columns, names=[name for name in columns.names if name not in beside.names])
    features = _features_column(columns, options)
    labels = _label_columns(columns, options) if with_labels else ()
    id_column = _id_column(columns, options)
    text = () if options.embeddings else _text_columns(columns, options, labels, id_column)
    if with_labels and not labels:
        labels = _indicator_columns(columns, {*text, id_column, features})
        if labels and not text and not options.embeddings:
            text = _rest(columns, {*labels, id_column, features})
    if not text and features not in columns.names:
        raise unclear_text(columns.path, columns.values(columns.unique), labels)
    if with_labels and not labels:
        _check_no_labels(columns, options, {*text, id_column, features})
    indicators = len(labels) > 1 and _are_indicators(columns, labels)
    separator = None if indicators or not labels else _separator(columns, labels, options, is_known)
    return Fields(text, labels, id_column, separator, indicators, options.merges_labels, features, beside)


def check_column(path: str | Path, names: Sequence[str], name: str) -> None:
    """Raise DataError unless a file has a column of this name."""
    if name not in names:
        close = get_close_matches(name, names, n=1)
        remedy = f"did you mean {close[0]!r}?" if close else "name an existing column, or add this one"
        raise DataError(f"{path} must have the column {name!r}, but has: {', '.join(names)[:200]}; {remedy}")


def _label_columns(columns: ColumnSample, options: ReadOptions) -> tuple[str, ...]:
    if options.labels:
        return options.labels
    known = options.fields
    others = [name for name in columns.names if name not in _taken(options)]
    if known is not None and known.labels and set(known.labels) <= set(others):
        return known.labels
    found = [name for name in others if name == "labels"] or _called(others, LABEL_NAMES)
    if "labels" not in found:
        texts = {column.name for column in columns.values(found) if column.is_text} if found else set()
        found = [name for name in found if name not in texts]
    if len(found) > 1:
        raise unclear_labels(columns.path, columns.values(columns.unique), found)
    if found:
        return tuple(found)
    numbered = {name: _NUMBERED.fullmatch(name.lower()) for name in others}
    return tuple(name for name, match in numbered.items() if match and match[1] in LABEL_NAMES)


def _taken(options: ReadOptions) -> set[str | None]:
    """Return the columns that are no labels, since the options or the training file say what else they are."""
    known = () if options.fields is None or options.text else options.fields.text
    return {*options.text, *known, options.id, options.embeddings}


def _check_no_labels(columns: ColumnSample, options: ReadOptions, used: Collection[str | None]) -> None:
    """Raise DataError if a column with the name of labels holds texts, while another one may hold labels."""
    named = _called([name for name in columns.names if name not in _taken(options)], LABEL_NAMES)
    values = columns.values(columns.unique) if named else []
    likely = likely_labels([column for column in values if column.name not in used])
    if likely is not None:
        raise unclear_labels(columns.path, values, [likely])


def _called(names: Iterable[str], known: Sequence[str]) -> list[str]:
    return [name for name in names if name.strip().lower() in known]


def _id_column(columns: ColumnSample, options: ReadOptions) -> str | None:
    if options.id is not None:
        return options.id
    if options.fields is not None and options.fields.id in columns.names:
        return options.fields.id
    found = _called(columns.names, ID_NAMES)
    return min(found, key=lambda name: ID_NAMES.index(name.strip().lower()), default=None)


def _text_columns(
    columns: ColumnSample, options: ReadOptions, labels: Collection[str], id_column: str | None
) -> tuple[str, ...]:
    if options.text:
        return options.text
    known = options.fields
    if known is not None and not known.text and known.features in columns.names:
        return ()
    others = [name for name in columns.names if name not in labels]
    if known is not None and known.text and set(known.text) <= set(others):
        return known.text
    exact = [name for name in others if name == "text"] or _called(others, ("text",))
    if len(exact) == 1:
        return tuple(exact)
    subjects = _called(others, (_SUBJECT,))
    called = [*TEXT_NAMES, _SUBJECT] if subjects and columns.values(subjects)[0].is_text else TEXT_NAMES
    found = [name for name in others if name.strip().lower() in called or _TEXT.search(name.lower())]
    if found or FEATURES in columns.names:
        return tuple(found)
    return _rest(columns, {*labels, id_column}) if labels or len(columns.names) <= 2 else ()


def _features_column(columns: ColumnSample, options: ReadOptions) -> str:
    """Return the column of ready-made features: the named one, or that of training, else the standard name."""
    if options.embeddings is not None:
        return options.embeddings
    known = FEATURES if options.fields is None else options.fields.features
    return known if known in columns.names else FEATURES


def _rest(columns: ColumnSample, used: Collection[str | None]) -> tuple[str, ...]:
    """Return the column that is left over, if it is one."""
    rest = [name for name in columns.names if name not in used]
    return tuple(rest) if len(rest) == 1 else ()


def _indicator_columns(columns: ColumnSample, used: Collection[str | None]) -> tuple[str, ...]:
    """Return the other columns, at least two, that hold only 0 and 1."""
    found = tuple(name for name in columns.names if name not in used and _are_indicators(columns, [name]))
    return found if len(found) > 1 else ()


def _are_indicators(columns: ColumnSample, names: Sequence[str]) -> bool:
    cells = (cell for row in columns.sample(names, MANY_ROWS) for cell in row if cell is not None)
    values = {str(cell).strip().lower() for cell in cells}
    return bool(values - {""}) and values <= _INDICATORS


def _separator(
    columns: ColumnSample, labels: tuple[str, ...], options: ReadOptions, is_known: IsKnown | None
) -> str | None:
    known = options.fields if options.fields is not None and options.fields.labels == labels else None
    asked = options.label_separator
    if asked is not None or known is not None:
        mark = asked if known is None or asked is not None else known.label_separator
        mark = None if mark == NO_SEPARATOR else mark
        other = describe_other(_label_cells(columns, labels, JUDGED_ROWS), mark)
        if other is not None and (asked is not None or mark is not None):
            options.say(f"{columns.path}: {other}")
        return mark
    if labels == (_ANNIF_URIS,):
        return " "
    if not any(isinstance(cell, str) for row in columns.sample(labels, FEW_ROWS) for cell in row):
        return None  # lists, which say themselves what their labels are
    return detect_separator(_label_cells(columns, labels, MANY_ROWS), columns.path, is_known)


def _label_cells(columns: ColumnSample, labels: tuple[str, ...], n_rows: int) -> list[str]:
    """Return the cells with names in the first rows, without lists and objects, which have marks of their own."""
    cells = [cell for row in columns.sample(labels, n_rows) for cell in row if isinstance(cell, str) and cell.strip()]
    return [cell for cell in cells if not is_json(cell)]


def describe_fields(fields: Fields) -> str:
    """Describe what is read from which column, in words; leave out what is standard.

    >>> describe_fields(Fields(("title",), ("tags",), "sku", ";")), describe_fields(Fields(label_separator=","))
    ("text: title, labels: tags (separated by ';'), id: sku", "labels separated by ','")
    """
    parts = [] if fields.text in ((), ("text",)) else [f"text: {' + '.join(fields.text)}"]
    how = "columns of 0 and 1" if fields.indicators else ""
    if fields.label_separator is not None:
        how = f"separated by {shown_mark(fields.label_separator)}"
    if fields.labels not in ((), ("labels",)):
        listed = " + ".join(fields.labels[:5]) + (f" + {len(fields.labels) - 5} more" if len(fields.labels) > 5 else "")
        parts.append(f"labels: {listed}{f' ({how})' if how else ''}")
    elif fields.labels and fields.label_separator not in (None, "|"):
        parts.append(f"labels {how}")
    if fields.beside:
        parts.append(f"beside the text: {', '.join(fields.beside.names)}")
    if fields.features != FEATURES:
        parts.append(f"vectors: {fields.features}")
    return ", ".join(parts if fields.id in (None, "id") else [*parts, f"id: {fields.id}"])


def field_records(rows: Rows, fields: Fields, with_labels: bool = True, first: int = 0) -> Iterator[Record]:
    """Return the documents of an open file, whose first row has the number ``first``; other columns are not read."""
    label_columns = fields.labels if with_labels else ()
    length: int | None = None
    named = [*fields.text, *label_columns, fields.features, *([] if fields.id is None else [fields.id])]
    named += fields.beside.names
    for number, (location, row) in enumerate(rows.read(named), start=first):
        vector = row.get(fields.features)
        if isinstance(vector, list):
            if length is not None and len(vector) != length:
                problem = f"this one has {len(vector)} numbers and the first {length}"
                raise location.expected("vectors of one length", problem, "give vectors that one model made")
            length = len(vector)
        standard = _text(row, fields.text, location)
        if fields.id is not None:
            standard["id"] = row.get(fields.id)
        if fields.features in row:
            standard["features"] = row[fields.features]
        record = to_record(standard, number, location, row_labels(row, fields, location) if with_labels else ())
        if fields.beside and record.text is not None:
            record = replace(record, text=with_values(record.text, row, fields.beside, str(location)))
        yield record


def _text(row: Mapping[str, object], columns: Sequence[str], location: Location) -> dict[str, object]:
    """Return the text of a row under ``text``, if there is a column of texts."""
    kinds = (str,) if len(columns) == 1 else (str, int, float)  # numbers are parts of a text, but none alone
    parts = [row.get(name) for name in columns]
    for name, value in zip(columns, parts, strict=True):
        if value is not None and not isinstance(value, kinds):
            raise location.expected(f"{name!r} to be a string", f"it is {shown(value)}", "write it in quotes")
    if len(columns) == 1:
        return {"text": parts[0]} if columns[0] in row else {}
    return {"text": "\n".join(str(value) for value in parts if value not in (None, ""))} if columns else {}


def row_labels(row: Mapping[str, object], fields: Fields, location: Location) -> tuple[Label, ...]:
    """Return the labels of a row, each once.

    >>> row_labels({"tags": "red; green"}, Fields(labels=("tags",), label_separator=";"), Location("a.csv", 2))
    ('red', 'green')
    """
    if fields.indicators:
        return tuple(name for name in fields.labels if str(row.get(name)).strip().lower() in _TRUE)
    found: list[Label] = []
    for name in fields.labels:
        found += cell_labels(row.get(name), name, fields.label_separator, location)
    return tuple(dict.fromkeys(found))
