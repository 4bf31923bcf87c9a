"""Checks of how labels are used: not at all, once, only in test, or by one document each as ids are."""

import numpy as np

from labelspace.data.checks.base import Example, Found, shown_name
from labelspace.data.checks.documents import Documents
from labelspace.types import Bools, Longs

# Share of the documents that have a label of their own, from which labels are ids: some ids repeat by mistake, and a
# smaller share would report vocabularies with a long tail.
ID_LIKE = 0.8
MIN_DOCUMENTS = 20  # among fewer documents, labels are unique by chance


def examples_of(documents: Documents, labels: Longs) -> tuple[Example, ...]:
    """Return the names of the first labels as examples."""
    return tuple(
        Example(shown_name(documents.labels.names[label])) for label in labels[: documents.n_examples].tolist()
    )


def used_below(documents: Documents) -> Bools:
    """Mark labels that a document of any split has, or has below them in the hierarchy. Shape (n_labels,)."""
    used = np.bincount(documents.Y.indices, minlength=len(documents.labels)) > 0
    hierarchy = documents.labels.hierarchy
    if hierarchy is None:
        return used
    edges = hierarchy.edges
    depth = hierarchy.levels[edges[:, 0]]
    edges = edges[np.argsort(-depth, kind="stable")]  # from the leaves up, level by level
    starts = np.flatnonzero(np.diff(np.sort(-depth))) + 1
    for children, parents in (block.T for block in np.split(edges, starts)):
        used[parents[used[children]]] = True
    return used


def find_unused(documents: Documents) -> Found | None:
    """Find labels that no document has, nor any label below them."""
    if not len(documents):
        return None
    labels = np.flatnonzero(~used_below(documents))
    return Found(len(labels), len(documents.labels), examples_of(documents, labels)) if len(labels) else None


def find_single(documents: Documents) -> Found | None:
    """Find labels with one training document."""
    labels = np.flatnonzero(documents.counts == 1)
    used = int((documents.counts > 0).sum())
    return Found(len(labels), used, examples_of(documents, labels)) if len(labels) else None


def find_unseen(documents: Documents) -> Found | None:
    """Find labels that only dev and test documents have."""
    elsewhere = np.bincount(documents.Y.indices, minlength=len(documents.labels)) - documents.counts
    labels = np.flatnonzero((elsewhere > 0) & (documents.counts == 0))
    if not len(labels):
        return None
    labels = labels[np.argsort(-elsewhere[labels], kind="stable")]
    times, all_times = int(elsewhere[labels].sum()), int(elsewhere.sum())
    note = f"they make up {100 * times / all_times:.2g} % of the labels to be found there ({times:,} of {all_times:,})"
    return Found(len(labels), int((elsewhere > 0).sum()), examples_of(documents, labels), note)


def find_id_like(documents: Documents) -> Found | None:
    """Find labels of one document each, in a column or in all, if most documents have one."""
    Y, names = documents.train.Y, documents.labels.names
    columns = {"": np.ones(len(names), bool)}
    if documents.columns is not None:
        columns = {f"{name}: ": mask for name, mask in documents.columns.masks(names).items()}
    labels, found_in = [], []
    for column, members in columns.items():
        single = members & (documents.counts == 1)
        has_any = Y @ members[: Y.shape[1]].astype(np.float32) > 0
        has_single = Y @ single[: Y.shape[1]].astype(np.float32) > 0
        if has_any.sum() >= MIN_DOCUMENTS and has_single.sum() >= ID_LIKE * has_any.sum():
            labels.append(np.flatnonzero(single))
            found_in += [f"column {column[:-2]}"] if column else []
    if not labels:
        return None
    at = np.concatenate(labels)
    return Found(len(at), len(names), examples_of(documents, at), "; ".join(found_in))


FINDERS = {
    "id_like_labels": find_id_like,
    "unseen_labels": find_unseen,
    "single_document_labels": find_single,
    "unused_labels": find_unused,
}
