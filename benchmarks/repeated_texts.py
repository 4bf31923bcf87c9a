"""Write a large JSONL file: the documents of a data set again and again, each time with other words left out.

Usage: python benchmarks/repeated_texts.py DATA OUT [--copies 9] [--dropout 0.1] [--seed 0]

DATA is a file, or a folder with train.*. The first copy is whole; of the others, each word is left out with the
probability ``dropout``, so that no two documents are alike. It is for measuring time and memory, not accuracy.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from labelspace.data.source import open_source
from labelspace.types import Dataset


def repeated(documents: Dataset, copies: int, dropout: float, seed: int) -> Iterator[dict[str, object]]:
    """The documents of all copies, as objects of a JSONL file."""
    texts, names, Y = documents.texts, documents.labels.names, documents.Y
    assert texts is not None
    for copy in range(copies):
        random = np.random.default_rng([seed, copy])
        for row, text in enumerate(texts):
            words = text.split(" ")
            kept = random.random(len(words)) >= dropout * (copy > 0)
            labels = [names[label] for label in Y.indices[Y.indptr[row] : Y.indptr[row + 1]]]
            left = [word for word, keep in zip(words, kept.tolist(), strict=True) if keep]
            yield {"id": f"{copy}-{row}", "text": " ".join(left), "labels": labels}


def main() -> None:
    """Read the data set, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("out", type=Path)
    parser.add_argument("--copies", type=int, default=9)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with args.out.open("w", encoding="utf-8") as file:
        for document in repeated(open_source(args.data).train(), args.copies, args.dropout, args.seed):
            file.write(json.dumps(document, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
