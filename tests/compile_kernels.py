"""Compile the kernels into numba's cache before the tests, which run in several processes and would each compile them.

Every method, with each of its settings in ``tests/models/variants.py``, learns a few documents, is saved and loaded,
and tags them; with its small settings it also learns features that are read from a file. The last part then runs what
of the library compiles kernels of its own. What only a test of its own calls is compiled there.
"""

import sys
from contextlib import suppress
from importlib.util import find_spec

from labelspace.data.checks import Documents, run_checks
from labelspace.data.synthetic import shaped
from labelspace.experiment.warmup import compile_kernels, few_documents, few_rows, reads_features
from labelspace.labels.hierarchy import include_ancestors
from labelspace.models.registry import METHODS
from labelspace.tagger import Tagger
from labelspace.types import Dataset, Hierarchy, TopK
from tests.models.variants import OTHERS, SMALL

NEED_TORCH = ("secseq", "mlc2seq", "text2text")


def main(part: int, parts: int) -> None:
    """Run this part of the methods, 1 to ``parts``, without those whose packages are not installed."""
    names = list(METHODS)
    first, last = ((number * len(names)) // parts for number in (part - 1, part))
    documents, rows = few_documents(), few_rows()
    for name in names[first:last]:
        if name not in NEED_TORCH or find_spec("torch"):
            for params in (SMALL.get(name, {}), *OTHERS.get(name, ())):
                with suppress(Exception):  # the tests say more of it
                    compile_kernels(name, documents, params)
            if reads_features(name, documents):
                with suppress(Exception):
                    compile_kernels(name, rows, SMALL.get(name, {}))
    if part == parts:
        compile_others(documents)


def compile_others(documents: Dataset) -> None:
    """Run what compiles kernels but is no method: checks, synthetic data, further features, indexes, searches."""
    from labelspace.server.label_search import LabelSearch

    compile_kernels("glas", documents, {"index": "quantized", "recall_target": 0.01})
    for features, params in (("hashing", {"ngrams": 2}), ("tfidf", {"ngrams": 3, "min_df": 1})):
        Tagger("popular", features=features, feature_params=params).fit_dataset(documents)
    run_checks(Documents({"train": documents}))
    shaped("Amazon-670K", fraction=0.001)
    tree = Hierarchy.from_edges([[label, label // 2] for label in range(1, 20)], n_labels=20)
    include_ancestors(TopK.empty(1, 3), tree, k=3)
    LabelSearch(documents.labels).find("warm", limit=5)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
