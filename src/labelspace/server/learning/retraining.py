"""Learning from feedback by a full training on the data and all feedback, which replaces the model if it is no worse.

1. Feedback corrects the labels of training documents with the same text: accepted and added labels are put in, rejected
   labels taken out. A new text is a new document with its accepted and added labels; it is left out if its labels were
   only rejected, since it teaches nothing yet.
2. Held-out documents are those of ``test.*``; without such a file, a tenth of the documents, drawn by a seed.
   Documents with feedback are trained on, and never held out. The others stay the same from one training to the next.
3. The candidate is trained like the current model, with the same method and parameters. If the current model has
   seen held-out documents, the candidate is compared with a model trained like it without them and the feedback.
4. The candidate takes the place of the current model unless its nDCG@5 is significantly lower (paired bootstrap), or
   lower by more than ``MAX_LOSS``: few documents make nothing significant. A request may insist on it.
5. A request must insist, too, if the current model learned documents of files that the data lacks: the candidate would
   not know them.

Names of the data that were edited since follow the labels of the current model: renamed, merged or retired.
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
from labelspace.experiment.learning.comparison import changed, document_values
from labelspace.metrics import compare_with_best
from labelspace.models.registry import create
from labelspace.server.database import Database, Feedback
from labelspace.server.learning.feedback_documents import CurrentLabels
from labelspace.server.learning.learned_batches import learned_files, settle
from labelspace.server.learning.outcome import FEEDBACK, LearnOptions, refused, swapped
from labelspace.tagger import Tagger
from labelspace.tagger.lineage import NAMED_LABELS, Origin, Version, learned_version
from labelspace.tagger.versions import open_versioned
from labelspace.types import Csr, Dataset, LabelSpace, Progress, TopK

METRIC = "nDCG@5"
MAX_LOSS = 1.0  # percentage points
SEEN = 0.05  # share of held-out documents; a model trained on more of them has figures that are too good
HELD_OUT = 0.1  # share of the documents, if there is no test file
MAX_HELD_OUT = 5000  # documents
CURRENT, CANDIDATE = "current", "candidate"
KS = (1, 3, 5)


def retrain(
    folder: Path, source: Source, database: Database, model: str, progress: Progress, options: LearnOptions
) -> dict[str, Any]:
    """Train the model of a folder again; return the comparison and its outcome as plain values."""
    with open_versioned(folder) as versions:
        settle(database, model, versions.lineage)
        batch, new = database.take_feedback(model)
        current = Tagger.load(folder)
        source = source.read_as(current.columns_, current.fields_)
        feedback = database.feedback(model)
        are_edited = any(version.made_by == "labels" for version in versions.lineage)
        known = current.labels_ if are_edited else None
        documents = following(source.train(), known)
        rest, held_out, held_from = split(documents, source, {each.text for each in feedback}, known)
        train, use = with_feedback(rest, feedback)
        kept = chain(documents.texts or [], (each.text for each in feedback))
        forgotten = forgotten_files(current, versions.lineage, list(kept))
        if forgotten and not options.force:  # step 5
            nothing: dict[str, Any] = {CURRENT: {}, CANDIDATE: {}, "held_out": None, "compared_with": None}
            return {"mode": "full", **use._asdict(), **nothing, **refused(forgotten)}
        validation = source.dev(train.labels)
        validation = None if validation is None else following(validation, known)
        reference, compared_with = current, "the current model"
        if seen_share(current, held_out) > SEEN:  # step 3
            reference = trained_like(current, rest, validation, progress)
            compared_with = "the same method without feedback and held-out documents"
        candidate = trained_like(current, train, validation, progress)
        progress("comparing both models", 0, 1)
        result = compared(reference, candidate, held_out)
        about = {"mode": "full", **use._asdict(), CURRENT: result[CURRENT], CANDIDATE: result[CANDIDATE]}
        about |= {"held_out": {"n": len(held_out), "from": held_from}, "compared_with": compared_with}
        is_worse = not result["swapped"]
        if is_worse and not options.force:
            return {**about, **refused(result["reason"])}
        change = changed(document_values(reference, held_out), document_values(candidate, held_out), held_from)
        version = trained_version(current, candidate, versions.next_number(), len(new), batch)
        version = replace(version, held_out=change.figures, forced=is_worse)
        versions.add(candidate, version, options.n_kept)
        settle(database, model, versions.lineage)
    insisted = "; it is used all the same, since this was insisted on" if is_worse else ""
    return {**about, **swapped(f"{result['reason']}{insisted}", version)}


def trained_version(current: Tagger, candidate: Tagger, number: int, n_new: int, batch: str) -> Version:
    """Return the version of a model that was trained again with the feedback of a batch, and all before."""
    known = current.labels_.index
    new_labels = tuple(name for name in candidate.labels_.names if name not in known)
    version = learned_version(candidate, number, n_new, len(candidate.labels_), (), Origin(FEEDBACK, batch))
    return replace(version, made_by="train", n_new_labels=len(new_labels), new_labels=new_labels[:NAMED_LABELS])


def forgotten_files(current: Tagger, lineage: Sequence[Version], texts: Sequence[str]) -> str:
    """Return the sentence that a training on these texts would forget documents of files; empty if it would not."""
    learned = learned_files(lineage)
    if not learned or not (current.documents_ is None or current.documents_.has_others(texts)):
        return ""
    files = ", ".join(dict.fromkeys(version.data or "unnamed data" for version in reversed(learned)))
    n = sum(version.n_new_documents for version in learned)
    rule = f"training again would forget documents that the model learned outside the data ({n:,} of {files})"
    return f"{rule}: add them to train.*, or insist"


def following(documents: Dataset, known: LabelSpace | None) -> Dataset:
    """Return documents with the labels that a model answers now for the names of a file.

    ``known`` are its labels if some of them were edited: renamed, merged or retired.
    """
    if known is None:
        return documents
    current = CurrentLabels(known)
    used = np.unique(documents.Y.indices).tolist()
    names = {label: documents.labels.names[label] for label in used}
    labels = known.extended(name for name in names.values() if current.find(name) is None)
    now = CurrentLabels(labels)
    rows = [sorted(now.ids(names[label] for label in _labels_of(documents.Y, row))) for row in range(len(documents))]
    return replace(documents, Y=ones_of_rows(rows, len(labels)), labels=labels)


def split(
    documents: Dataset, source: Source, reviewed: Collection[str], known: LabelSpace | None = None
) -> tuple[Dataset, Dataset, str]:
    """Return documents to train on, held-out documents without reviewed texts, and their source (step 2)."""
    if documents.texts is None:
        raise DataError(f"learning needs texts, but {source.path} has ready-made features; give data with texts")
    test = source.test(documents.labels)
    if test is not None and source.test_path is not None:
        rest = documents
        held_out = without_texts(following(test, known), reviewed)
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
    known = CurrentLabels(documents.labels)
    given = chain.from_iterable([*each.accepted, *each.added] for each in feedback)
    space = documents.labels.extended(name for name in given if known.find(name) is None)
    current = CurrentLabels(space)
    lists = [_labels_of(documents.Y, row) for row in range(len(documents))]
    new: dict[str, set[int]] = {}
    changed: dict[int, set[int]] = {}  # labels before
    for each in feedback:
        right = current.ids((*each.accepted, *each.added))
        wrong = current.ids(each.rejected)
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
        why = f"{METRIC} of the new model is {loss:.2f} points lower"
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
