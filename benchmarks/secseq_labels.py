"""SeCSeq with growing numbers of labels on planted data: parameters, accuracy, time and memory.

python benchmarks/secseq_labels.py [--labels 2000 20000 200000] [--documents 20000] [--epochs 2]
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from labelspace.data.synthetic import planted
from labelspace.models.secseq.model import SeCSeq

UNSEEN = 1_000  # documents to evaluate on


def main() -> None:
    """Print one Markdown table; peak memory is that of all rows so far."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=int, nargs="+", default=[2_000, 20_000, 200_000])
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=20_000)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    heads = ("labels", "parameters", "of the network", "P@1", "train CPU s", "CPU ms per document", "peak GB")
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for n_labels in args.labels:
        data = planted(n=args.documents, d=args.features, l=n_labels, seed=1)
        seen = args.documents - UNSEEN
        train, unseen = data.rows(range(seen)), data.rows(range(seen, args.documents))
        assert train.X is not None
        assert unseen.X is not None
        start = time.process_time()
        model = SeCSeq(epochs=args.epochs).fit(train.X, train.Y)
        train_seconds = time.process_time() - start
        model.predict_topk(unseen.X[:1])  # compiles kernels and builds the prefix table
        start = time.process_time()
        first = model.predict_topk(unseen.X, 5).labels[:, 0]
        milliseconds = 1e3 * (time.process_time() - start) / UNSEEN
        precision = 100 * float(np.mean(unseen.Y[np.arange(UNSEEN), first]))
        report, peak = model.report(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        sizes = f"{report['parameters']:,} | {report['network_parameters']:,}"
        print(
            f"| {n_labels:,} | {sizes} | {precision:.1f} | {train_seconds:.1f} | {milliseconds:.2f} | {peak:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
