"""Write a folder of texts as Annif's full-text corpus: ``doc.txt``, and its labels in ``doc.tsv`` or ``doc.key``."""

import shutil
from pathlib import Path

from labelspace.data.dataset_records import to_records
from labelspace.data.files import replacing
from labelspace.data.formats.annif import is_uri
from labelspace.data.formats.one_line import BOM, check_has_texts
from labelspace.data.formats.text_folder import SUBJECTS, TEXT
from labelspace.data.records import Label
from labelspace.errors import DataError
from labelspace.types import Dataset, LabelSpace


def write(path: str | Path, dataset: Dataset) -> None:
    """Write a new folder; files are named by the ids. Features are not in this format."""
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
    has_uris = any(concept.uri for concept in dataset.labels.concepts or ())
    ending = SUBJECTS[0] if has_uris else SUBJECTS[1]
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
    is_cell = name == name.strip() and len(name.splitlines()) == 1 and "\t" not in name
    if not is_cell or (name.startswith("<") and name.endswith(">")) or (uri is not None and not is_uri(uri)):
        shown = name if uri is None else f"<{uri}> {name}"
        raise DataError(
            "a label must be a URI, a name on one line without tabs and outer spaces, or both, but there is "
            f"{shown!r:.60}; rename it, or write .jsonl"
        )
    return f"{name}\n" if uri is None else f"<{uri}>\t{name}\n"
