"""Documents with labels as Python objects: what ``fit`` and ``evaluate`` take.

1. A table (pandas, polars, pyarrow, Hugging Face datasets, a list of dicts): the columns with texts and labels are
   named, or inputs and outputs as for ``labelspace train``. A table with only numbers is a matrix of features.
2. A matrix of features, sparse or dense, or a column of embeddings.
3. A column of texts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp

from labelspace.data.dataset_builder import assemble
from labelspace.data.label_mapping import merge_spellings
from labelspace.data.objects.frames import Frame, to_frame
from labelspace.data.objects.given_labels import indicator_labels, label_rows, read_labels, to_label_space
from labelspace.data.objects.inputs import Documents, frame_texts, frame_values, to_matrix
from labelspace.data.read_options import NO_SEPARATOR, ReadOptions, TableOptions
from labelspace.data.records import Record
from labelspace.data.side_columns import VECTORS, check_vectors, dataset_with_vectors
from labelspace.data.table import name_list, row_labels, row_text, side_columns, table_columns
from labelspace.data.texts import check_texts
from labelspace.errors import DataError, ParameterError
from labelspace.estimator.state_constraints import must
from labelspace.options import Option
from labelspace.types import Columns, Csr, Dataset, Fields, Floats, LabelSpace, SideColumns

Labels = Any
"""Names, ids or a matrix of 0 and 1, of any package; or the columns of a table with them."""
_STANDARD = Fields()  # the columns that need not be named
_VECTORS = "The column of vectors beside the text, or an array with a row for each document."
_LABEL_NAMES = "The names of the columns of a matrix of labels, or of label ids."


class DataOptions(TableOptions, total=False):
    """How Python objects are read as documents with labels."""

    label_names: Annotated[Sequence[str] | LabelSpace, Option(_LABEL_NAMES)]
    vectors: Annotated[Any, Option(_VECTORS)]


class DocumentReader:
    """Reads Python objects as a data set; what a tagger knows from training is the default.

    >>> DocumentReader({"label_separator": "|"}).dataset(["rye bread", "tea"], ["food|bread", "drink"]).labels.names
    ['bread', 'drink', 'food']
    """

    def __init__(
        self,
        options: DataOptions,
        known: LabelSpace | None = None,
        columns: Columns | None = None,
        fields: Fields | None = None,
    ) -> None:
        named = options.get("label_names")
        if named is not None:
            known = named if isinstance(named, LabelSpace) else LabelSpace(name_list("label_names", named))
        self.options, self.known, self.fields = options, known, fields
        self.separator = ReadOptions(label_separator=options.get("label_separator")).label_separator
        self.columns = table_columns(options) or (None if "text" in options else columns)
        self.beside = ReadOptions(beside=side_columns(options), fields=fields).side_columns
        self.vectors: Floats | None = None
        vectors = options.get("vectors")
        if vectors is not None and not isinstance(vectors, str):
            self.vectors = check_vectors(np.asarray(vectors), "vectors")
            self.vectors_name, self.beside = self.beside.vectors or VECTORS, replace(self.beside, vectors=None)

    def dataset(self, data: Documents, labels: Labels = None) -> Dataset:
        """Return the documents and their labels as a data set."""
        found = self._read(data, labels)
        if self.vectors is not None:
            found = dataset_with_vectors(found, self.vectors, self.vectors_name, "vectors")
        if not (self.options.get("normalize_labels") or (self.fields is not None and self.fields.normalize_labels)):
            return found
        merged, _ = merge_spellings(found, 0 if self.known is None else len(self.known))
        fields = None if merged.fields is None else replace(merged.fields, normalize_labels=True)
        return replace(merged, fields=fields)

    def _read(self, data: Documents, labels: Labels) -> Dataset:
        if isinstance(data, Dataset):
            return self._of_dataset(data, labels)
        if isinstance(data, Iterator):
            data = list(data)
        frame = to_frame(data)
        if frame is not None and self.columns is not None:
            return self._of_table(frame, labels, self.columns)
        if frame is not None:
            return self._of_frame(frame, labels)
        matrix = to_matrix(data)
        texts = None if matrix is not None else check_texts(data)
        of_table = {"text", "inputs", "outputs", "id", "numeric", "categorical"}
        for name in self.options.keys() & (of_table if self.vectors is not None else {*of_table, "vectors"}):
            kind = type(data).__name__
            raise ParameterError(f"{name} names a column of a table, but the data are a {kind}; leave it out")
        if texts is None:
            return self._of_matrix(matrix, labels)
        Y, space = self._labels(labels, len(texts))
        return Dataset(Y, space, texts=texts)

    def _of_dataset(self, data: Dataset, labels: object) -> Dataset:
        if labels is not None or self.options:
            raise ParameterError("a Dataset has labels of its own, but labels or options are given; leave them out")
        if self.known is None:
            return data
        Y, space = to_label_space(data.Y, data.labels, self.known)
        filtered = data.filtered
        if filtered is not None:
            filtered, space = to_label_space(filtered, data.labels, space)
            Y.resize((len(data), len(space)))
        return replace(data, Y=Y, labels=space, filtered=filtered)

    def _of_matrix(self, matrix: Documents, labels: Labels) -> Dataset:
        if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
            problem = f"are an array of shape {matrix.shape} and type {matrix.dtype}"
            remedy = "give a row of numbers for each document"
            raise DataError(f"features must be a matrix of numbers, but {problem}; {remedy}")
        Y, space = self._labels(labels, matrix.shape[0])
        return Dataset(Y, space, X=sp.csr_matrix(matrix, dtype=np.float32))

    def _labels(self, labels: Labels, n: int) -> tuple[Csr, LabelSpace]:
        if labels is None:
            raise DataError("each document must have labels, but none are given; write fit(texts, labels)")
        return read_labels(labels, n, self.known, self.separator)

    def _of_table(self, frame: Frame, labels: object, columns: Columns) -> Dataset:
        if labels is not None:
            raise ParameterError("outputs name the columns with labels, but labels are given too; leave one out")
        id_column = self._id_column(frame)
        ids = map(str, range(len(frame))) if id_column is None else _ids(frame, id_column)
        rows = zip(ids, frame.rows([*columns.inputs, *columns.output_names]), strict=True)
        texts = frame_values(frame, [row_text(row, columns) for row in frame.rows(columns.inputs)], columns.beside)
        records = (
            Record(name, text, None, row_labels(row, columns), line)
            for line, (text, (name, row)) in enumerate(zip(texts, rows, strict=True), start=1)
        )
        return assemble(records, f"the {frame.kind}", self.known, columns)

    def _of_frame(self, frame: Frame, labels: Labels) -> Dataset:
        text = self._text_columns(frame)
        names = self._label_columns(labels)
        if not text:
            numbers = None if names else frame.numbers()
            if numbers is None:
                problem = f"is not, and the {frame.kind} has: {', '.join(frame.names)[:200]}"
                remedy = f"write text={next(iter(frame.names), 'title')!r}"
                raise DataError(f"the column with the texts must be named, but {problem}; {remedy}")
            return self._of_matrix(numbers, labels)
        texts, id_column = frame_values(frame, frame_texts(frame, text), self.beside), self._id_column(frame)
        separator, indicators = None, False
        if names:
            separator = self.separator or (self.fields or Fields(label_separator=None)).label_separator
            Y, space, indicators = self._of_columns(frame, names, separator)
            separator = None if separator == NO_SEPARATOR else separator
        else:
            Y, space = self._labels(labels, len(frame))
        fields = Fields(text, names, id_column, separator, indicators, beside=self.beside)
        ids = None if id_column is None else _ids(frame, id_column)
        return Dataset(Y, space, texts, ids=ids, fields=fields)

    def _of_columns(self, frame: Frame, names: tuple[str, ...], separator: str | None) -> tuple[Csr, LabelSpace, bool]:
        """Return Y of the label columns, the labels, and whether the columns are labels that hold 0 and 1."""
        columns = [frame[name] for name in names]
        if len(names) > 1 and all(map(_is_flag, (value for column in columns for value in column))):
            matrix = np.array([[bool(value) for value in column] for column in columns], np.float32).T
            return *indicator_labels(matrix, names, self.known), True
        detect = self.fields is None or self.fields.labels != names
        cells = [label_rows(column, separator, detect) for column in columns]
        rows = [[label for part in parts for label in part] for parts in zip(*cells, strict=True)]
        return *read_labels(rows, len(frame), self.known), False

    def _text_columns(self, frame: Frame) -> tuple[str, ...]:
        given = self.options.get("text")
        if given is not None:
            return tuple(name_list("text", given))
        if self.fields is not None and self.fields.text:
            return self.fields.text
        return _STANDARD.text if set(_STANDARD.text) <= set(frame.names) else ()

    def _label_columns(self, labels: Labels) -> tuple[str, ...]:
        """Return the columns with the labels; none if the labels themselves are given."""
        if labels is None:
            return self.fields.labels if self.fields is not None and self.fields.labels else _STANDARD.labels
        is_named = isinstance(labels, str) or (isinstance(labels, (list, tuple)) and all(map(_is_str, labels)))
        return tuple(name_list("labels", labels)) if is_named else ()

    def _id_column(self, frame: Frame) -> str | None:
        known = _STANDARD.id if self.fields is None else self.fields.id
        return self.options.get("id") or (known if known in frame.names else None)


def saved_fields(saved: Any) -> Fields:  # noqa: ANN401 - of a file
    """Return the fields that a model was saved with, checked."""
    must(isinstance(saved, Mapping) and saved.keys() <= _STANDARD.__dataclass_fields__.keys(), "the fields of a file")
    for key, value in saved.items():
        if key in ("text", "labels"):
            must(isinstance(value, list) and all(map(_is_str, value)), f"names of columns as {key}")
        elif key in ("id", "label_separator"):
            must(value is None or isinstance(value, str), f"a text as {key}")
        elif key == "beside":
            saved = {**saved, key: saved_side_columns(value)}
        elif key == "features":
            must(isinstance(value, str), "a name of a column as features")
        else:
            must(isinstance(value, bool), f"true or false as {key}")
    return Fields(**saved)


def saved_columns(saved: Any) -> Columns:  # noqa: ANN401 - of a file
    """Return the columns of a table that a model was saved with; the columns beside its texts are checked."""
    return Columns(**{**saved, "beside": saved_side_columns(saved.get("beside", {}))})


def saved_side_columns(saved: Any) -> SideColumns:  # noqa: ANN401 - of a file
    """Return the columns beside the texts that a model was saved with, checked."""
    must(isinstance(saved, Mapping) and saved.keys() <= {"numeric", "categorical", "vectors"}, "columns beside texts")
    for key in ("numeric", "categorical"):
        names = saved.get(key, [])
        must(isinstance(names, list) and all(map(_is_str, names)), f"names of columns as {key}")
    must(saved.get("vectors") is None or _is_str(saved["vectors"]), "a name of a column as vectors")
    return SideColumns(**saved)


def _ids(frame: Frame, name: str) -> list[str]:
    ids = frame[name]
    if None in ids:
        raise DataError(f"each document must have an id, but row {ids.index(None)} has none in {name!r}; add it")
    return list(map(str, ids))


def _is_str(value: object) -> bool:
    return isinstance(value, str)


def _is_flag(value: object) -> bool:
    return value is None or (isinstance(value, (Real, np.bool_)) and value in (0, 1))
