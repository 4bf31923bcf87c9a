"""Find labels that are probably wrong or missing, by models that have not seen the document.

After confident learning (Northcutt et al., 2021), for many labels per document:

1. Split the training documents into two halves; equal documents stay together.
2. Train a fast blend on each half, and predict the probabilities p(d, l) of the other half.
3. t_l is the mean probability of label l in the other documents that have it, shrunk towards the mean of all labels
   if they are few; c_d is the greatest probability among the labels of document d.
4. A label l of d is probably wrong if its expected probability t_l c_d is high, and p(d, l) is nearly 0: the model
   knows the label well, and understands the document. Wrong labels are ranked by (p + 0.01) / (t_l c_d).
5. A label is probably missing if d does not have it, and p(d, l) is very high. Missing labels are ranked by p.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from labelspace.data.checks import DEEP_CHECKS, Documents, Found, Report, worst_first
from labelspace.data.checks.base import Example, shown, shown_name
from labelspace.errors import DataError
from labelspace.experiment.train import Recipe
from labelspace.types import Doubles, Longs, Progress, TopK

PREDICTED = 30  # labels of a document: further ones have a probability of about 0
# Stricter values find fewer errors, and report fewer labels that are right.
UNLIKELY = 0.02  # greatest probability of a wrong label
EXPECTED = 0.6  # least expected probability of a wrong label
LIKELY = 0.9  # least probability of a missing label
SHRINKAGE = 2.0  # documents that the mean probability counts for
MIN_DOCUMENTS = 200  # models of fewer documents have no reliable probabilities
PRESET = "fast"


@dataclass(frozen=True)
class Suspects:
    """Labels of documents that are probably wrong or missing, the surest first."""

    documents: Longs
    labels: Longs
    probabilities: Doubles
    of_documents: bool = False  # True if documents are counted, and not labels


def find_label_errors(documents: Documents, names: Collection[str], seed: int, progress: Progress | None) -> Report:
    """Return the findings of these checks among ``DEEP_CHECKS``."""
    names = [name for name in names if name in DEEP_CHECKS]
    if not names:
        return Report([], [], {})
    train = documents.train
    if len(train) < MIN_DOCUMENTS or train.Y.nnz == 0:
        reason = f"--deep needs at least {MIN_DOCUMENTS} training documents with labels, but there are {len(train)}"
        return Report([], [], dict.fromkeys(names, reason))
    top = out_of_fold(documents, seed, progress)
    findings, passed = [], []
    for name in names:
        found = _found(documents, SUSPECTS[name](documents, top))
        if found is None:
            passed.append(name)
        else:
            findings.append(DEEP_CHECKS[name].finding(found))
    return Report(worst_first(findings), passed, {})


def halves(first_same: Longs, seed: int) -> tuple[Longs, Longs]:
    """Split the documents into two halves (step 1)."""
    groups, group_of = np.unique(first_same, return_inverse=True)
    half = np.random.default_rng(seed).permutation(len(groups)) % 2
    return np.flatnonzero(half[group_of] == 0), np.flatnonzero(half[group_of] == 1)


def out_of_fold(documents: Documents, seed: int, progress: Progress | None) -> TopK:
    """Predict the most probable labels of each training document (step 2)."""
    train = documents.train
    first, second = halves(documents.first_same[: len(train)], seed)
    top = TopK.empty(len(train), min(PREDICTED, len(train.labels)))
    for seen, held in ((first, second), (second, first)):
        part = train.rows(seen)
        if not part.Y.nnz:
            raise DataError("each half of the training documents must have labels, but one has none; label more")
        tagger = Recipe(preset=PRESET, seed=seed).tagger().fit_dataset(part, progress=progress)
        predicted = tagger.predict_topk(train.rows(held).inputs, top.k, calibrated=True)
        top.labels[held], top.scores[held] = predicted.labels, predicted.scores
    return top


def wrong_labels(documents: Documents, top: TopK) -> Suspects:
    """Find the labels that are probably wrong (steps 3 and 4)."""
    Y = documents.train.Y
    rows, labels = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr)), Y.indices.astype(np.int64)
    # 0 for a label that was not predicted.
    p = np.asarray(top.to_csr(Y.shape[1], with_scores=True)[rows, labels], np.float64).ravel()
    counts, sums = np.bincount(labels), np.bincount(labels, weights=p)
    others = (sums[labels] - p + SHRINKAGE * p.mean()) / (counts[labels] - 1 + SHRINKAGE)  # t_l, without d
    best = np.zeros(Y.shape[0])
    np.maximum.at(best, rows, p)
    expected = others * best[rows]
    at = np.flatnonzero((p <= UNLIKELY) & (expected >= EXPECTED))
    at = at[np.argsort((p[at] + 0.01) / expected[at], kind="stable")]
    return Suspects(rows[at], labels[at], p[at])


def missing_labels(documents: Documents, top: TopK) -> Suspects:
    """Find the labels that are probably missing (step 5)."""
    rows, ranks = np.nonzero((top.labels >= 0) & (top.scores >= LIKELY))
    labels, p = top.labels[rows, ranks].astype(np.int64), top.scores[rows, ranks].astype(np.float64)
    has = np.asarray(documents.train.Y[rows, labels]).ravel() > 0
    rows, labels, p = rows[~has], labels[~has], p[~has]
    order = np.argsort(-p, kind="stable")
    return Suspects(rows[order], labels[order], p[order], of_documents=True)


SUSPECTS = {"probably_wrong_labels": wrong_labels, "probably_missing_labels": missing_labels}


def _found(documents: Documents, suspects: Suspects) -> Found | None:
    """Return the surest as examples: label, probability, text, and the labels of the document."""
    n, total = len(suspects.documents), int(documents.train.Y.nnz)
    if suspects.of_documents:  # each once
        n, total = len(np.unique(suspects.documents)), len(documents.train)
    examples = tuple(
        _example(documents, int(suspects.documents[i]), int(suspects.labels[i]), float(suspects.probabilities[i]))
        for i in range(min(len(suspects.documents), documents.n_examples))
    )
    return Found(n, total, examples) if n else None


def _example(documents: Documents, number: int, label: int, probability: float) -> Example:
    text = "" if documents.texts is None else f" in “{shown(documents.texts[number], 60)}”"
    name = shown_name(documents.labels.names[label], 50)
    return documents.example(number, what=f"{name} ({probability:.2f}){text}; has {documents.label_names(number)}")
