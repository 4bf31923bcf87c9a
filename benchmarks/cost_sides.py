"""One side of ``cost.py``, in a process of its own: train, save, load and predict, and print the cost as one JSON line.

Both sides are measured by ``measure``. This file runs in our environment and in the peer's, which has no labelspace.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import pickle
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

K = 5
FEW = 300  # documents of a training that only compiles kernels
WARM_UP = 32  # documents predicted before prediction is timed
SINGLE = 1000  # single documents timed
SINGLE_SECONDS = 20.0  # and at most so long


class Side(Protocol):
    """A library that tags documents; ``measure`` times fit, predict and predict_one, and nothing else."""

    compiling: float  # seconds of training in which kernels were compiled

    def read_train(self) -> None:
        """Import, and read the training documents: parsed texts, or features, and a matrix of labels."""

    def fit(self) -> None:
        """Train on what was read."""

    def save_and_load(self, folder: Path) -> None:
        """Write the model, with its vectorizer, to a folder, and predict with what is read from there."""

    def read_test(self) -> Any:  # noqa: ANN401 - a list of texts, or a matrix
        """The test documents."""

    def predict(self, documents: Any) -> Any:  # noqa: ANN401
        """The best labels of many documents, in the form that the library gives."""

    def predict_one(self, document: Any) -> Any:  # noqa: ANN401
        """The best labels of a list of one text, or of a matrix of one row."""

    def ranked(self, answer: Any) -> Any:  # noqa: ANN401
        """What ``predict`` gave as an array of label ids, best first, padded with -1."""


class _Ours:
    """Labelspace, as ``labelspace train`` runs it; validation documents (``dev.*``) are read ahead too."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.compiling = args, 0.0

    def read_train(self) -> None:
        from labelspace.cli.recipes import make_recipe
        from labelspace.data.source import open_source

        self.source = open_source(self.args.data)
        self.train, self.tagger = self.source.train(), make_recipe(self.args.method, self.args.set, None, 0).tagger()
        self.dev = self.source.dev(self.train.labels)
        if self.args.few:
            self.train = self.train.rows(range(min(FEW, len(self.train))))
            self.dev = None if self.dev is None else self.dev.rows(range(min(FEW, len(self.dev))))

    def fit(self) -> None:
        from labelspace.experiment import timed

        with timed() as taken:
            self.tagger.fit_dataset(self.train, lambda: self.dev)
        self.compiling = taken.compiling

    def save_and_load(self, folder: Path) -> None:
        from labelspace.tagger import Tagger

        self.tagger.save(folder / "model")
        self.tagger = Tagger.load(folder / "model")

    def read_test(self) -> Any:  # noqa: ANN401
        test = self.source.test(self.train.labels)
        assert test is not None
        return self.tagger.inputs_of(test)

    def predict(self, documents: Any) -> Any:  # noqa: ANN401
        return self.tagger.predict_topk(documents, K)

    predict_one = predict

    def ranked(self, answer: Any) -> Any:  # noqa: ANN401
        return answer.labels


