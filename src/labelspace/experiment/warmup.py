"""Compile kernels ahead: train a few documents, save and load the model, and tag a document with it."""

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from labelspace.data.synthetic import planted
from labelspace.models.registry import create, method
from labelspace.tagger import Tagger
from labelspace.types import Dataset, Progress, no_progress

FEW = {"epochs": 1, "boosting_rounds": 1}  # steps, for the methods that have them


def few_documents(n: int = 120, n_labels: int = 20) -> Dataset:
    """Documents that have texts only."""
    return replace(planted(n=n, d=200, l=n_labels, texts=True, seed=7), X=None)


def compile_kernels(
    name: str, documents: Dataset, params: Mapping[str, Any] | None = None, progress: Progress = no_progress
) -> None:
    """Run what a method compiles: training, with as few steps as it allows, saving, loading and tagging."""
    few = {key: value for key, value in FEW.items() if key in method(name).defaults()}
    tagger = Tagger(create(name).set_params(**{**(params or {}), **few}))  # some may have no effect
    tagger.fit_dataset(documents, progress=progress)
    with tempfile.TemporaryDirectory() as folder:
        tagger.save(Path(folder, "model"))
        Tagger.load(Path(folder, "model")).predict_topk(documents.texts, k=3)
