"""Learning from feedback: train again on the data and the feedback, compare on held-out documents, swap if no worse.

1. Feedback corrects the labels of training documents with the same text: accepted and added labels are put in, rejected
   labels taken out. A new text is a new document with its accepted and added labels; it is left out if its labels were
   only rejected, since it teaches nothing yet.
2. Held-out documents are those of ``test.*``; without such a file, a tenth of the documents, drawn by a seed.
   Documents with feedback are trained on, and never held out. The others stay the same from one training to the next.
3. The candidate is trained like the current model, with the same method and parameters. If the current model has
   seen held-out documents, the candidate is compared with a model trained like it without them and the feedback.
4. The candidate takes the place of the current model unless its nDCG@5 is significantly lower (paired bootstrap), or
   lower by more than ``MAX_LOSS``: few documents make nothing significant.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from labelspace import metrics
from labelspace.data.label_mapping import ones_of_rows, widened
from labelspace.data.source import Source
from labelspace.errors import DataError
from labelspace.metrics import compare_with_best
from labelspace.models.registry import create
from labelspace.server.database import Database, Feedback
from labelspace.tagger import Tagger
from labelspace.types import Csr, Dataset, Progress, TopK

METRIC = "nDCG@5"
MAX_LOSS = 1.0  # percentage points
SEEN = 0.05  # share of held-out documents; a model trained on more of them has figures that are too good
HELD_OUT = 0.1  # share of the documents, if there is no test file
MAX_HELD_OUT = 5000  # documents
CURRENT, CANDIDATE = "current", "candidate"
KS = (1, 3, 5)


def learn(folder: Path, source: Source, database: Database, model: str, progress: Progress) -> dict[str, Any]:
    """Train the model of a folder again; return the comparison and its outcome as plain values."""
    current = Tagger.load(folder)
    source = source.read_as(current.columns_, current.fields_)
    feedback = database.feedback(model)
    rest, held_out, held_from = split(source.train(), source, {each.text for each in feedback})
    train, use = with_feedback(rest, feedback)
    validation = source.dev(train.labels)
    reference, compared_with = current, "the current model"
    if seen_share(current, held_out) > SEEN:  # step 3
        reference = trained_like(current, rest, validation, progress)
        compared_with = "the same method without feedback and held-out documents"
    candidate = trained_like(current, train, validation, progress)
    progress("comparing both models", 0, 1)
    result = compared(reference, candidate, held_out)
    if result["swapped"]:
        candidate.save(folder)
    held = {"n": len(held_out), "from": held_from}
    return {**use._asdict(), **result, "held_out": held, "compared_with": compared_with}


def split(documents: Dataset, source: Source, reviewed: Collection[str]) -> tuple[Dataset, Dataset, str]:
    """Return documents to train on, held-out documents without reviewed texts, and their source (step 2)."""
    if documents.texts is None:
        raise DataError(f"learning needs texts, but {source.path} has ready-made features; give data with texts")
    test = source.test(documents.labels)
    if test is not None and source.test_path is not None:
        rest = documents
        held_out = without_texts(test, reviewed)
        held_from = source.test_path.name
    else:
        n = len(documents)
        drawn = np.random.default_rng(0).permutation(n)[: min(max(round(n * HELD_OUT), 1), MAX_HELD_OUT, n - 1)]
        held = np.sort([row for row in drawn if documents.texts[row] not in reviewed]).astype(np.int64)
        rest = documents.rows(np.setdiff1d(np.arange(n), held))
        held_out = documents.rows(held)
        held_from = f"a sample of {source.train_path.name}"
    if not len(held_out):
        remedy = f"add some to test.* in {source.path}"
        raise DataError(f"learning needs held-out documents without feedback, but {held_from} has none; {remedy}")
    return rest, held_out, held_from


class FeedbackUse(NamedTuple):
    """How many documents the feedback changed."""

    n_feedback: int
    n_corrected_documents: int  # training documents with other labels
    n_new_documents: int
    n_unused_documents: int  # new texts of which labels were only rejected


def with_feedback(documents: Dataset, feedback: Sequence[Feedback]) -> tuple[Dataset, FeedbackUse]:
    """Return documents with corrected labels, then new ones (step 1); later feedback on a text overrides earlier."""
    rows: dict[str, list[int]] = {}
    for row, text in enumerate(documents.texts or []):
        rows.setdefault(text, []).append(row)
    space = documents.labels.extended(chain.from_iterable([*each.accepted, *each.added] for each in feedback))
    lists = [_labels_of(documents.Y, row) for row in range(len(documents))]
    new: dict[str, set[int]] = {}
    changed: dict[int, set[int]] = {}  # labels before
    for each in feedback:
        right = {space.index[name] for name in (*each.accepted, *each.added)}
        wrong = {space.index[name] for name in each.rejected if name in space.index}
        for row in rows.get(each.text, []):
            changed.setdefault(row, lists[row])
            lists[row] = (lists[row] | right) - wrong
        if each.text not in rows:
            new[each.text] = (new.get(each.text, set()) | right) - wrong
    n_corrected = sum(before != lists[row] for row, before in changed.items())
    n_reviewed = len(new)
    new = {text: found for text, found in new.items() if found}
    Y = ones_of_rows(list(map(sorted, [*lists, *new.values()])), len(space))
    new_ids = (f"feedback-{at}" for at in range(1, len(new) + 1))
    ids = None if documents.ids is None else [*documents.ids, *new_ids]
    joined = replace(documents, Y=Y, labels=space, texts=[*(documents.texts or []), *new], ids=ids)
    return joined, FeedbackUse(len(feedback), n_corrected, len(new), n_reviewed - len(new))


def without_texts(documents: Dataset, texts: Collection[str]) -> Dataset:
    """Return the documents that have none of these texts."""
    return documents.rows([row for row, text in enumerate(documents.texts or []) if text not in texts])


def trained_like(model: Tagger, documents: Dataset, validation: Dataset | None, progress: Progress) -> Tagger:
    """Train a model with the same method and parameters on other documents."""
    fresh = Tagger(create(model.model.name, **model.model.get_params()))
    kept = model.training_documents_
    keep_texts = kept is not None and len(kept) > 0 and kept[0][1] is not None
    return fresh.fit_dataset(documents, validation, progress, keep_texts=keep_texts)


def seen_share(tagger: Tagger, documents: Dataset) -> float:
    """Return the share of the documents that a model was trained on; 1 if that is unknown."""
    share = None if tagger.documents_ is None else tagger.documents_.share(documents.texts)
    return 1.0 if share is None else share


def compared(reference: Tagger, candidate: Tagger, held_out: Dataset) -> dict[str, Any]:
    """Return the figures of both models, and whether the candidate is no worse (step 4)."""
    values, figures = {}, {}
    for name, tagger in ((CURRENT, reference), (CANDIDATE, candidate)):
        Y, top = predicted(tagger, held_out)
        values[name] = {METRIC: metrics.per_document(Y, top, ks=KS, propensity_from="test")[METRIC]}
        figures[name] = metrics.evaluate(Y, top, ks=KS, propensity_from="test")
    loss = figures[CURRENT][METRIC] - figures[CANDIDATE][METRIC]
    test = compare_with_best(values)[METRIC]
    significant = test["best"] == CURRENT and test["others"][CANDIDATE]["significant"]
    if loss > MAX_LOSS or (loss > 0 and significant):
        why = f"{METRIC} of the new model is {loss:.2f} points lower; the current one is kept"
        return {"swapped": False, "reason": why, **figures}
    reason = f"{METRIC} of the new model is {0.0 - loss:+.2f} points against the current"
    return {"swapped": True, "reason": reason, **figures}


def predicted(tagger: Tagger, documents: Dataset) -> tuple[Csr, TopK]:
    """Return the true labels and the predicted ones in one label space: models may number labels differently."""
    space = documents.labels.extended(tagger.labels_.names)
    own = np.array([space.index[name] for name in tagger.labels_.names], np.int32)
    top = tagger.predict_topk(documents.texts or [], max(KS))
    labels = np.where(top.labels >= 0, own[np.maximum(top.labels, 0)], -1)
    Y = documents.Y
    return widened(Y, len(space)), TopK(labels, top.scores)


def _labels_of(Y: Csr, row: int) -> set[int]:
    return set(Y.indices[Y.indptr[row] : Y.indptr[row + 1]].tolist())
