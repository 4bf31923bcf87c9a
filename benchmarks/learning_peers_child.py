"""One learner of ``learning_peers.py`` on a stream of documents, in a process of its own; prints one JSON line.

This file runs in the peers' environments too: it imports only NumPy, SciPy and the learner's own package.
"""

from __future__ import annotations

import argparse
import importlib
import json
import resource
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

K = 5
PAGE = resource.getpagesize()


class Stream:
    """Documents in the order in which they come: texts, tf-idf features, and labels."""

    def __init__(self, folder: Path) -> None:
        read = json.loads((folder / "stream.json").read_text(encoding="utf-8"))
        self.texts: list[str] = read["texts"]
        self.names: list[str] = read["names"]
        self.X = sp.load_npz(folder / "features.npz").tocsr()
        self.labels: list[list[int]] = read["labels"]

    def __len__(self) -> int:
        return len(self.texts)

    def features(self, row: int) -> tuple[list[int], list[float]]:
        """Return the columns and weights of a document."""
        start, stop = self.X.indptr[row : row + 2]
        return self.X.indices[start:stop].tolist(), self.X.data[start:stop].tolist()


class Learner(Protocol):
    """Predicts and learns documents of a stream, which are given by their rows. Only learning reads their labels."""

    def start(self, rows: range) -> None:
        """Train on the first documents."""

    def predict(self, rows: range) -> list[list[int]]:
        """Return at most K labels of each document, best first."""

    def learn(self, rows: range) -> None:
        """Go on learning from documents."""


class Labelspace:
    """A method of labelspace with ``Tagger.learn``; it reads texts."""

    package = "labelspace"

    def __init__(self, stream: Stream, method: str = "blend", **settings: Any) -> None:  # noqa: ANN401 - as Tagger
        self.stream = stream
        self.ids = {name: label for label, name in enumerate(stream.names)}
        self.tagger = importlib.import_module("labelspace.tagger").Tagger(method, **settings)

    def documents(self, rows: range) -> tuple[list[str], list[list[str]]]:
        """Return the texts, and the names of their labels."""
        names = [[self.stream.names[label] for label in self.stream.labels[row]] for row in rows]
        return [self.stream.texts[row] for row in rows], names

    def start(self, rows: range) -> None:
        """Train on the first documents."""
        self.tagger.fit(*self.documents(rows))

    def predict(self, rows: range) -> list[list[int]]:
        """Return the best labels of each text."""
        tags = self.tagger.tag_batch([self.stream.texts[row] for row in rows], K)
        return [[self.ids[name] for name, _ in of_text] for of_text in tags]

    def learn(self, rows: range) -> None:
        """Go on learning."""
        self.tagger.learn(*self.documents(rows))


class River:
    """One-vs-rest logistic regression of river, which makes a classifier for each label that occurs."""

    package = "river"

    def __init__(
        self, stream: Stream, optimizer: str = "SGD", lr: float = 0.01, passes: int = 1, **settings: float
    ) -> None:
        self.stream = stream
        self.passes = passes
        step = getattr(importlib.import_module("river.optim"), optimizer)(lr)
        regression = importlib.import_module("river.linear_model").LogisticRegression(step, **settings)
        self.model = importlib.import_module("river.multioutput").PerOutputClassifier(regression)
        self.known: set[int] = set()

    def document(self, row: int) -> dict[int, float]:
        """Return a document as river takes it."""
        columns, weights = self.stream.features(row)
        return dict(zip(columns, weights, strict=True))

    def start(self, rows: range) -> None:
        """Go over the first documents."""
        for _ in range(self.passes):
            self.learn(rows)

    def predict(self, rows: range) -> list[list[int]]:
        """Rank the probabilities of all classifiers."""
        return [self.best(self.model.predict_proba_one(self.document(row))) for row in rows]

    def best(self, probabilities: dict[int, dict[bool, float]]) -> list[int]:
        """Return the labels of the highest probabilities."""
        return sorted(probabilities, key=lambda label: -probabilities[label][True])[:K]

    def learn(self, rows: range) -> None:
        """Give each document to the classifiers of all labels that have occurred: river does not add those it lacks."""
        for row in rows:
            present = set(self.stream.labels[row])
            self.known |= present
            self.model.learn_one(self.document(row), {label: label in present for label in self.known})


class VowpalWabbit:
    """One-against-all or a probabilistic label tree of Vowpal Wabbit; the number of labels is fixed at its start."""

    package = "vowpalwabbit"

    def __init__(
        self, stream: Stream, tree: bool = True, arguments: str = "", passes: int = 1, words: bool = False
    ) -> None:
        self.stream = stream
        self.passes = passes
        self.words = words
        number = len(stream.names)
        ranked = f"--plt {number} --top_k {K}"
        all_labels = f"--multilabel_oaa {number} --probabilities"
        self.is_tree = tree
        chosen = ranked if tree else all_labels
        workspace = importlib.import_module("vowpalwabbit").Workspace
        self.model = workspace(f"{chosen} --loss_function logistic --quiet {arguments}")
        self.waiting: dict[int, Any] = {}  # parsed documents, which were predicted and not yet learned

    def example(self, row: int) -> Any:  # noqa: ANN401 - an Example of Vowpal Wabbit
        """Parse a document with its labels, which a prediction does not read."""
        if self.words:
            said = "".join(letter if letter.isalnum() else " " for letter in self.stream.texts[row].lower())
        else:
            columns, weights = self.stream.features(row)
            said = " ".join(f"{column}:{weight:.6g}" for column, weight in zip(columns, weights, strict=True))
        return self.model.example(f"{','.join(map(str, self.stream.labels[row]))} | {said}")

    def start(self, rows: range) -> None:
        """Go over the first documents."""
        for _ in range(self.passes):
            self.learn(rows)

    def predict(self, rows: range) -> list[list[int]]:
        """Rank the labels; parsed documents are kept for ``learn``."""
        self.waiting = {row: self.example(row) for row in rows}
        answers = [self.model.predict(example) for example in self.waiting.values()]
        if self.is_tree:
            return [answer[:K] for answer in answers]
        return [best_of(np.array(answer, np.float32)) for answer in answers]

    def learn(self, rows: range) -> None:
        """Go on learning."""
        for row in rows:
            example = self.waiting.pop(row, None)
            if example is None:
                example = self.example(row)
            self.model.learn(example)
            self.model.finish_example(example)


