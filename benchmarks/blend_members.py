"""Which members pay in a blend: the predictions of each member are made once and kept, then combinations are stacked.

    python benchmarks/blend_members.py DATA --cache FOLDER --members neighbors,label_tree,network,glas
        --try fastxml,sleec,label_tree:words/C=1

A member is METHOD, METHOD:VIEW, or either with /KEY=VALUE. Members are trained on the training documents, in folds and
as a whole, and evaluated on documents that are held out: ``dev.*``, or a fifth of train. The test file is not read.
Prints the members of ``--members`` together, without each of them, and with each of ``--try``: accuracy, and the CPU
seconds to train the members once on all training documents.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from labelspace.cli.recipes import parse_settings
from labelspace.data.source import open_source
from labelspace.data.splits import hold_out
from labelspace.features.views import GIVEN, TEXT, Views, ViewTransformer
from labelspace.metrics import evaluate, expected_calibration_error
from labelspace.models.blend.members import Member, base_views, member_params, member_view, parse_members, view_for
from labelspace.models.blend.model import Blend
from labelspace.models.blend.stacking_model import Candidates, count_pairs, fit_passes, second_pass
from labelspace.models.blend.stacking_table import n_columns, stacking_table
from labelspace.models.blend.training import choose_folds, held_out_folds, side_by_side
from labelspace.models.fit_context import FitContext
from labelspace.models.registry import create
from labelspace.types import Csr, LabelSpace, Longs, TopK, no_progress

DEPTH = 40  # labels per document that are kept of each member
SHOWN = ("P@1", "P@3", "P@5", "nDCG@5", "RP@5", "PSP@1", "PSP@5", "ECE@5")


@dataclass
class Data:
    """Documents under all views that are needed, and the rows of each fold."""

    train: Views
    Y: Csr
    unseen: Views
    truth: Csr
    labels: LabelSpace | None
    folds: list[Longs]


@dataclass
class Predictions:
    """What a member says of the documents of each fold, and of those held out."""

    folds: list[TopK]
    unseen: TopK
    cpu: float


def read(path: str, members: list[Member], n_folds: int | None, sample: int | None) -> Data:
    """Training documents and documents held out, under the views of all members."""
    source = open_source(path)
    train = source.train()
    unseen = source.dev(train.labels)
    if sample is not None:
        train = train.rows(np.random.default_rng(0).permutation(len(train))[:sample])
    if unseen is None:
        train, unseen = hold_out(train, 0.2, seed=0)
    folds = held_out_folds(len(train), n_folds or choose_folds(len(train)), 0)
    labels = train.labels if train.labels.are_named else None
    if train.X is not None:
        return Data(Views({GIVEN: train.X}), train.Y, Views({GIVEN: unseen.X}), unseen.Y, labels, folds)
    names = dict.fromkeys([*base_views(members), TEXT.name])
    views = ViewTransformer(member_view(name, len(train)) for name in names)
    made = views.fit_transform(train.texts or [])
    return Data(made, train.Y, views.transform(unseen.texts or []), unseen.Y, labels, folds)


def predictions(data: Data, text: str, cache: Path, name: str) -> Predictions:
    """What a member predicts: read from the cache, or made and kept there."""
    member, params = parse(text)
    key = hashlib.sha256(f"{name} {text} {len(data.folds)} {data.Y.shape} {data.Y.nnz}".encode()).hexdigest()[:16]
    file = cache / f"{key}.npz"
    n_folds = len(data.folds)
    if not file.exists():
        rows = np.arange(data.Y.shape[0])
        made = [train(data, member, params, np.setdiff1d(rows, held), data.train.rows(held)) for held in data.folds]
        made.append(train(data, member, params, rows, data.unseen))
        arrays = {f"{i}-{part}": getattr(top, part) for i, (top, _) in enumerate(made) for part in ("labels", "scores")}
        np.savez(file, cpu=made[-1][1], **arrays)
    with np.load(file) as kept:
        tops = [TopK(kept[f"{i}-labels"], kept[f"{i}-scores"]) for i in range(n_folds + 1)]
        return Predictions(tops[:-1], tops[-1], float(kept["cpu"]))


def train(data: Data, member: Member, params: dict[str, Any], rows: Longs, documents: Views) -> tuple[TopK, float]:
    """Train a member on some rows: what it says of other documents, and the CPU seconds."""
    Y, depth = data.Y[rows], min(DEPTH, data.Y.shape[1])
    model = create(member.method, **{**member_params(member, 0), **params})
    begin = time.process_time()
    model.fit_checked(view_for(model, data.train.rows(rows), member.view), Y, FitContext(labels=data.labels))
    cpu = time.process_time() - begin
    return model._predict(model.read(view_for(model, documents, member.view)), depth).padded(depth), cpu


def parse(text: str) -> tuple[Member, dict[str, Any]]:
    """A member and its parameters."""
    name, *settings = text.split("/")
    return parse_members(name)[0], parse_settings(settings)


def accuracy(data: Data, members: list[Predictions]) -> dict[str, float]:
    """The stacking model is fitted on the folds, and ranks the documents held out."""
    blend, held_out = Blend(), []
    for number, held in enumerate(data.folds):
        Y = data.Y[np.setdiff1d(np.arange(data.Y.shape[0]), held)]
        topk = side_by_side([member.folds[number] for member in members])
        pairs = count_pairs(Y)
        table = stacking_table(topk, blend.n_candidates, pairs.log_counts)
        held_out.append(Candidates(table, table.targets(data.Y[held]), pairs))
    columns = n_columns(len(members))
    first, second, _ = fit_passes(held_out, columns, blend.boosting_rounds, 0, no_progress)
    pairs = count_pairs(data.Y)
    table = stacking_table(side_by_side([m.unseen for m in members]), blend.n_candidates, pairs.log_counts)
    top = TopK.empty(data.truth.shape[0], 5)
    table.rank(second_pass(table, first.probabilities(table.columns), second, pairs), top)
    documents_per_label = np.bincount(data.Y.indices, minlength=data.Y.shape[1])
    truth = data.truth[:, : data.Y.shape[1]]
    figures = evaluate(truth, top, documents_per_label, data.Y.shape[0])
    return {**figures, "ECE@5": 100 * expected_calibration_error(truth, top, 5)}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--members", default="neighbors,label_tree,network,glas")
    parser.add_argument("--try", dest="tried", default="")
    parser.add_argument("--folds", type=int)
    parser.add_argument("--sample", type=int, help="training documents to use")
    args = parser.parse_args()
    args.cache.mkdir(parents=True, exist_ok=True)
    base, tried = args.members.split(","), [text for text in args.tried.split(",") if text]
    name = f"{Path(args.data).name}-{args.sample}"
    data = read(args.data, [parse(text)[0] for text in base + tried], args.folds, args.sample)
    made = {}
    for text in base + tried:
        made[text] = predictions(data, text, args.cache, name)
        print(f"{text}: trained in {made[text].cpu:.1f} CPU s", flush=True)
    rows = [base, *([m for m in base if m != left] for left in base if len(base) > 2), *([*base, new] for new in tried)]
    for chosen in rows + ([[*base, *tried]] if len(tried) > 1 else []):
        figures = accuracy(data, [made[text] for text in chosen])
        shown = " ".join(f"{key} {figures[key]:.2f}" for key in SHOWN if key in figures)
        print(f"{shown}  {sum(made[text].cpu for text in chosen):.0f} CPU s  {' '.join(chosen)}", flush=True)


if __name__ == "__main__":
    main()
