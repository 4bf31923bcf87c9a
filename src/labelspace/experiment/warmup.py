"""Compile kernels ahead of time: train on a few documents, save and load the model, tag, explain a label, and learn."""

import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from labelspace.data.source import read_dataset, write_dataset
from labelspace.data.synthetic import planted
from labelspace.errors import ParameterError
from labelspace.models.capabilities import Explains, PartialFit
from labelspace.models.registry import create, method
from labelspace.tagger import Tagger
from labelspace.types import Dataset, Progress, no_progress

FEW = {"epochs": 1, "boosting_rounds": 1}  # one step compiles the kernels of all steps


def few_documents(n: int = 120, n_labels: int = 20) -> Dataset:
    """Return documents that have only texts."""
    return replace(planted(n=n, d=200, l=n_labels, texts=True, seed=7), X=None)


def few_rows(n: int = 120, n_labels: int = 20) -> Dataset:
    """Return documents that have only ready-made features, written to a file and read."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "features.txt")
        write_dataset(planted(n=n, d=200, l=n_labels, seed=7), file)
        return read_dataset(file)


def reads_features(name: str, documents: Dataset) -> bool:
    """Return whether a method can learn from ready-made features."""
    return any(view.is_matrix for view in create(name).views(documents))


def compile_kernels(
    name: str, documents: Dataset, params: Mapping[str, Any] | None = None, progress: Progress = no_progress
) -> None:
    """Run all that a method compiles: training in as few steps as it allows, saving, loading, tagging and learning."""
    few = {key: value for key, value in FEW.items() if key in method(name).defaults()}
    # set_params checks nothing: some of these parameters may have no effect together.
    tagger = Tagger(create(name).set_params(**{**(params or {}), **few}))
    tagger.fit_dataset(documents, progress=progress)
    with tempfile.TemporaryDirectory() as folder:
        tagger.save(Path(folder, "model"))
        loaded = Tagger.load(Path(folder, "model"))
        inputs = loaded.inputs_of(documents)
        loaded.predict_topk(inputs, k=3)
        loaded.predict_topk(inputs, k=3, include=loaded.labels_.names[:3])
        if isinstance(loaded.model, Explains):
            loaded.explain(inputs[0], k=1)
        if isinstance(loaded.model, PartialFit):
            with suppress(ParameterError):  # a method may be able to learn with some settings only
                loaded.learn(documents.rows(range(2)))