class NapkinXC:
    """The online probabilistic label tree of napkinXC: new labels join the tree.

    Its Python package can go on learning from the files of a model only: each batch is loaded, learned and saved.
    """

    package = "napkinxc"

    def __init__(self, stream: Stream, passes: int = 1, **settings: Any) -> None:  # noqa: ANN401 - as its command line
        self.stream = stream
        self.passes = passes
        self.folder = tempfile.TemporaryDirectory()
        self.settings = {
            "model": "oplt",
            "tree_type": "onlineBestScore",
            "optimizer": "adagrad",
            "loss": "log",
            "weights_threshold": 0,  # the default drops small weights each time that it saves
            "save_grads": True,  # without them, AdaGrad begins anew at each batch
            "threads": 1,
            "seed": 1,
            "verbose": 0,
            **settings,
        }
        self.model = self.made(self.folder.name)

    def made(self, folder: str) -> Any:  # noqa: ANN401 - a Model of napkinXC
        """Make a model that is not trained."""
        return importlib.import_module("napkinxc.models").Model(output=folder, **self.settings)

    def start(self, rows: range) -> None:
        """Go over the first documents."""
        self.model.set_params(epochs=self.passes)
        self.fit(rows)
        self.model.set_params(epochs=1, resume=True)

    def fit(self, rows: range) -> None:
        """Learn documents, and save the model."""
        self.model.fit(self.stream.X[rows.start : rows.stop], [self.stream.labels[row] for row in rows])

    def predict(self, rows: range) -> list[list[int]]:
        """Return the best labels of each document."""
        answers: list[list[int]] = self.model.predict(self.stream.X[rows.start : rows.stop], top_k=K)
        return answers

    def learn(self, rows: range) -> None:
        """Load what was saved, go on learning, and save."""
        self.model.unload()  # else the classifiers in memory are never freed
        self.fit(rows)

    def whole_cpu(self) -> float:
        """Return the CPU seconds to learn all documents in one call, and to predict them: nothing is read again."""
        with tempfile.TemporaryDirectory() as folder:
            began = time.process_time()
            model = self.made(folder)
            model.fit(self.stream.X, self.stream.labels)
            model.predict(self.stream.X, top_k=K)
            return time.process_time() - began


LEARNERS = {"labelspace": Labelspace, "river": River, "vowpalwabbit": VowpalWabbit, "napkinxc": NapkinXC}


def best_of(scores: np.ndarray[Any, np.dtype[np.float32]]) -> list[int]:
    """Return the labels with the highest scores; of equal ones, the first."""
    best: list[int] = np.argsort(-scores, kind="stable")[:K].tolist()
    return best


def memory_mb() -> float:
    """Return the memory of this process."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE / 2**20


def peak_mb() -> float:
    """Return the peak memory of this process; ``ru_maxrss`` would be that of the process that started it, if larger."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    peak = next(line for line in lines if line.startswith("VmHWM:"))
    return int(peak.split()[1]) / 1024


def run(learner: Learner, n: int, first: int, batch: int, cpu_limit: float, memory_limit: float) -> dict[str, Any]:
    """Predict each batch, then learn it, until the documents, the CPU seconds or the memory come to an end."""
    began = time.process_time()
    learner.start(range(first))
    started = time.process_time()
    top: list[list[int]] = []
    predicting = 0.0
    learning = 0.0
    for at in range(first, n, batch):
        rows = range(at, min(at + batch, n))
        before = time.process_time()
        answers = learner.predict(rows)
        between = time.process_time()
        learner.learn(rows)
        predicting += between - before
        learning += time.process_time() - between
        top += answers
        if time.process_time() - started > cpu_limit or memory_mb() > memory_limit:
            break
    return {"top": top, "start_cpu": started - began, "predict_cpu": predicting, "learn_cpu": learning}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one learner."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--learner", choices=LEARNERS, required=True)
    parser.add_argument("--settings", type=json.loads, default={})
    parser.add_argument("--first", type=int, required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--cpu-limit", type=float, required=True)
    parser.add_argument("--memory-limit", type=float, required=True, help="in MB")
    args = parser.parse_args(arguments)
    stream = Stream(args.folder)
    make: Any = LEARNERS[args.learner]
    learner = make(stream, **args.settings)
    figures = run(learner, len(stream), args.first, args.batch, args.cpu_limit, args.memory_limit)
    figures |= {"peak_mb": peak_mb(), "version": version(make.package)}
    figures["whole_cpu"] = learner.whole_cpu() if isinstance(learner, NapkinXC) else None
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
