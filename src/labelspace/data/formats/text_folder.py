"""A folder of texts, one document per file: Annif's full-text corpus, or texts without labels.

A document is ``doc.txt``. Its labels, if any, are in ``doc.tsv`` or ``doc.key``, one per line: a name, a URI in angle
brackets, or ``<uri><TAB>name``. A ``doc.json`` is a document too, with its labels: ``{"text": ..., "subjects": [{"uri":
..., "label": ...}], "document_id": ...}``. The encoding is detected file by file.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from labelspace.data.files import UTF_8, detect_encoding, lines, replacing
from labelspace.data.formats.annif import is_uri
from labelspace.data.formats.base import BOM, RecordFormat, check_has_texts
from labelspace.data.read_options import ReadOptions
from labelspace.data.records import Label, Location, Record, Subject, parse_object, subject_label, to_record, to_records
from labelspace.errors import DataError
from labelspace.types import Dataset, LabelSpace
from labelspace.types.limits import MAX_LINE_BYTES

TEXT, DOCUMENT = ".txt", ".json"
SUBJECTS = ".tsv", ".key"  # if both exist, Annif reads the first


def records(path: str | Path, options: ReadOptions) -> Iterator[Record]:
    """Read the documents in the order of the file names, whose stems are the ids; all ``.txt`` come first.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "apple.txt").write_text("red fruit"), Path(folder, "apple.key").write_text("fruit")
    ...     list(records(folder, ReadOptions()))
    [Record(id='apple', text='red fruit', features=None, labels=('fruit',), line=1)]
    """
    files = _files(path)
    texts = [file for file in files if file.suffix == TEXT]
    _check(path, files, {file.stem for file in texts})
    reported = {UTF_8}

    def encoding_of(file: Path) -> str:
        """Return the given or the detected encoding; each one other than UTF-8 is reported once."""
        encoding = options.encoding or detect_encoding(file)
        if options.encoding is None and encoding not in reported:
            options.say(f"{file}: encoding {encoding}; other files may have it too")
            reported.add(encoding)
        return encoding

    for file in texts:
        beside = next((named for ending in SUBJECTS if (named := file.with_suffix(ending)).is_file()), None)
        labels = () if beside is None else tuple(dict.fromkeys(_subjects(beside, encoding_of(beside))))
        yield Record(file.stem, _read_text(file, encoding_of(file)), None, labels, 1)
    for file in files:
        if file.suffix == DOCUMENT:
            yield _document(file, encoding_of(file))


def recognizes_folder(path: str | Path) -> bool:
    """Return whether a folder has such documents, and nothing else."""
    files = _files(path)
    try:
        _check(path, files, {file.stem for file in files if file.suffix == TEXT})
    except DataError:
        return False
    return True


def _files(folder: str | Path) -> list[Path]:
    """Return what is in a folder, in the order of the names; hidden files are left out."""
    try:
        names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
        " ".join(names).encode()
    except OSError as error:
        problem = f"it cannot be read ({error.strerror or error})"
        raise DataError(f"{folder} must be a folder of texts, but {problem}; check the path") from error
    except UnicodeEncodeError as error:
        shown = ascii(error.object[max(error.start - 20, 0) : error.start + 20])
        raise DataError(f"{folder}: expected file names in UTF-8, but there is {shown}; rename it") from None
    return [Path(folder, name) for name in names]


def _check(path: str | Path, files: list[Path], stems: set[str]) -> None:
    """Raise DataError for a file that belongs to no document; a PDF, say, may lie next to the text made of it."""
    for file in files:
        if file.suffix == DOCUMENT and file.stem in stems:
            problem = f"there is a {file.stem}{TEXT} too"
            raise DataError(f"{file}: expected each document in one file, but {problem}; remove one of them")
        if file.suffix in SUBJECTS and file.stem not in stems:
            problem = f"there is no {file.stem}{TEXT}"
            raise DataError(f"{file}: expected the text of these labels next to it, but {problem}; add or remove it")
        if not file.is_file() or (file.suffix != DOCUMENT and file.stem not in stems):
            rule = "files that are, or belong to, a .txt or .json document"
            raise DataError(f"{path}: expected {rule}, but there is {file.name!r}; move it away, or save it as text")
    if not any(file.suffix in (TEXT, DOCUMENT) for file in files):
        raise DataError(f"{path}: expected {TEXT} or {DOCUMENT} files in the folder, but there are none; add them")


def _read_text(file: Path, encoding: str) -> str:
    limit, parts, size = MAX_LINE_BYTES.value, [], 0
    for line, text in lines(file, encoding):
        size += len(text)
        if size > limit:
            rule = f"{file}:{line}: expected a text of at most {limit} characters"
            raise DataError(f"{rule}, but there are more; split it, or {MAX_LINE_BYTES.raise_it}")
        parts.append(text)
    return "".join(parts)


def _subjects(file: Path, encoding: str) -> Iterator[Label]:
    """Return the labels of a file, one per line: a URI, a name, or both; skip what follows, such as a score."""
    for _, line in lines(file, encoding):
        uri = name = None
        for cell in filter(None, map(str.strip, line.split("\t"))):
            if cell.startswith("<") and cell.endswith(">") and len(cell) > len("<>"):
                uri = cell[1:-1]
            else:
                name = cell
                break
        if uri is not None and name is not None:
            yield Subject(uri, name)
        elif (one := uri or name) is not None:
            yield one


def _document(file: Path, encoding: str) -> Record:
    location = Location(file, 1)
    row = parse_object(_read_text(file, encoding), location)
    subjects = row.get("subjects") or []
    if not isinstance(subjects, list):
        raise location.expected("'subjects' to be a list", f"it is {subjects!r:.40}", 'write [{"uri": "..."}, ...]')
    labels = [subject_label(given, location) for given in subjects]
    fields = {"id": row.get("document_id") or file.stem, "text": row.get("text"), "labels": labels}
    return to_record(fields, 0, location)


def write(path: str | Path, dataset: Dataset) -> None:
    """Write a new folder, whose files are named by the ids; features are not in this format."""
    check_has_texts(dataset, path)
    target = Path(path)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise DataError(f"{path} must be a new folder, or an empty one, but it is not; give another name")
    with replacing(path) as work:
        try:
            work.mkdir()
            _write_documents(work, dataset)
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            raise


def _write_documents(folder: Path, dataset: Dataset) -> None:
    ending = SUBJECTS[0] if any(concept.uri for concept in dataset.labels.concepts or ()) else SUBJECTS[1]
    taken: set[str] = set()
    for record in to_records(dataset):
        name, text = record.id, record.text or ""
        if not name or name.startswith(".") or set(name) & set("/\\\0") or name.casefold() in taken:
            problem = f"{name!r:.40} occurs twice" if name.casefold() in taken else f"one is {name!r:.40}"
            raise DataError(f"ids must be names for files, each once, but {problem}; change it, or write .jsonl")
        if text.startswith(BOM):
            raise DataError(f"texts must not start with a byte order mark, but that of {name!r:.40} does; remove it")
        taken.add(name.casefold())
        Path(folder, name + TEXT).write_bytes(text.encode())
        if record.labels:
            subjects = "".join(_line(label, dataset.labels) for label in record.labels)
            Path(folder, name + ending).write_bytes(subjects.encode())


def _line(label: Label, space: LabelSpace) -> str:
    number = label if isinstance(label, int) else space.index[str(label)]
    uri, name = space.concept(number).uri, space.names[number]
    is_cell = name == name.strip() and len(name.splitlines()) == 1 and "\t" not in name and not name.startswith(BOM)
    if not is_cell or (name.startswith("<") and name.endswith(">")) or (uri is not None and not is_uri(uri)):
        shown = name if uri is None else f"<{uri}> {name}"
        rule = "a label must be a URI, a name on one line without tabs, outer spaces or a byte order mark, or both"
        raise DataError(f"{rule}, but there is {shown!r:.60}; rename it, or write .jsonl")
    return f"{name}\n" if uri is None else f"<{uri}>\t{name}\n"


_SPLITS = {split: split for split in ("train", "dev", "test")}
FORMAT = RecordFormat(
    "text_folder", "a folder of texts", (), write, documents=records, is_text=False, split_names=_SPLITS
)
