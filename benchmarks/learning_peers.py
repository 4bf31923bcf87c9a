"""Methods that go on learning against peers that do, on one stream of documents: precision, speed and memory.

    python benchmarks/learning_peers.py DATA --river PYTHON --vowpalwabbit PYTHON --napkinxc PYTHON

Each PYTHON is the interpreter of an environment with that peer (``pip install river numpy scipy``, and so on); a peer
that is not given is left out. All learners train on the first 1,000 documents. Then come batches of 100: each batch is
predicted before it is learned (prequential P@k), the same documents in the same order for everyone. Seconds are CPU
seconds of the learner's own process, from the first batch on. A learner that takes longer than ``--cpu-limit``, or
more memory than ``--memory-limit``, stops there, and is compared with the first row on the documents that it had.

labelspace reads the texts. The peers get tf-idf of words as labelspace makes it, with columns for new words as they
come; making it takes CPU seconds that are printed, and not counted for the peers. The tree of Vowpal Wabbit is also
given the words themselves, which is 0.3 points of P@1 better on CookingSE, and much worse on the long texts of
EURLEX57K. Vowpal Wabbit is told the number of all labels beforehand, as it must be. The settings of the peers are the
best of several on the stream of CookingSE itself, for river and napkinXC on the beginning of it; those of labelspace
are its defaults. napkinXC can only go on from a model in files: how fast it would be without reading and writing these
is given below the table.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from learning_peers_child import K
from peers import THREADS

from labelspace.data.source import open_source
from labelspace.experiment import timed
from labelspace.features import Tfidf
from labelspace.types import Bools, Csr

CHILD = Path(__file__).with_name("learning_peers_child.py")
HERE = "labelspace"


class Contender(NamedTuple):
    """A row of the table: a learner of ``learning_peers_child.py`` with settings."""

    title: str
    learner: str
    settings: dict[str, Any]


TREE = "-b 24 -l 5 --power_t 0.3 --kary_tree 16"
CONTENDERS = (
    Contender("blend (default)", HERE, {}),
    Contender("pdsparse, per_label", HERE, {"method": "pdsparse", "per_label": True}),
    Contender("neighbors", HERE, {"method": "neighbors"}),
    # With river's own intercept of 0, new labels have a probability of 0.5 and are ranked first: 17 % P@1 at best.
    Contender("one-vs-rest", "river", {"optimizer": "SGD", "lr": 5.0, "intercept_init": -5, "intercept_lr": 0.1}),
    Contender("one-against-all", "vowpalwabbit", {"tree": False, "arguments": "-b 24 -l 10 --power_t 0.15"}),
    Contender("tree", "vowpalwabbit", {"arguments": TREE}),
    Contender("tree of its own words", "vowpalwabbit", {"words": True, "arguments": TREE}),
    Contender("OPLT", "napkinxc", {"arity": 16, "eta": 2}),
)


def write_stream(data: str, n: int | None, first: int, batch: int, seed: int, folder: Path) -> tuple[Csr, float]:
    """Write documents in random order with their features; return the labels, and CPU seconds to make the features."""
    train = open_source(data).train()
    documents = train.rows(np.random.default_rng(seed).permutation(len(train))[:n])
    if documents.texts is None:
        sys.exit("the documents must be texts, which the peers cannot share otherwise; give data with texts")
    texts = list(documents.texts)
    features = Tfidf(ngrams=1).fit(texts[:first])
    blocks = [features.transform(texts[:first])]
    with timed() as taken:
        for at in range(first, len(texts), batch):
            features = features.grown(texts[at : at + batch])
            blocks.append(features.transform(texts[at : at + batch]))
    for block in blocks:
        block.resize(block.shape[0], features.n_features)
    sp.save_npz(folder / "features.npz", sp.vstack(blocks, format="csr"))
    labels = [row.indices.tolist() for row in documents.Y]
    stream = {"texts": texts, "labels": labels, "names": list(documents.labels.names)}
    (folder / "stream.json").write_text(json.dumps(stream), encoding="utf-8")
    return documents.Y, taken.cpu


def hits(Y: Csr, top: list[list[int]], first: int) -> Bools:
    """Return whether each suggestion is a label of the document. Shape (n, K)."""
    found = np.zeros((len(top), K), bool)
    for row, answer in enumerate(top):
        true = Y.indices[Y.indptr[first + row] : Y.indptr[first + row + 1]]
        found[row, : len(answer)] = np.isin(answer, true)
    return found


def precisions(found: Bools) -> str:
    """Return P@1, P@3 and P@5 in percent."""
    return " / ".join(f"{100 * found[:, :k].mean():.2f}" for k in (1, 3, K))


def run_child(python: str, folder: Path, contender: Contender, args: argparse.Namespace) -> dict[str, Any] | str:
    """Return the figures of a learner, or the last line of its error."""
    command = [python, str(CHILD), str(folder), "--learner", contender.learner]
    command += ["--settings", json.dumps(contender.settings)]
    for option in ("first", "batch", "cpu_limit", "memory_limit"):
        command += [f"--{option.replace('_', '-')}", str(getattr(args, option))]
    environment = {**os.environ, **dict.fromkeys(THREADS, "1")}  # waiting threads would count as CPU seconds
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return lines[-1][:200]
    figures: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return figures


def main() -> None:
    """Run the learners one after the other, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    for peer in ("river", "vowpalwabbit", "napkinxc"):
        parser.add_argument(f"--{peer}", metavar="PYTHON")
    parser.add_argument("--documents", type=int, help="at most this many, by default all training documents")
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--cpu-limit", type=float, default=600, help="seconds")
    parser.add_argument("--memory-limit", type=float, default=8000, help="MB")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    pythons = {HERE: sys.executable, **{peer: getattr(args, peer) for peer in ("river", "vowpalwabbit", "napkinxc")}}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        Y, features_cpu = write_stream(args.data, args.documents, args.first, args.batch, args.seed, folder)
        n = Y.shape[0] - args.first
        print(
            f"{args.first:,} documents to start, then {n:,} in batches of {args.batch}; {Y.shape[1]:,} labels; ", end=""
        )
        print(f"features {features_cpu:.2f} CPU s; load average {os.getloadavg()[0]:.1f}\n", flush=True)
        print("| | documents | P@1 / 3 / 5 | first row on these | documents per CPU s | predict | learn | start | MB |")
        print("|---|---|---|---|---|---|---|---|---|", flush=True)
        ours: Bools | None = None
        notes = []
        for contender in CONTENDERS:
            python = pythons[contender.learner]
            if python is None:
                continue
            figures = run_child(python, folder, contender, args)
            title = f"{contender.learner}, {contender.title}"
            if isinstance(figures, str):
                print(f"| {title} | {figures} | | | | | | | |", flush=True)
                continue
            found = hits(Y, figures["top"], args.first)
            ours = found if ours is None else ours
            predict, learn, start = (figures[f"{step}_cpu"] for step in ("predict", "learn", "start"))
            rate = len(found) / (predict + learn)
            title = f"{contender.learner} {figures['version']}, {contender.title}"
            if figures["whole_cpu"] is not None:
                rate_of_all = Y.shape[0] / figures["whole_cpu"]
                notes.append(f"{title}, all documents learned in one call and predicted in one: {rate_of_all:,.0f}")
            cells = [title, f"{len(found):,}", precisions(found), precisions(ours[: len(found)]), f"{rate:,.0f}"]
            cells += [f"{predict:.2f} s", f"{learn:.2f} s", f"{start:.2f} s", f"{figures['peak_mb']:.0f}"]
            print("|", " | ".join(cells), "|", flush=True)
    for note in notes:
        print(f"\n{note} documents per CPU s")


if __name__ == "__main__":
    main()
