"""The writer of a file of predictions, by the ending of its name."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from labelspace.data.answer_files.label_display import LabelDisplay
from labelspace.data.answer_files.prediction import Prediction
from labelspace.data.answer_files.sparse_scores import writing_scores
from labelspace.data.answer_files.tables import writing_csv, writing_parquet
from labelspace.data.archives import compression, without_compression
from labelspace.data.files import writing_text
from labelspace.errors import DataError, require

Add = Callable[[Prediction], None]
Dump = Callable[[Mapping[str, object]], str]
ANNIF = ".annif.jsonl"
ENDINGS = {
    ANNIF: "documents with subjects, which Annif reads",
    ".jsonl": "a JSON object per document",
    ".csv": "a row per document and label",
    ".tsv": "the same, separated by tabs",
    ".parquet": "the same, typed",
    ".npz": "a sparse matrix of scores (SciPy)",
    ".txt": "the same as text, label:score",
}
_READ_AS_IT_IS = (".parquet", ".npz")


def answer_format(path: str | Path) -> str:
    """The kind of a file of predictions, by its ending; an unknown one is an error.

    >>> answer_format("answers.csv.gz"), answer_format("answers.annif.jsonl")
    ('.csv', '.annif.jsonl')
    """
    name = Path(path).name.lower()
    ending = next((ending for ending in ENDINGS if without_compression(name).endswith(ending)), "")
    kind = compression(name)
    if not ending or kind == ".zip":
        raise DataError(
            f"a file of predictions must end with {', '.join(ENDINGS)}, most of them also with .gz or .zst, but is "
            f"{Path(path).name!r}; rename it"
        )
    if kind and ending in _READ_AS_IT_IS:
        problem = f"so it must not end with {kind}, but is {Path(path).name!r}"
        raise DataError(f"{ending} is read without unpacking, {problem}; leave {kind} out")
    if ending == ".parquet":
        require("pyarrow", "parquet", "writing .parquet")
    return ending


def writing_answers(
    path: str | Path, display: LabelDisplay, n_labels: int, dump: Dump = json.dumps
) -> AbstractContextManager[Add]:
    """Open a file of predictions; the file is there once all were added, and not at all after an error.

    ``dump`` makes a line of the JSON object of a document.
    """
    ending = answer_format(path)
    if ending in (".npz", ".txt"):
        return writing_scores(path, n_labels, as_text=ending == ".txt")
    if ending == ".parquet":
        return writing_parquet(path, display)
    if ending in (".csv", ".tsv"):
        return writing_csv(path, display, "," if ending == ".csv" else "\t")
    if ending == ANNIF:
        return _writing_lines(path, lambda prediction: dump(_annif_document(prediction, display)))
    return _writing_lines(path, lambda prediction: dump(prediction.as_json))


@contextmanager
def _writing_lines(path: str | Path, line: Callable[[Prediction], str]) -> Iterator[Add]:
    with writing_text(path) as file:

        def add(prediction: Prediction) -> None:
            file.write(line(prediction) + "\n")

        yield add


def _annif_document(prediction: Prediction, display: LabelDisplay) -> dict[str, object]:
    """A document with subjects as Annif 1.4 and later read them; it has no place for scores."""
    record = prediction.record
    if record.text is None:
        problem = f"document {record.id!r} has features alone"
        raise DataError(f"documents for Annif must have texts, but {problem}; write .jsonl or .csv")
    shown = map(display.shown, prediction.labels)
    subjects = [
        {"label": label.name} if label.uri is None else {"uri": label.uri, "label": label.name} for label in shown
    ]
    return {"document_id": record.id, "text": record.text, "subjects": subjects}