class _Peer:
    """scikit-learn's TfidfVectorizer and a peer of the harness; or the peer alone, where there are features.

    The harness makes features of length one before the peer is timed, and so do we; it turns answers into arrays row by
    row in Python, which is not a cost of the peer: ``ranked`` does it, untimed.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self.folder, self.name, self.compiling = args.folder, args.peer, 0.0
        self.harness = load_module(args.harness)
        self.to_array = self.harness.top_from_csr
        self.harness.top_from_csr = lambda answer: answer

    def read(self, split: str) -> Any:  # noqa: ANN401
        """What the parent wrote of a split."""
        if (self.folder / f"{split}.npz").exists():
            return self.harness.l2norm(sp.load_npz(self.folder / f"{split}.npz"))
        with (self.folder / f"{split}.jsonl").open(encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    def read_train(self) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        self.train, self.Y = self.read("train"), sp.load_npz(self.folder / "labels.npz")
        self.vectorizer = None
        if isinstance(self.train, list):
            self.vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2, dtype=np.float32)
        settings = SimpleNamespace(data=str(self.folder), text_train="", text_test="")
        self.peer = self.harness.PEERS[self.name](str(self.folder), settings)

    def fit(self) -> None:
        X = self.train if self.vectorizer is None else self.vectorizer.fit_transform(self.train)
        self.peer.prepare(X, self.Y, X, self.Y)
        self.peer.train()

    def save_and_load(self, folder: Path) -> None:
        self.peer.mdir = str(folder / "model")
        self.peer.save()
        self.peer.ready()
        if self.vectorizer is not None:
            (folder / "vectorizer").write_bytes(pickle.dumps(self.vectorizer))

    def read_test(self) -> Any:  # noqa: ANN401
        return self.read("test")

    def features(self, documents: Any) -> Any:  # noqa: ANN401
        """The matrix that the peer takes."""
        return documents if self.vectorizer is None else self.vectorizer.transform(documents)

    def predict(self, documents: Any) -> Any:  # noqa: ANN401
        return self.peer.predict(self.features(documents))

    def predict_one(self, document: Any) -> Any:  # noqa: ANN401
        return self.peer.one(self.features(document))

    def ranked(self, answer: Any) -> Any:  # noqa: ANN401
        return self.to_array(answer) if sp.issparse(answer) else answer


def load_module(path: str) -> Any:  # noqa: ANN401
    """The module in a file."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cpu_seconds() -> float:
    """User and system time of this process and of its children that ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def peak_mb() -> float:
    """Peak memory of this process; ``ru_maxrss`` would also count what its parent had when it started this one."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


@contextmanager
def clock() -> Iterator[dict[str, float]]:
    """Wall and CPU seconds of the block."""
    taken: dict[str, float] = {}
    wall, cpu = time.perf_counter(), cpu_seconds()
    yield taken
    taken.update(wall=time.perf_counter() - wall, cpu=cpu_seconds() - cpu)


def folder_mb(folder: Path) -> float:
    """The size of all files."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def latencies(side: Side, documents: Any) -> dict[str, float]:  # noqa: ANN401
    """Milliseconds of single documents, p50 and p99 over a seeded sample."""
    n = len(documents) if isinstance(documents, list) else documents.shape[0]
    taken: list[float] = []
    for row in np.random.default_rng(0).permutation(n)[:SINGLE].tolist():
        one = documents[row : row + 1]
        start = time.perf_counter()
        side.predict_one(one)
        taken.append(1e3 * (time.perf_counter() - start))
        if sum(taken) > 1e3 * SINGLE_SECONDS:
            break
    return {f"lat_ms_p{p}": round(float(np.percentile(taken, p)), 3) for p in (50, 99)}


def measure(side: Side, answers: Path) -> dict[str, float]:
    """The cost of a side; its answers for the test documents are written to a file."""
    side.read_train()
    read_mb = peak_mb()
    with clock() as training:
        side.fit()
    train_mb = peak_mb()
    with tempfile.TemporaryDirectory() as folder:
        side.save_and_load(Path(folder))
        model_mb = folder_mb(Path(folder))
        documents = side.read_test()
        side.predict(documents[:WARM_UP])  # reads the model's files, loads compiled kernels
        side.predict_one(documents[:1])
        with clock() as predicting:
            answer = side.predict(documents)
        single = latencies(side, documents)
    top = np.asarray(side.ranked(answer))
    np.save(answers, top)
    return {
        "train_cpu_s": round(training["cpu"], 3),
        "train_s": round(training["wall"], 3),
        "compile_s": round(side.compiling, 3),
        "read_peak_MB": round(read_mb),
        "train_peak_MB": round(train_mb),
        "model_MB": round(model_mb, 3),
        **single,
        "predict_cpu_s": round(predicting["cpu"], 4),
        "predict_per_cpu_s": round(len(top) / predicting["cpu"]),
    }


def main() -> None:
    """Measure one side; peers print freely, so the standard output is closed to them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("side", choices=("ours", "peer"))
    parser.add_argument("folder", type=Path, help="where cost.py wrote the documents for the peer, and answers go")
    parser.add_argument("--data")
    parser.add_argument("--method")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--few", action="store_true", help="train on a few documents, to compile kernels")
    parser.add_argument("--peer")
    parser.add_argument("--harness")
    args = parser.parse_args()
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    side: Side = _Ours(args) if args.side == "ours" else _Peer(args)
    print(json.dumps(measure(side, args.folder / f"{args.side}.npy")), file=out, flush=True)


if __name__ == "__main__":
    main()
