"""Compile the kernels into numba's cache before the tests, which run in several processes and would each compile them.

Every method, with each of its settings in ``tests/models/variants.py``, learns a few documents, is saved and loaded,
and tags them. What only a test of its own calls is compiled there.
"""

import sys
import tempfile
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from labelspace import Tagger
from labelspace.data.synthetic import planted
from labelspace.models.registry import METHODS, create, method
from labelspace.types import Dataset
from tests.models.variants import OTHERS, SMALL

NEED_TORCH = ("secseq", "mlc2seq", "text2text")


def run(name: str, params: dict[str, Any], documents: Dataset) -> None:
    """Train, save, load and predict, with as few steps as the method allows."""
    few = {"epochs": 1, "boosting_rounds": 1}
    params = params | {key: value for key, value in few.items() if key in method(name).defaults()}
    tagger = Tagger(create(name).set_params(**params)).fit_dataset(documents)  # some may have no effect
    with tempfile.TemporaryDirectory() as folder:
        tagger.save(Path(folder, "model"))
        Tagger.load(Path(folder, "model")).predict_topk(documents.texts, k=3)


def main(part: int, parts: int) -> None:
    """Run this part of the methods, 1 to ``parts``, without those whose packages are not installed."""
    names = list(METHODS)
    first, last = ((number * len(names)) // parts for number in (part - 1, part))
    documents = replace(planted(n=120, d=200, l=20, texts=True, seed=7), X=None)
    for name in names[first:last]:
        if name not in NEED_TORCH or find_spec("torch"):
            for params in (SMALL.get(name, {}), *OTHERS.get(name, ())):
                with suppress(Exception):  # the tests say more of it
                    run(name, params, documents)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
