"""Edit labels after the training: rename, retire or merge them, in the label space and in answers.

A label keeps its id for good, since what was learned is by id. A retired label is never answered. A label that was
merged into another one is answered as that one: the probability that either is right is the noisy or of both.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from labelspace.data.label_mapping import merged_columns
from labelspace.errors import DataError
from labelspace.labels.masks import labels_among
from labelspace.labels.selection import close_names
from labelspace.types import NO_CONCEPT, Bools, Csr, Hierarchy, Ints, LabelSpace, TopK
from labelspace.types.concept import one_line


def added(
    labels: LabelSpace, name: str, alt: Sequence[str] = (), description: str | None = None
) -> tuple[LabelSpace, int]:
    """Return the labels with one more, and its id; a known label is in use again, and is ``described``.

    >>> space, label = added(LabelSpace(["cat"]), "dog", alt=["hound"])
    >>> space.names, space.synonyms, label
    (['cat', 'dog'], [[], ['hound']], 1)
    """
    label = labels.find(name)
    if label is not None:
        return described(restored(labels, label), label, alt, description), label
    space = labels.extended([check_new_name(labels, name)])
    return described(space, len(labels), alt, description), len(labels)


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
    if (current < 0).all():
        rule = f"a model must keep a label in use, but {labels.names[label]!r} is the last one"
        raise DataError(f"{rule}; add another label first")
    return _with_hierarchy(replace(labels, current=current), lambda hierarchy: hierarchy.without(label))


def merged(labels: LabelSpace, label: int, into: int) -> LabelSpace:
    """Return the labels with one merged into another, which gets its names, its documents and the labels below it.

    >>> space = merged(LabelSpace(["cat", "dog", "kitten"]), 2, into=0)
    >>> space.current.tolist(), space.synonyms
    ([0, 1, 0], [['kitten'], [], []])
    """
    if label == into:
        raise DataError(f"a label is merged into another one, but {labels.names[label]!r} is given twice; give two")
    current = _current(labels)
    current[current == label] = into
    space = _with_synonyms(replace(labels, current=current), into, _names_of(labels, label))
    hidden = labels.concept(label).hidden
    if hidden and labels.concepts is not None:
        concepts = list(labels.concepts)
        known = concepts[into].hidden
        shown = {labels.names[into], *_synonyms_of(labels, into)} - set(known)
        concepts[into] = replace(concepts[into], hidden=(*known, *(name for name in hidden if name not in shown)))
        space = replace(space, concepts=concepts)
    return _with_hierarchy(space, lambda hierarchy: hierarchy.merged(label, into))


def restored(labels: LabelSpace, label: int) -> LabelSpace:
    """Return the labels with a retired or merged one in use again, which takes its names back.

    >>> space = restored(merged(LabelSpace(["cat", "dog", "kitten"]), 2, into=0), 2)
    >>> space.current, space.synonyms
    (None, [[], [], []])
    """
    current = _current(labels)
    before = int(current[label])
    current[label] = label
    space = replace(labels, current=None if (current == np.arange(len(current))).all() else current)
    if before in (label, -1) or labels.synonyms is None:
        return space
    own = _names_of(labels, label)
    synonyms = list(labels.synonyms)
    synonyms[before] = [name for name in synonyms[before] if name not in own]
    return replace(space, synonyms=synonyms)


def described(labels: LabelSpace, label: int, alt: Sequence[str], description: str | None = None) -> LabelSpace:
    """Return the labels with further synonyms and another description of one of them; an empty one removes it.

    >>> space = described(LabelSpace(["cat"]), 0, ["kitty"], "A small carnivore.")
    >>> list(space.described())
    [LabelTexts(name='cat', synonyms=['kitty'], description='A small carnivore.')]
    """
    for name in alt:
        _check_one_line(name, "a synonym must be")
    space = _with_synonyms(labels, label, alt) if alt else labels
    return space if description is None else _with_description(space, label, description)


def label_in_use(labels: LabelSpace, name: str) -> int:
    """Return the id of the label with this name or URI; raise DataError if no label in use has it."""
    found = labels.find(name)
    if found is None:
        close = close_names(name, labels)
        hint = f"did you mean {' or '.join(map(repr, close))}?" if close else "see: labelspace labels list MODEL"
        raise DataError(f"a label must be known, but {name[:80]!r} is none of {len(labels):,} labels; {hint}")
    if labels.current is not None and labels.current[found] != found:
        state = state_of(labels, found)
        raise DataError(f"a label must be in use, but {name!r} is {state}; name another one, or add it again")
    return found


def ids_in_use(labels: LabelSpace, ids: Ints) -> Ints:
    """Return the labels that are answered in the place of some, each once; raise DataError for a retired one.

    >>> ids_in_use(merged(LabelSpace(["cat", "dog", "kitten"]), 2, into=0), np.array([1, 2])).tolist()
    [1, 0]
    """
    if labels.current is None:
        return ids
    now = labels.current[ids]
    if (now < 0).any():
        name = labels.names[int(ids[now < 0][0])]
        raise DataError(f"a label must be in use, but {name!r} is retired; name another one, or add it again")
    return np.array(list(dict.fromkeys(now.tolist())), np.int32)


def state_of(labels: LabelSpace, label: int) -> str:
    """Return "in use", "retired", or into which label a label was merged.

    >>> space = merged(retired(LabelSpace(["cat", "dog", "kitten"]), 1), 2, into=0)
    >>> [state_of(space, label) for label in range(3)]
    ['in use', 'retired', "merged into 'cat'"]
    """
    now = label if labels.current is None else int(labels.current[label])
    if now == label:
        return "in use"
    return "retired" if now < 0 else f"merged into {labels.names[now]!r}"


def labels_in_use(table: Csr, labels: LabelSpace) -> Csr:
    """Return a table (n, at least n_labels) of labels with those that are answered in their place.

    A label that was merged into another one counts as that one, and a retired label does not count. Columns of labels
    that are not known stay.

    >>> from scipy.sparse import csr_matrix
    >>> space = merged(retired(LabelSpace(["cat", "dog", "kitten"]), 1), 2, into=0)
    >>> labels_in_use(csr_matrix([[0, 0, 1], [0, 1, 0]]), space).toarray().tolist()
    [[1, 0, 0], [0, 0, 0]]
    """
    if labels.current is None:
        return table
    current = np.arange(table.shape[1])
    current[: len(labels)] = labels.current
    return merged_columns(labels_among(table, current >= 0), np.maximum(current, 0), table.shape[1])


def n_replaced(table: Csr, labels: LabelSpace) -> tuple[int, int]:
    """Return how many labels of documents count as another one, and how many do not count.

    >>> from scipy.sparse import csr_matrix
    >>> space = merged(retired(LabelSpace(["cat", "dog", "kitten"]), 1), 2, into=0)
    >>> n_replaced(csr_matrix([[0, 0, 1], [1, 1, 1]]), space)
    (2, 1)
    """
    if labels.current is None:
        return 0, 0
    known = table.indices[table.indices < len(labels)]
    is_merged = labels.answerable & ~labels.in_use
    return int(is_merged[known].sum()), int((~labels.answerable)[known].sum())


def check_new_name(labels: LabelSpace, name: str) -> str:
    """Return a name for a label; raise DataError if it is empty, or another label has it."""
    _check_one_line(name, "a label must have a name that is")
    found = labels.find(name)
    if found is not None:
        state = state_of(labels, found)
        known = "already" if state == "in use" else f"that is {state}"
        raise DataError(f"label names must be unique, but {name!r} is a label {known}; merge the two, or name it anew")
    return name


def _check_one_line(name: object, rule: str) -> None:
    if not isinstance(name, str) or not name.strip() or any(ord(char) < 32 for char in name):
        raise DataError(f"{rule} one line of text, but it is {name!r}; give one")


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


def without_retired(labels: LabelSpace, top: TopK) -> TopK:
    """Return ranked labels without the retired ones.

    >>> without_retired(retired(LabelSpace(["cat", "dog"]), 1), TopK.from_scores([[0.5, 0.6]], k=2)).labels.tolist()
    [[0, -1]]
    """
    is_out = (top.labels < 0) | ~labels.answerable[np.maximum(top.labels, 0)]
    order = np.argsort(is_out, axis=1, kind="stable")
    kept = np.where(is_out, -1, top.labels).astype(np.int32)
    scores = np.where(is_out, -np.inf, top.scores).astype(np.float32)
    return TopK(np.take_along_axis(kept, order, axis=1), np.take_along_axis(scores, order, axis=1))


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
        return TopK(top.labels[:, :k], top.scores[:, :k]).padded(k)
    now = np.where(top.labels >= 0, labels.current[np.maximum(top.labels, 0)], -1)
    if np.array_equal(now, top.labels):  # most documents have no merged label
        return TopK(top.labels[:, :k], top.scores[:, :k]).padded(k)
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
    return np.array(labels.answered_as, np.int32)


def _synonyms_of(labels: LabelSpace, label: int) -> list[str]:
    return [] if labels.synonyms is None else list(labels.synonyms[label])


def _names_of(labels: LabelSpace, label: int) -> list[str]:
    return [labels.names[label], *_synonyms_of(labels, label)]


def _with_synonyms(labels: LabelSpace, label: int, also: Sequence[str]) -> LabelSpace:
    synonyms: list[Sequence[str]] = [[]] * len(labels) if labels.synonyms is None else list(labels.synonyms)
    name = labels.names[label]
    synonyms[label] = [other for other in dict.fromkeys([*synonyms[label], *also]) if other != name]
    return replace(labels, synonyms=synonyms)


def check_description(description: str) -> str | None:
    """Return a description on one line, None if it is empty; raise DataError for one that a label cannot have."""
    try:
        return one_line(description)
    except ValueError as error:
        raise DataError(f"a label must have {error}, but this begins with {description[:40]!r}; correct it") from None


def _with_description(labels: LabelSpace, label: int, description: str) -> LabelSpace:
    text = check_description(description)
    concepts = [NO_CONCEPT] * len(labels) if labels.concepts is None else list(labels.concepts)
    concepts[label] = replace(concepts[label], description=text)
    return replace(labels, concepts=concepts)


def _with_hierarchy(labels: LabelSpace, edit: Callable[[Hierarchy], Hierarchy]) -> LabelSpace:
    """Return the labels with a hierarchy that bypasses one of them: else it would be answered as an ancestor."""
    if labels.hierarchy is None:
        return labels
    edited = edit(labels.hierarchy)
    return replace(labels, hierarchy=edited if edited.parents.nnz else None)
