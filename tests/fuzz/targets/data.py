"""Read a data folder in every way, learn from it, tag its documents, and convert it to other formats."""

from dataclasses import replace
from functools import cache
from pathlib import Path

from labelspace.data.checks import Documents, run_checks
from labelspace.data.cleaning import clean
from labelspace.data.conversion import convert
from labelspace.data.read_options import ReadOptions
from labelspace.data.source import Source, iter_records, open_source, read_dataset
from labelspace.features import Tfidf
from labelspace.report.tables import dataset_stats
from labelspace.tagger import Tagger
from tests.fuzz.bases.data import COLUMNS, FORMATS
from tests.fuzz.bases.models import documents
from tests.fuzz.targets.outcome import Attempts


def run(base: str, folder: Path, out: Path) -> tuple[str, str]:
    """The outcome of one case."""
    attempts = Attempts()
    columns = COLUMNS if "table" in base else None
    source = attempts(open_source, folder, ReadOptions(columns=columns))
    attempts.answers = 0
    if source is not None:
        learn(source, attempts)
    for path in sorted(folder.iterdir()):
        if path.name not in ("labels.jsonl", "hierarchy.tsv"):
            tag(path, columns, attempts)
            attempts(read_dataset, path, documents().labels, columns)
            options = ReadOptions(columns=columns)
            for ending in FORMATS:
                attempts(convert, path, out / f"to-{ending}" / f"all.{ending}", Tfidf(), None, options)
    return attempts.outcome


def learn(source: Source, attempts: Attempts) -> None:
    """Train on the folder, and show its statistics."""
    if source.labels_only:
        labels = attempts(source.labels)
        if labels is not None:
            attempts(lambda: Tagger("lexical").fit_labels(labels).tag("label 3 w1"))
        return
    train = attempts(source.train)
    if train is None:
        return
    attempts(dataset_stats, train)
    attempts(lambda: clean(checked(source)))
    tagger = attempts(lambda: Tagger("neighbors").fit_dataset(train))
    if tagger is not None:
        attempts(lambda: tagger.tag_batch(tagger.inputs_of(train), 3))


def checked(source: Source) -> Documents:
    """All splits of the folder, with all checks made."""
    read = Documents.read(source)
    run_checks(read)
    return read


def tag(path: Path, columns: object, attempts: Attempts) -> None:
    """Stream the documents to a model of texts and to one of features."""
    for ready_made in (False, True):

        def stream(ready_made: bool = ready_made) -> int:
            records = iter_records(path, ready_made=ready_made, columns=columns)
            return sum(1 for _ in _fitted(ready_made).tag_stream(records, 3, source=str(path)))

        attempts(stream)


@cache
def _fitted(ready_made: bool) -> Tagger:
    given = documents()
    return Tagger("neighbors").fit_dataset(given if ready_made else replace(given, X=None))
