"""Edit labels after the training: rename, retire or merge them, in the label space and in answers.

A label keeps its id for good, since what was learned is by id. A retired label is never answered. A label that was
merged into another one is answered as that one: the probability that either is right is the noisy or of both.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from labelspace.errors import DataError
from labelspace.types import Bools, Ints, LabelSpace, TopK


def renamed(labels: LabelSpace, label: int, name: str) -> LabelSpace:
    """Return the labels with another name of one of them; its name before becomes a synonym.

    >>> space = renamed(LabelSpace(["cat", "dog"]), 0, "house cat")
    >>> space.names, space.synonyms
    (['house cat', 'dog'], [['cat'], []])
    """
    before = labels.names[label]
    names = list(labels.names)
    names[label] = check_new_name(labels, name)
    return _with_synonyms(replace(labels, names=names), label, [before])


def retired(labels: LabelSpace, label: int) -> LabelSpace:
    """Return the labels with one retired: it and the labels that were merged into it are not answered any more.

    >>> retired(LabelSpace(["cat", "dog"]), 0).current.tolist()
    [-1, 1]
    """
    current = _current(labels)
    current[current == label] = -1
    return _without_children(replace(labels, current=current), label)


def merged(labels: LabelSpace, label: int, into: int) -> LabelSpace:
    """Return the labels with one merged into another, which gets its names as synonyms and its documents.

    >>> space = merged(LabelSpace(["cat", "dog", "kitten"]), 2, into=0)
    >>> space.current.tolist(), space.synonyms
    ([0, 1, 0], [['kitten'], [], []])
    """
    if label == into:
        raise DataError(f"a label is merged into another one, but {labels.names[label]!r} is given twice; give two")
    current = _current(labels)
    current[current == label] = into
    also = [labels.names[label], *(labels.synonyms[label] if labels.synonyms is not None else [])]
    space = _with_synonyms(replace(labels, current=current), into, also)
    return _without_children(space, label)


def restored(labels: LabelSpace, label: int) -> LabelSpace:
    """Return the labels with a retired or merged one in use again."""
    current = _current(labels)
    current[label] = label
    return replace(labels, current=None if (current == np.arange(len(current))).all() else current)


def described(labels: LabelSpace, label: int, alt: Sequence[str]) -> LabelSpace:
    """Return the labels with further synonyms of one of them."""
    return _with_synonyms(labels, label, alt) if alt else labels


def label_in_use(labels: LabelSpace, name: str) -> int:
    """Return the id of the label with this name or URI; raise DataError if no label in use has it."""
    found = labels.find(name)
    if found is None:
        raise DataError(f"a label must be known, but {name!r} is not; `labelspace labels list MODEL` lists the labels")
    if labels.current is not None and labels.current[found] != found:
        now = int(labels.current[found])
        state = "retired" if now < 0 else f"merged into {labels.names[now]!r}"
        raise DataError(f"a label must be in use, but {name!r} is {state}; name another one, or add it again")
    return found


def check_new_name(labels: LabelSpace, name: str) -> str:
    """Return a name for a label; raise DataError if it is empty, or another label has it."""
    if not isinstance(name, str) or not name.strip() or any(ord(char) < 32 for char in name):
        raise DataError(f"a label must have a name of one line, but it is {name!r}; give one")
    if labels.find(name) is not None:
        raise DataError(f"label names must be unique, but {name!r} is a label already; merge the two, or name it anew")
    return name


def allowed_by_model(labels: LabelSpace, allowed: Bools | None) -> Bools | None:
    """Return which labels a model may rank, so that answers are allowed labels in use; None allows all.

    >>> space = merged(retired(LabelSpace(["cat", "dog", "kitten"]), 1), 2, into=0)
    >>> allowed_by_model(space, None).tolist(), allowed_by_model(space, np.array([False, False, True])).tolist()
    ([True, False, True], [True, False, True])
    """
    if labels.current is None:
        return allowed
    if allowed is None:
        return labels.answerable
    chosen = np.zeros(len(labels), bool)
    chosen[labels.current[allowed & labels.answerable]] = True
    return labels.answerable & chosen[labels.current]


def ranked_labels(labels: LabelSpace, k: int) -> int:
    """Return how many labels a model ranks for k labels of an answer: some may be answered as one."""
    return min(k + labels.n_merged, 2 * k)


def answered(labels: LabelSpace, top: TopK, k: int, are_probabilities: bool) -> TopK:
    """Return the k best labels in use; labels that are answered as one get the noisy or of their probabilities.

    Scores that are no probabilities are not joined: the best of them counts.

    >>> space = merged(LabelSpace(["cat", "dog", "kitten"]), 2, into=0)
    >>> joined = answered(space, TopK.from_scores([[0.5, 0.6, 0.5]], k=3), 2, are_probabilities=True)
    >>> joined.labels.tolist(), joined.scores.tolist()
    ([[0, 1]], [[0.75, 0.6000000238418579]])
    """
    if not labels.n_merged or labels.current is None:
        return top.padded(k)
    now = np.where(top.labels >= 0, labels.current[np.maximum(top.labels, 0)], -1)
    order = np.argsort(now, axis=1, kind="stable")  # equal labels are adjacent, the best ranked first
    ids, scores = (np.take_along_axis(values, order, axis=1) for values in (now, top.scores))
    is_first = np.ones(ids.shape, bool)
    is_first[:, 1:] = ids[:, 1:] != ids[:, :-1]
    starts = np.flatnonzero(is_first)
    sizes = np.diff(np.append(starts, ids.size))
    best = scores.ravel()[starts]
    if are_probabilities:
        either = 1 - np.multiply.reduceat(1 - scores.ravel().astype(np.float64), starts)
        best = np.where(sizes > 1, either, best).astype(np.float32)
    joined = np.full(ids.size, -np.inf, np.float32)
    joined[starts] = best
    joined = np.where(ids < 0, -np.inf, joined.reshape(ids.shape)).astype(np.float32)
    by_rank = np.argsort(order, axis=1)  # back in the order of ranks, so that equal scores keep it
    ids, joined = np.take_along_axis(ids, by_rank, axis=1), np.take_along_axis(joined, by_rank, axis=1)
    by_score = np.argsort(-joined, axis=1, kind="stable")[:, :k]
    best_scores = np.take_along_axis(joined, by_score, axis=1)
    best_ids = np.where(best_scores > -np.inf, np.take_along_axis(ids, by_score, axis=1), -1)
    return TopK(best_ids.astype(np.int32), best_scores).padded(k)


def _current(labels: LabelSpace) -> Ints:
    if labels.current is None:
        return np.arange(len(labels), dtype=np.int32)
    return np.array(labels.current, np.int32)


def _with_synonyms(labels: LabelSpace, label: int, also: Sequence[str]) -> LabelSpace:
    synonyms = [list(known) for known in labels.synonyms or [[]] * len(labels)]
    name = labels.names[label]
    synonyms[label] = [other for other in dict.fromkeys([*synonyms[label], *also]) if other != name]
    return replace(labels, synonyms=synonyms)


def _without_children(labels: LabelSpace, label: int) -> LabelSpace:
    """Return the labels with a hierarchy that bypasses one: else it would be included as an ancestor."""
    if labels.hierarchy is None:
        return labels
    return replace(labels, hierarchy=labels.hierarchy.without(label))
