"""Labels of documents as a matrix: a column per label, whose names may be in a file in the same folder."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from labelspace.data.label_files import numbered_labels
from labelspace.errors import DataError
from labelspace.types import Csr, LabelSpace


def label_ones(Y: Csr, where: str | Path) -> Csr:
    """Return a matrix of labels as ones: values above 0 mark a label, 0 none.

    >>> label_ones(sp.csr_matrix([[0.5, 0, 1]]), "Y.npz").toarray().tolist()
    [[1.0, 0.0, 1.0]]
    """
    wrong = Y.data[~(Y.data >= 0)]
    if len(wrong):
        raise DataError(f"{where} must hold 1 where a document has a label, but holds {wrong[0]:g}; correct it")
    ones = sp.csr_matrix((Y.data > 0, Y.indices, Y.indptr), shape=Y.shape).astype(np.float32)
    ones.eliminate_zeros()
    return ones


def distinct_names(names: Sequence[str], ids: Iterable[str]) -> list[str]:
    """Return names of labels; a name that several labels have is followed by the id, an empty one is the id.

    >>> distinct_names(["tea", "cup", "tea", ""], ["B1", "B2", "B3", "B4"])
    ['tea <B1>', 'cup', 'tea <B3>', '<B4>']
    """
    count = Counter(names)
    return [
        name if count[name] == 1 and name else f"{name} <{id_}>".strip() for name, id_ in zip(names, ids, strict=True)
    ]


def in_label_space(
    Y: Csr, own: LabelSpace | None, given: LabelSpace | None, where: str | Path
) -> tuple[Csr, LabelSpace]:
    """Return the matrix and the label space of a file with the labels ``own``, None if its columns have no names.

    The space is ``given`` if that is not None, with the names of used columns that it does not have appended. Columns
    without names are the labels of that space by number.

    >>> Y, space = in_label_space(sp.csr_matrix([[1, 1]]), LabelSpace(["b", "c"]), LabelSpace(["a", "b"]), "Y.npz")
    >>> space.names, Y.toarray().tolist()
    (['a', 'b', 'c'], [[0, 1, 1]])
    """
    known = given if own is None else own
    if known is not None and len(known) < Y.shape[1]:
        raise DataError(
            f"{where} must have no more labels than are known, but has {Y.shape[1]} columns for {len(known)} names; "
            "give the label names of this data set"
        )
    if given is None or own is None:
        space = numbered_labels(Y.shape[1], Y.nnz, where, 1) if known is None else known
        columns = np.arange(Y.shape[1])
    else:
        used = np.unique(Y.indices)
        space = given.extended(own.names[column] for column in used if given.find(own.names[column]) is None)
        columns = np.zeros(Y.shape[1], np.int64)
        columns[used] = [space.find(own.names[column]) for column in used]
    moved = sp.csr_matrix((Y.data, columns[Y.indices].astype(np.int32), Y.indptr), shape=(Y.shape[0], len(space)))
    moved.sort_indices()
    return moved, space


def check_rows(sizes: dict[str, int | None]) -> None:
    """Raise DataError for files of one split with different numbers of documents; None stands for a missing file."""
    present = {name: size for name, size in sizes.items() if size is not None}
    if len(set(present.values())) > 1:
        listed = ", ".join(f"{name} has {size:,}" for name, size in present.items())
        raise DataError(f"the files of one split must have one row per document, but {listed}; give matching files")
    if not any(present.values()):
        raise DataError(f"{next(iter(present))} must hold at least one document, but has none; give another file")
