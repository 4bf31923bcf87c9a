"""The label files in a data folder: ``labels.jsonl`` (names and synonyms by id) and ``hierarchy.tsv`` (edges)."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from labelspace import store
from labelspace.data.files import lines, replacing, writing_text
from labelspace.data.jsonl import parse_object
from labelspace.data.records import Location
from labelspace.errors import DataError
from labelspace.limits import MAX_LABELS
from labelspace.types import Hierarchy, LabelSpace

LABELS = store.LABELS
HIERARCHY = "hierarchy.tsv"


def read_labels(path: str | Path) -> LabelSpace:
    """Read ``{"label": name, "alt": [synonyms]}`` lines; the line number, from 0, is the label's id.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_labels(f"{folder}/labels.jsonl", LabelSpace(["cat", "dog"], [["kitty"], []]))
    ...     read_labels(f"{folder}/labels.jsonl").synonyms
    [['kitty'], []]
    """
    seen: dict[str, None] = {}
    synonyms: list[list[str]] = []
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
        seen[name] = None
        synonyms.append(alt or no_synonyms)
    return LabelSpace(list(seen), synonyms if any(synonyms) else None)


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
                raise DataError(
                    f"names in {path} must not contain tabs or line ends, nor a child start with '#', but there is "
                    f"the edge {pair[0]!r} -> {pair[1]!r}; rename the label"
                )
            file.write("\t".join(pair) + "\n")


def labels_beside(path: str | Path) -> LabelSpace | None:
    """The ``labels.jsonl`` in the folder of a data file, or None."""
    beside = Path(path).parent / LABELS
    return read_labels(beside) if beside.exists() else None


def hierarchy_beside(path: str | Path, labels: LabelSpace) -> LabelSpace:
    """The labels with a hierarchy: their own, else ``hierarchy.tsv`` beside a data file, else that of path names."""
    if labels.hierarchy is not None:
        return labels
    beside = Path(path).parent / HIERARCHY
    if beside.exists():
        return read_hierarchy(beside, labels)
    if not labels.are_paths:
        return labels
    try:
        return labels.with_paths()
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def numbered_labels(n_labels: int, n_occurrences: int, where: str) -> LabelSpace:
    """``LabelSpace.numbered``; a mistyped id in a file with few label occurrences must not fill the memory."""
    limit = max(MAX_LABELS.value, n_occurrences)
    if n_labels > limit:
        raise DataError(
            f"{where}: expected at most {limit} labels without names, but the ids need {n_labels}; give the labels as "
            f"names, add a {LABELS} in the same folder, or {MAX_LABELS.raise_it}"
        )
    return LabelSpace.numbered(n_labels)
