"""The label files of a data file: ``labels.jsonl`` (names and synonyms by id) and ``hierarchy.tsv`` (edges).

Those of ``a.csv`` are ``a.labels.jsonl`` and ``a.hierarchy.tsv`` in its folder. The splits of a folder (``train.*``,
``dev.*``, ``test.*``) share its ``labels.jsonl`` and ``hierarchy.tsv``; other files in the folder are read without.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

from labelspace import store
from labelspace.data.archives import is_data_file, without_compression
from labelspace.data.files import lines, replacing, writing_text
from labelspace.data.records import Location, parse_object
from labelspace.errors import DataError
from labelspace.types import NO_CONCEPT, Concept, Hierarchy, LabelSpace
from labelspace.types.concept import FIELDS as CONCEPT_FIELDS
from labelspace.types.limits import MAX_LABELS

LABELS = store.LABELS
HIERARCHY = "hierarchy.tsv"
DEFINITION = "definition"  # what other tools call the description
FIELDS = ("label", "alt", *CONCEPT_FIELDS, DEFINITION)  # of a line of labels.jsonl
KINDS = (LABELS, HIERARCHY)
SPLITS = {"train": ("train", "trn"), "dev": ("dev", "valid", "val", "validation"), "test": ("test", "tst")}
"""The names of the file of each split, without the ending."""
SPLIT_NAMES = tuple(name for names in SPLITS.values() for name in names)


def read_labels(path: str | Path) -> LabelSpace:
    """Read ``{"label": name, "alt": [synonyms]}`` lines; the line number, from 0, is the label's id.

    A line may have a ``description`` too (other tools call it ``definition``), and that of a vocabulary ``id`` (the
    URI), ``notation``, ``names`` (by language) and ``hidden`` (synonyms).

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_labels(f"{folder}/labels.jsonl", LabelSpace(["cat", "dog"], [["kitty"], []]))
    ...     read_labels(f"{folder}/labels.jsonl").synonyms
    [['kitty'], []]
    """
    seen: dict[str, None] = {}
    synonyms: list[list[str]] = []
    concepts: list[Concept] = []
    no_synonyms: list[str] = []  # one for all labels: an empty list each would take more memory than the names
    for line, text in lines(path):
        location = Location(path, line)
        row = parse_object(text, location)
        name, alt = row.get("label"), row.get("alt")
        if not isinstance(name, str) or not name:
            raise location.expected("'label' to be a name", f"it is {name!r}", 'write {"label": "name"}')
        if name in seen:
            problem = f"{name!r} is in line {1 + list(seen).index(name)} too"
            raise location.expected("each label once", problem, "rename or merge the two")
        if alt is not None and not (isinstance(alt, list) and all(isinstance(word, str) for word in alt)):
            problem = f"it is {str(alt)[:40]!r}"
            raise location.expected("'alt' to be a list of names", problem, 'write "alt": ["name", ...]')
        concept = _concept(row, location)
        seen[name] = None
        shown = [word for word in alt or () if word not in concept.hidden]  # hidden ones last, each once
        synonyms.append([*shown, *concept.hidden] or no_synonyms)
        concepts.append(concept)
    has_concepts = any(concept is not NO_CONCEPT for concept in concepts)
    return LabelSpace(list(seen), synonyms if any(synonyms) else None, concepts=concepts if has_concepts else None)


def _concept(row: Mapping[str, object], location: Location) -> Concept:
    if row.keys().isdisjoint((*CONCEPT_FIELDS, DEFINITION)):
        return NO_CONCEPT
    definition = row.get(DEFINITION)
    if definition is not None:
        if row.get("description") not in (None, definition):
            raise location.expected("'description' or 'definition'", "there are both, and they differ", "leave one out")
        row = {**row, "description": definition}
    try:
        return Concept.from_json(row)
    except ValueError as error:
        raise location.expected(str(error), f"the line is {str(row)[:60]}", "correct it or leave it out") from None


def unread_fields(path: str | Path) -> list[str]:
    """Return the fields of the first line of a ``labels.jsonl`` that are not read."""
    first = [parse_object(text, Location(path, line)) for line, text in islice(lines(path), 1)]
    return [key for row in first for key in row if key not in FIELDS]


def write_labels(path: str | Path, labels: LabelSpace) -> None:
    """Write the names and synonyms of a label space."""
    with replacing(path) as work:
        store.write_names(work, labels)


def read_hierarchy(path: str | Path, labels: LabelSpace) -> LabelSpace:
    r"""Read ``child<TAB>parent`` lines as the hierarchy of the labels; unknown names are appended.

    Blank lines and lines that start with ``#`` are skipped. A label may have several parents; a cycle is an error.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "hierarchy.tsv").write_text("cat\tanimal\n")
    ...     space = read_hierarchy(f"{folder}/hierarchy.tsv", LabelSpace(["cat"]))
    >>> space.names, space.hierarchy.levels.tolist()
    (['cat', 'animal'], [1, 0])
    """
    pairs: list[tuple[str, str]] = []
    for line, text in lines(path):
        text = text.rstrip("\r\n")
        if not text.strip() or text.startswith("#"):
            continue
        child, tab, parent = text.partition("\t")
        if not (child and parent) or "\t" in parent:
            problem = f"found {text[:60]!r}"
            raise Location(path, line).expected("child<TAB>parent", problem, "write two names separated by one tab")
        pairs.append((child, parent))
    space = replace(labels, hierarchy=None).extended(name for pair in pairs for name in pair)
    edges = np.array([[space.index[child], space.index[parent]] for child, parent in pairs], np.int64)
    try:
        return replace(space, hierarchy=Hierarchy.from_edges(edges, len(space), space.names))
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def write_hierarchy(path: str | Path, labels: LabelSpace) -> None:
    """Write the edges of the hierarchy of a label space."""
    if labels.hierarchy is None:
        raise DataError(f"a hierarchy is needed to write {path}, but the label space has none; leave the file out")
    with writing_text(path) as file:
        for child, parent in labels.hierarchy.edges:
            pair = labels.names[child], labels.names[parent]
            if pair[0].startswith("#") or any(not name or set(name) & set("\t\r\n") for name in pair):
                rule = f"names in {path} must not contain tabs or line ends, nor a child start with '#'"
                raise DataError(f"{rule}, but there is the edge {pair[0]!r} -> {pair[1]!r}; rename the label")
            file.write("\t".join(pair) + "\n")


def write_label_files(labels: LabelSpace, file_of: Callable[[str], Path], with_names: bool = True) -> None:
    """Write names and hierarchy of labels to the files that ``file_of`` returns for their kinds."""
    if with_names:
        write_labels(file_of(LABELS), labels)
    if labels.hierarchy is not None:
        write_hierarchy(file_of(HIERARCHY), labels)


def own_file(path: str | Path, kind: str) -> Path:
    """Return the path of the label file that belongs to one data file.

    >>> own_file("data/a.csv.gz", LABELS).as_posix(), own_file("a.labels.jsonl", HIERARCHY).as_posix()
    ('data/a.labels.jsonl', 'a.hierarchy.tsv')
    """
    return Path(path).with_name(f"{_stem(path)}.{kind}")


def shared_file(path: str | Path, kind: str) -> Path | None:
    """Return the label file that the splits of a folder share; None if the data file is no split, or there is none."""
    shared = Path(path).with_name(kind)
    return shared if (_stem(path) in SPLIT_NAMES or Path(path).name == LABELS) and is_data_file(shared) else None


def label_file(path: str | Path, kind: str) -> Path | None:
    """Return the label file of a data file: its own, else the shared one of its folder; None if there is none."""
    own = own_file(path, kind)
    return own if is_data_file(own) else shared_file(path, kind)


def label_files(path: str | Path) -> list[Path]:
    """Return the label files that are read with a data file."""
    return [file for kind in KINDS if (file := label_file(path, kind)) is not None]


def unread_label_files(path: str | Path) -> list[Path]:
    """Return the label files in the folder of a data file that are not read with it, as it is no split."""
    beside = [Path(path).with_name(kind) for kind in KINDS if label_file(path, kind) is None]
    return [file for file in beside if is_data_file(file)]


def are_labels(path: str | Path) -> bool:
    """Return whether a file has labels by its name, and no documents."""
    name = Path(path).name
    return name == LABELS or name.endswith(f".{LABELS}")


def _stem(path: str | Path) -> str:
    """Return the name of a data file without its format."""
    return Path(without_compression(Path(path).name)).stem.removesuffix(".labels")


def labels_of_file(path: str | Path) -> LabelSpace | None:
    """Return the labels of the label file of a data file, or None."""
    beside = label_file(path, LABELS)
    return None if beside is None else read_labels(beside)


def with_hierarchy(path: str | Path, labels: LabelSpace) -> LabelSpace:
    """Return the labels with a hierarchy: their own, else that of the label file, else that of path names."""
    if labels.hierarchy is not None:
        return labels
    beside = label_file(path, HIERARCHY)
    if beside is not None:
        return read_hierarchy(beside, labels)
    if not labels.are_paths:
        return labels
    try:
        return labels.with_paths()
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def numbered_labels(n_labels: int, n_occurrences: int, path: str | Path, line: int) -> LabelSpace:
    """Return ``LabelSpace.numbered``; raise DataError for many more labels than occurrences of labels.

    A mistyped id in a small file must not fill the memory.
    """
    limit = max(MAX_LABELS.value, n_occurrences)
    if n_labels > limit:
        remedy = f"give the labels as names, name them in {own_file(path, LABELS)}, or {MAX_LABELS.raise_it}"
        raise Location(path, line).expected(f"at most {limit} labels without names", f"the ids need {n_labels}", remedy)
    return LabelSpace.numbered(n_labels)
