"""Label codes as text, TSV and plain values for JSON, with a summary."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from labelspace.errors import ParameterError
from labelspace.labels.codes import Codes, CodeTree
from labelspace.report.terminal import printable, shortened
from labelspace.report.tree import MAX_NAME_LENGTH, counted
from labelspace.types import LabelSpace

MAX_NAMES = 5  # labels shown of a code that several share


def select_trees(tree: int | None, n_trees: int) -> list[int]:
    """Return the indices of the trees to show: all, or the one of this number, counted from 1.

    >>> select_trees(None, n_trees=3), select_trees(2, n_trees=3)
    ([0, 1, 2], [1])
    """
    if tree is None:
        return list(range(n_trees))
    if not 1 <= tree <= n_trees:
        allowed = f"from 1 to {n_trees}" if n_trees > 1 else "1, the only one"
        raise ParameterError(f"--tree must be {allowed}, but is {tree}; choose an existing tree")
    return [tree - 1]


def parse_prefix(text: str, codes: Codes) -> list[int]:
    """Return the digits of a prefix such as "1,0"; none for an empty text.

    >>> parse_prefix("1,0", Codes(np.array([[0, 1], [1, 0]], np.int32), code_size=2))
    [1, 0]
    """
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    valid = all(part.isascii() and part.isdigit() and int(part) < codes.code_size for part in parts)
    if not valid or len(parts) > codes.code_length:
        numbers = f"{codes.code_length} numbers from 0 to {codes.code_size - 1} with commas between"
        raise ParameterError(f"--prefix must be at most {numbers}, but is {text!r}; write for example --prefix 1,0")
    return [int(part) for part in parts]


def heading(summary: Mapping[str, Any], n_trees: int) -> str:
    """Return the figures of ``code_summary``, with the number of the ``tree``, in three lines.

    >>> from labelspace.labels.codes import code_summary
    >>> codes = Codes(np.array([[0, 1], [1, 0], [1, 0]], np.int32), code_size=2)
    >>> print(heading({"tree": 1, **code_summary(codes)}, n_trees=1))
    3 labels, codes of 2 digits from 0 to 1; similar labels share their first digits
    2 codes used, 50% of all possible; 2 labels share a code with others, at most 2 per code
    values used per digit, of 2: 2, 2 (evenness, at most 1: 0.92, 0.92); 4 network outputs for 3 labels
    """
    head = f"tree {summary['tree']} of {n_trees}: " if n_trees > 1 else ""
    similar = "; similar labels share their first digits" if summary["digits"] > 1 else ""
    shared = "no two labels share a code"
    if summary["collisions"]:
        shared = f"{summary['collisions']:,} labels share a code with others, at most {summary['largest']:,} per code"
    n_labels, used, n_codes = summary["n_labels"], summary["used"], summary["codes"]
    n_varying = max((index + 1 for index, values in enumerate(used) if values > 1), default=1)
    constant = f", the last {counted(len(used) - n_varying, 'digit')} constant" if n_varying < len(used) else ""
    return (
        f"{head}{counted(n_labels, 'label')}, codes of {counted(summary['digits'], 'digit')} "
        f"from 0 to {summary['width'] - 1:,}{similar}\n"
        f"{counted(n_codes, 'code')} used, {100 * summary['occupancy']:.3g}% of all possible; {shared}\n"
        f"values used per digit, of {summary['width']:,}: {', '.join(f'{n:,}' for n in used[:n_varying])} "
        f"(evenness, at most 1: {', '.join(f'{even:.2f}' for even in summary['evenness'][:n_varying])}){constant}; "
        f"{counted(summary['outputs'], 'network output')} for {counted(n_labels, 'label')}"
    )


def codes_text(codes: Codes, labels: LabelSpace, prefix: Sequence[int] = (), limit: int = 0) -> str:
    """Return a line per code, sorted, with its labels; leading digits equal to those of the line above are left blank.

    >>> codes = Codes(np.array([[1, 0], [0, 10], [1, 0], [1, 1]], np.int32), code_size=11)
    >>> print(codes_text(codes, LabelSpace(["bread", "fish", "dough", "salt"])))
     0 10  fish
     1  0  bread, dough
        1  salt
    """
    digit_width = len(str(codes.code_size - 1))
    tree, leaves = _found(codes, prefix)
    shown = leaves[:limit] if limit else leaves
    lines, previous = [], [-1] * codes.code_length
    for code, ids in _rows(codes, tree, shown):
        first_new = next(i for i in range(codes.code_length) if code[i] != previous[i])
        digits = (str(digit) if i >= first_new else "" for i, digit in enumerate(code))
        names = [shortened(printable(labels.names[label]), MAX_NAME_LENGTH) for label in ids[:MAX_NAMES]]
        names += [f"… {len(ids) - MAX_NAMES:,} more"] * (len(ids) > MAX_NAMES)
        lines.append(" ".join(digit.rjust(digit_width) for digit in digits) + "  " + ", ".join(names))
        previous = code
    left_out = leaves[len(shown) :]
    if len(left_out):
        n_labels = int(np.diff(tree.label_starts)[left_out].sum())
        lines.append(f"… {counted(len(left_out), 'more code')} ({counted(n_labels, 'label')}); --limit 0 shows all")
    return "\n".join(lines) or f"no code starts with {','.join(map(str, prefix))}"


def codes_tsv(sets: Mapping[int, Codes], labels: LabelSpace, prefix: Sequence[int] = ()) -> Iterator[str]:
    """Yield TSV with one line per label: number of the tree, digits of the code separated by commas, name.

    ``sets`` are the codes by the index of their tree, from 0.
    """
    yield "tree\tcode\tlabel\n"
    for index, codes in sets.items():
        for code, ids in _rows(codes, *_found(codes, prefix)):
            digits = ",".join(map(str, code))
            yield from (f"{index + 1}\t{digits}\t{printable(labels.names[label])}\n" for label in ids)


def codes_json(codes: Codes, labels: LabelSpace, prefix: Sequence[int] = ()) -> list[dict[str, Any]]:
    """Return the codes and the names of their labels as plain values.

    >>> codes_json(Codes(np.array([[1, 0], [0, 1]], np.int32), code_size=2), LabelSpace(["bread", "fish"]), prefix=[1])
    [{'code': [1, 0], 'labels': ['bread']}]
    """
    rows = _rows(codes, *_found(codes, prefix))
    return [{"code": code, "labels": [labels.names[label] for label in ids]} for code, ids in rows]


def _found(codes: Codes, prefix: Sequence[int]) -> tuple[CodeTree, list[int]]:
    """Return the tree of the codes, and its leaves whose codes start with the prefix, counted from 0."""
    tree = CodeTree.from_codes(codes)
    firsts = codes.digits[tree.labels[tree.label_starts[:-1]]]  # (n_leaves, n_digits)
    matches = (firsts[:, : len(prefix)] == np.array(prefix, np.int64)).all(axis=1)
    return tree, np.flatnonzero(matches).tolist()


def _rows(codes: Codes, tree: CodeTree, leaves: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the code of each leaf and its labels."""
    starts = tree.label_starts
    for leaf in leaves:
        ids = tree.labels[starts[leaf] : starts[leaf + 1]]
        yield codes.digits[ids[0]].tolist(), ids.tolist()
