"""The codes of labels as text, as lines of tabs, as plain values for JSON; and their figures in a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from labelspace.errors import ParameterError
from labelspace.labels.codes import Codes, CodeTree
from labelspace.report.tree import LONGEST, printable
from labelspace.types import LabelSpace

NAMED = 5  # labels named at a code that several share


def chosen(tree: int | None, n_trees: int) -> list[int]:
    """The places of the trees to show: all, or the one of this number, counted from 1.

    >>> chosen(None, n_trees=3), chosen(2, n_trees=3)
    ([0, 1, 2], [1])
    """
    if tree is None:
        return list(range(n_trees))
    if not 1 <= tree <= n_trees:
        there = f"from 1 to {n_trees}" if n_trees > 1 else "1, the only one"
        raise ParameterError(f"--tree must be {there}, but is {tree}; ask for one that there is")
    return [tree - 1]


def read_prefix(text: str, codes: Codes) -> list[int]:
    """The digits of a prefix with commas between; no text is no digit.

    >>> read_prefix("1,0", Codes(np.array([[0, 1], [1, 0]], np.int32), code_size=2))
    [1, 0]
    """
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    right = all(part.isascii() and part.isdigit() and int(part) < codes.code_size for part in parts)
    if not right or len(parts) > codes.code_length:
        raise ParameterError(
            f"--prefix must be at most {codes.code_length} numbers from 0 to {codes.code_size - 1} with commas between, "
            f"but is {text!r}; write it like --prefix 1,0"
        )
    return [int(part) for part in parts]


def heading(summary: Mapping[str, Any], n_trees: int) -> str:
    """The figures of ``code_summary``, with the number of the ``tree`` among them, for people: three lines.

    >>> from labelspace.labels.codes import code_summary
    >>> codes = Codes(np.array([[0, 1], [1, 0], [1, 0]], np.int32), code_size=2)
    >>> print(heading({"tree": 1, **code_summary(codes)}, n_trees=1))
    3 labels, each written as 2 digits from 0 to 1, its code; labels that are alike begin with the same digits
    2 codes are in use, 50% of all that could be; 2 labels share theirs with others, at most 2 one
    values in use of 2, digit by digit: 2, 2 (evenness, at most 1: 0.92, 0.92); 4 outputs of the network for 3 labels
    """
    head = f"tree {summary['tree']} of {n_trees}: " if n_trees > 1 else ""
    alike = "; labels that are alike begin with the same digits" if summary["digits"] > 1 else ""
    shared = "no two labels share one"
    if summary["collisions"]:
        shared = f"{summary['collisions']:,} labels share theirs with others, at most {summary['largest']:,} one"
    n_labels, used, n_codes = summary["n_labels"], summary["used"], summary["codes"]
    telling = max((place + 1 for place, values in enumerate(used) if values > 1), default=1)
    same = f", then the same for all labels ({_counted(len(used) - telling, 'digit')})" if telling < len(used) else ""
    return (
        f"{head}{_counted(n_labels, 'label')}, each written as {_counted(summary['digits'], 'digit')} "
        f"from 0 to {summary['width'] - 1:,}, its code{alike}\n"
        f"{_counted(n_codes, 'code')} {'is' if n_codes == 1 else 'are'} in use, "
        f"{100 * summary['occupancy']:.3g}% of all that could be; {shared}\n"
        f"values in use of {summary['width']:,}, digit by digit: {', '.join(f'{n:,}' for n in used[:telling])} "
        f"(evenness, at most 1: {', '.join(f'{even:.2f}' for even in summary['evenness'][:telling])}){same}; "
        f"{_counted(summary['outputs'], 'output')} of the network for {_counted(n_labels, 'label')}"
    )


def codes_text(codes: Codes, labels: LabelSpace, prefix: Sequence[int] = (), limit: int = 0) -> str:
    """A line a code, sorted, with its labels; digits that are those of the line above are not written again.

    >>> codes = Codes(np.array([[1, 0], [0, 10], [1, 0], [1, 1]], np.int32), code_size=11)
    >>> print(codes_text(codes, LabelSpace(["bread", "fish", "dough", "salt"])))
     0 10  fish
     1  0  bread, dough
        1  salt
    """
    size = len(str(codes.code_size - 1))
    tree = CodeTree.from_codes(codes)
    leaves = _leaves(codes, tree, prefix)
    shown = leaves[:limit] if limit else leaves
    lines, above = [], [-1] * codes.code_length
    for code, ids in _rows(codes, tree, shown):
        new = next(place for place in range(codes.code_length) if code[place] != above[place])
        digits = (str(digit) if place >= new else "" for place, digit in enumerate(code))
        lines.append(" ".join(digit.rjust(size) for digit in digits) + "  " + _told(ids, labels))
        above = code
    left_out = leaves[len(shown) :]
    if len(left_out):
        n_labels = int(np.diff(tree.label_starts)[left_out].sum())
        lines.append(f"… {_counted(len(left_out), 'more code')} ({_counted(n_labels, 'label')}); --limit 0 shows all")
    return "\n".join(lines) or f"no code begins with {','.join(map(str, prefix))}"


def codes_tsv(sets: Mapping[int, Codes], labels: LabelSpace, prefix: Sequence[int] = ()) -> Iterator[str]:
    """A line a label, under a heading: the number of the tree, the code with commas between its digits, the name.

    ``sets`` are the codes of trees by their place, which counts from 0.
    """
    yield "tree\tcode\tlabel\n"
    for place, codes in sets.items():
        tree = CodeTree.from_codes(codes)
        for code, ids in _rows(codes, tree, _leaves(codes, tree, prefix)):
            written = ",".join(map(str, code))
            yield from (f"{place + 1}\t{written}\t{printable(labels.names[label])}\n" for label in ids)


def codes_json(codes: Codes, labels: LabelSpace, prefix: Sequence[int] = ()) -> list[dict[str, Any]]:
    """The codes and the names of their labels as plain values.

    >>> codes_json(Codes(np.array([[1, 0], [0, 1]], np.int32), code_size=2), LabelSpace(["bread", "fish"]), prefix=[1])
    [{'code': [1, 0], 'labels': ['bread']}]
    """
    tree = CodeTree.from_codes(codes)
    rows = _rows(codes, tree, _leaves(codes, tree, prefix))
    return [{"code": code, "labels": [labels.names[label] for label in ids]} for code, ids in rows]


def _leaves(codes: Codes, tree: CodeTree, prefix: Sequence[int]) -> list[int]:
    """The leaves whose codes begin so, counted from 0."""
    firsts = codes.digits[tree.labels[tree.label_starts[:-1]]]  # (n_leaves, n_digits)
    begins = (firsts[:, : len(prefix)] == np.array(prefix, np.int64)).all(axis=1)
    found: list[int] = np.flatnonzero(begins).tolist()
    return found


def _rows(codes: Codes, tree: CodeTree, leaves: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """The code of each leaf and its labels."""
    starts = tree.label_starts
    for leaf in leaves:
        ids = tree.labels[starts[leaf] : starts[leaf + 1]]
        yield codes.digits[ids[0]].tolist(), ids.tolist()


def _told(ids: Sequence[int], labels: LabelSpace) -> str:
    names = [printable(labels.names[label]) for label in ids[:NAMED]]
    told = ", ".join(name if len(name) <= LONGEST else name[: LONGEST - 1] + "…" for name in names)
    return told if len(ids) <= NAMED else f"{told}, … {len(ids) - NAMED:,} more"


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"
