"""Select the labels that an answer may have: by name, by id, by a file of these, or by branches of the hierarchy.

1. An item of ``include`` or ``exclude`` is a name, or the id of a label (its number, from 0) if no label has that name.
   A ``Path`` is a file with one name or id per line; text is never read as a path, since it may come from a stranger.
   An item of ``under`` is a name, or the end of the path to a label: ``bread``, ``food > bread``.
2. The labels of ``include`` and the branches of ``under`` are allowed; all labels if neither is given.
3. Labels of ``exclude`` are not allowed, even if the other options allow them.
4. A label that was merged into another one stands for that one. A retired label is never allowed, and named in a note.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from itertools import compress, islice
from os.path import isfile
from pathlib import Path

import numpy as np

from labelspace.data.files import lines
from labelspace.errors import DataError, ParameterError
from labelspace.labels.hierarchy import hierarchy_among
from labelspace.labels.tag_options import Given
from labelspace.types import PATH_SEPARATOR, Bools, Hierarchy, Ints, LabelSpace
from labelspace.types.limits import MAX_SELECTION_CHARACTERS

COMPARED_NAMES = 20_000  # among which close matches of an unknown name are searched; more make the error slow
SHOWN = 3  # names in a message
CLOSE, CLOSE_SHORT = 0.75, 0.65  # similarity of close names, and of those with less than four characters; of typos in
# the labels of CookingSE 99 % are above it, and 16 % of words that are no label (76 % are above 0.6)
MAX_DIGITS = 18  # of an id: longer digit strings from a stranger are not converted to a number


@dataclass(frozen=True)
class Selection:
    """The labels that are allowed, and how the options were read."""

    labels: LabelSpace
    allowed: Bools  # (n_labels,)
    described: str
    notes: list[str] = field(default_factory=list)
    reads_files: bool = False

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """Return the hierarchy of the allowed labels."""
        return hierarchy_among(_hierarchy(self.labels), self.allowed)

    @property
    def summary(self) -> str:
        """Say how many labels are allowed, and by which options."""
        return f"{self.allowed.sum():,} of {self.labels.in_use.sum():,} labels are allowed: {self.described}"


def select_labels(
    labels: LabelSpace, include: Given = None, exclude: Given = None, under: Given = None
) -> Selection | None:
    """Return the labels that the options allow; None if no option is given.

    >>> space = LabelSpace(["food > bread > rye", "food > fish", "drink"]).with_paths()
    >>> chosen = select_labels(space, include=["drink"], under=["bread"], exclude="food > bread")
    >>> [space.names[label] for label in np.flatnonzero(chosen.allowed)], chosen.summary
    (['food > bread > rye', 'drink'], "2 of 5 labels are allowed: 'drink', under 'bread', without 'food > bread'")
    """
    given = {"include": listed(include), "exclude": listed(exclude), "under": listed(under)}
    if not any(given.values()):
        return None
    notes: list[str] = []
    allowed = labels.in_use & (not given["include"] and not given["under"])
    for item in given["include"]:
        allowed[_in_use(_labels_of("include", item, labels, notes), labels, item, notes)] = True
    for item in given["under"]:
        for top in _in_use([branch_label(labels, str(item))], labels, item, notes):
            allowed |= branch(_hierarchy(labels), top)
    for item in given["exclude"]:
        allowed[_in_use(_labels_of("exclude", item, labels, notes), labels, item, notes)] = False
    described = _described(given)
    if not allowed.any():
        raise ParameterError(f"at least one label must be allowed, but none is by: {described}; exclude fewer")
    reads_files = any(isinstance(item, Path) for item in [*given["include"], *given["exclude"]])
    return Selection(labels, allowed, described, notes, reads_files)


def branch(hierarchy: Hierarchy, label: int) -> Bools:
    """Return a mask of a label and all labels below it. Shape (n_labels,).

    >>> branch(Hierarchy.from_edges([[1, 0], [2, 1]], n_labels=4), 1).tolist()
    [False, True, True, False]
    """
    found = np.zeros(hierarchy.parents.shape[0], bool)
    children = hierarchy.parents.T.tocsr()
    frontier = np.array([label])
    while len(frontier):
        found[frontier] = True
        below = np.unique(children[frontier].indices)
        frontier = below[~found[below]]
    return found


def branch_label(labels: LabelSpace, path: str) -> int:
    """Return the label that a name, or the end of the path to a label, stands for."""
    hierarchy = _hierarchy(labels)
    if path in labels.index:
        return labels.index[path]
    ends = path.split(PATH_SEPARATOR)
    found = [label for label in _named_at_the_end(labels, ends[-1]) if _ends_with(labels, hierarchy, label, ends[:-1])]
    if len(found) == 1:
        return found[0]
    if not found:
        raise _unknown("under", path, labels, "a label of the hierarchy")
    names = ", ".join(repr(labels.names[label]) for label in found[:SHOWN])
    problem = f"{path!r} is the end of {len(found)}: {names}"
    raise ParameterError(f"under must be one label of the hierarchy, but {problem}; write more of it")


def _named_at_the_end(labels: LabelSpace, step: str) -> list[int]:
    """Return the labels whose name, or its last step, is this."""
    if step in labels.index:
        return [labels.index[step]]
    end = PATH_SEPARATOR + step
    return [label for label, name in enumerate(labels.names) if name.endswith(end)]


def _ends_with(labels: LabelSpace, hierarchy: Hierarchy, label: int, steps: Sequence[str]) -> bool:
    """Return whether these steps, the last first, lead up from a label."""
    frontier = {label}
    for step in reversed(steps):
        above = {int(parent) for below in frontier for parent in hierarchy.parents[below].indices}
        names = {parent: labels.names[parent] for parent in above}
        frontier = {at for at, name in names.items() if name == step or name.endswith(PATH_SEPARATOR + step)}
    return bool(frontier)


def _hierarchy(labels: LabelSpace) -> Hierarchy:
    if labels.hierarchy is None:
        remedy = "use include, or put a hierarchy.tsv into the data folder and train again"
        raise ParameterError(f"under needs a hierarchy of the labels, but the model was trained without one; {remedy}")
    return labels.hierarchy


def _labels_of(option: str, item: str | Path, labels: LabelSpace, notes: list[str]) -> list[int]:
    """Return the labels that an item of an option stands for; append a note if it is not a name."""
    if isinstance(item, Path):
        found = list(_labels_in(option, str(item), labels))
        notes.append(f"{option} {str(item)!r} was read as a file of {len(found):,} labels")
        return found
    label = label_of(item, labels)
    if label is None:
        raise _unknown(option, item, labels, "the name or the id of a label, or a file of these")
    if item not in labels.index:
        notes.append(f"{option} {item!r} is no name, and was read as the id of {labels.names[label]!r}")
    return [label]


def _in_use(found: list[int], labels: LabelSpace, item: str | Path, notes: list[str]) -> list[int]:
    """Return the labels that are answered in the place of some; append a note if an item names retired ones only."""
    if labels.current is None:
        return found
    now = [int(labels.current[label]) for label in found]
    answered = [label for label in now if label >= 0]
    if found and not answered:
        notes.append(f"{str(item)[:80]!r} is retired, and is never answered")
    return answered


def _labels_in(option: str, path: str, labels: LabelSpace) -> Iterator[int]:
    size, limit = 0, MAX_SELECTION_CHARACTERS.value
    for number, line in lines(path):
        size += len(line)
        if size > limit:
            remedy = f"give a file with one name per line, or {MAX_SELECTION_CHARACTERS.raise_it}"
            raise DataError(f"a file of labels must have at most {limit} characters, but {path} has more; {remedy}")
        item = line.strip()
        if item:
            label = label_of(item, labels)
            if label is None:
                raise _unknown(f"{path}:{number}: {option}", item, labels, "the name or the id of a label")
            yield label


def label_of(item: str, labels: LabelSpace) -> int | None:
    """Return the label of a name or URI, or else of an id; None if the item is neither.

    >>> space = LabelSpace(["bread", "fish"])
    >>> label_of("fish", space), label_of("0", space), label_of("2", space)
    (1, 0, None)
    """
    named = labels.find(item)
    if named is not None:
        return named
    is_id = item.isascii() and item.isdecimal() and len(item) <= MAX_DIGITS and int(item) < len(labels)
    return int(item) if is_id else None


def with_files(items: Sequence[str] | None, labels: LabelSpace) -> list[str | Path]:
    """Turn items typed on this machine that are no labels, but names of files, into paths."""
    return [Path(item) if label_of(item, labels) is None and isfile(item) else item for item in items or ()]


def ids_of(labels: LabelSpace, names: Sequence[str]) -> Ints:
    """Return the ids of labels that are given by name.

    >>> ids_of(LabelSpace(["bread", "fish"]), ["fish"]).tolist()
    [1]
    """
    for name in names:
        if name not in labels.index:
            raise _unknown("a label", name, labels, "given by its name")
    return np.array([labels.index[name] for name in names], np.int32)


def listed(given: Given) -> list[str | Path]:
    """Return the given items, one or several, as a list; raise ParameterError unless they are text or paths.

    >>> listed("bread"), listed(("bread", "fish")), listed(None)
    (['bread'], ['bread', 'fish'], [])
    """
    items = [given] if isinstance(given, (str, Path)) else [] if given is None else list(given)
    for item in items:
        if not isinstance(item, (str, Path)):
            raise ParameterError(
                f"labels must be chosen by text, but one is {item!r}; write its name, or its id as text"
            )
    return items


def _unknown(where: str, item: str, labels: LabelSpace, expected: str) -> ParameterError:
    close = close_names(item, labels)
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else "see labels.jsonl in the model's folder"
    return ParameterError(f"{where} must be {expected}, but {item[:80]!r} is none of {len(labels):,} labels; {hint}")


def close_names(item: str, labels: LabelSpace) -> list[str]:
    """Return a few names that resemble an item: regardless of case, or at the end of a path, or almost the same.

    Only labels in use are named.

    >>> close_names("bred", LabelSpace(["food > bread", "fish"])), close_names("nosuch", LabelSpace(["gnocchi"]))
    (['food > bread'], [])
    """
    compared: dict[str, list[str]] = {}
    names = labels.names if labels.current is None else compress(labels.names, labels.in_use.tolist())
    for name in islice(names, COMPARED_NAMES):
        for form in {name.lower(), name.rsplit(PATH_SEPARATOR, 1)[-1].lower()}:
            compared.setdefault(form, []).append(name)
    written = item[:80].lower()
    close = get_close_matches(written, compared, n=SHOWN, cutoff=CLOSE if len(written) > 3 else CLOSE_SHORT)
    return list(dict.fromkeys(name for form in close for name in compared[form]))[:SHOWN]


def _described(given: dict[str, list[str | Path]]) -> str:
    words = {"include": "", "under": "under ", "exclude": "without "}
    parts = [word + _some(given[option]) for option, word in words.items() if given[option]]
    return ", ".join(parts if given["include"] or given["under"] else ["all", *parts])


def _some(items: Sequence[str | Path]) -> str:
    shown = ", ".join(repr(str(item)[:80]) for item in items[:SHOWN])
    return shown if len(items) <= SHOWN else f"{shown} and {len(items) - SHOWN} more"
