"""Doctests of modules that need an extra are skipped where it is not installed; long files run first."""

import gc
from collections import Counter
from importlib.util import find_spec

import pytest

NEED = {
    "faiss": ["index/approximate"],
    "torch": [
        "training/torch_optimizer",
        *(f"models/secseq/{name}" for name in ("decoder", "decoding", "mlc2seq", "model", "objectives", "training")),
        *(f"models/secseq/{name}_search" for name in ("prefix", "sequence")),
        *(f"models/text2text/{name}" for name in ("constrained_decoding", "label_scores", "prompt", "t5", "training")),
    ],
    "optuna": ["experiment/tuning/tune", "experiment/tuning/study"],
    "rdflib": ["data/vocabularies/rdf"],
    "sklearn": [f"sklearn/{name}" for name in ("__init__", "classifier", "parameters", "scorers", "targets")],
    "transformers": [f"models/text2text/{name}" for name in ("model", "pretrained", "subwords")],
}

collect_ignore = [
    f"src/labelspace/{name}.py" for package, names in NEED.items() if not find_spec(package) for name in names
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with the most slow tests first, so that the processes which share the files end together."""
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: -slow[item.path])


def pytest_collection_finish() -> None:
    """What is imported by now stays: to look through it for garbage takes half a second each time."""
    gc.freeze()
