"""How the cost of every method grows with the number of labels, beside PECOS on the same matrices.

    python benchmarks/scaling.py [--labels 10000,100000,1000000] [--methods all] [--python PECOS_VENV/bin/python]
        [--minutes 20] [--gigabytes 16] [--threads 2] [--json FILE] [--table] [--plot FILE.svg] [--no-runs]

The data are synthetic, of the shape of Amazon-670K (``labelspace.data.synthetic.shaped``) with other numbers of labels:
0.73 training documents and 3.9 occurrences per label, 76 features and 5.4 labels per document, and features as the
square root of labels. There are 2,000 test documents (``--test-documents``). Each method has its defaults. A method
that reads texts alone gets a word for each feature. ``lexical`` reads label names, which such data do not have, and is
left out. PECOS is ``pecos-default`` of the harness ``../shared/peers/bench.py``; it is run where ``--python`` names the
Python of an environment that has it.

Each run is a process of its own. One that takes more than ``--minutes`` of CPU time, from its start to its end, or
``--gigabytes`` of memory is ended, and larger sizes of that method are not tried. With ``--json`` each result is kept
when it is there, with P, nDCG and PSP at 1, 3 and 5, and a later start does the other runs alone: those that are
missing or failed, or were over a limit that is higher now. ``--no-runs`` does none, for the table and the plot of what
is there.

- CPU s: training, of all threads, with loading compiled kernels. Before it, a small training compiles them; a run in
  which more than 5 % of the time went to compiling others is repeated.
- Peak memory: resident, until training ends, with the data. Python, libraries and kernels are about 0.2 GB of it, or
  0.4 with torch. That of PECOS includes reading the matrices; ours begins when they are read.
- Model: what is saved. One row: prediction of a single document by the loaded model (p50).
- Growth: e where a cost grows as labels to the power of e from one size to the next.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from peers import HARNESS, Figures
from scaling_limits import Limits, run_within
from scaling_plot import drawing
from scaling_table import COSTS, PEER, UNSUITED, Runs, failures, short, table, why_missing

from labelspace.data.files import writing_text
from labelspace.data.synthetic import SHAPES, shaped
from labelspace.metrics import evaluate
from labelspace.models.registry import METHODS
from labelspace.types import Ints, TopK

BASE = "Amazon-670K"
MIN_LABELS = 1000
MAX_COMPILING = 0.05  # of the CPU seconds of training
HERE = Path(__file__).parent


def write_matrices(folder: Path, labels: int, test_documents: int) -> None:
    """Write the documents of one size, as ``cost_sides.py`` reads them."""
    base = SHAPES[BASE]
    scale = labels / base.labels
    # A shape of its own: a fraction of one ends at 1, and would have test documents in proportion.
    SHAPES["scaled"] = replace(
        base,
        labels=labels,
        train_documents=round(base.train_documents * scale),
        test_documents=test_documents,
        features=round(base.features * scale**0.5),
    )
    train, test = shaped("scaled")
    matrices = {"train": train.X, "labels": train.Y, "test": test.X, "test_labels": test.Y}
    for name, matrix in matrices.items():
        sp.save_npz(folder / f"{name}.npz", matrix, compressed=False)


def run(method: str, folder: Path, args: argparse.Namespace) -> Figures:
    """The cost of a method on the matrices in a folder, and its accuracy."""
    answers = folder / ("peer.npy" if method == PEER else "ours.npy")
    command = [sys.executable, str(HERE / "scaling_child.py"), method, str(folder)]
    if method == PEER:
        command = [args.python, str(HERE / "cost_sides.py"), "peer", str(folder)]
        command += ["--peer", "pecos-default", "--harness", str(args.harness)]
    setting = {"threads": args.threads, **asdict(args.limits)}
    figures = run_within(args.limits, command, args.threads)
    if figures.get("compile_s", 0.0) > MAX_COMPILING * figures.get("train_cpu_s", 0.0):
        figures = run_within(args.limits, command, args.threads)  # by now they are cached
    if "train_cpu_s" not in figures:
        return {**setting, **figures}
    return {**setting, **figures, **accuracy(np.load(answers), folder)}


def accuracy(ranked: Ints, folder: Path) -> Figures:
    """P, nDCG and PSP at 1, 3 and 5 of the labels (n, k) that were predicted, best first."""
    Y, trained_on = sp.load_npz(folder / "test_labels.npz"), sp.load_npz(folder / "labels.npz")
    scores = np.where(ranked >= 0, -np.arange(ranked.shape[1], dtype=np.float32), -np.inf)
    counts = np.bincount(trained_on.indices, minlength=Y.shape[1])
    table = evaluate(Y, TopK(ranked.astype(np.int32), scores.astype(np.float32)), counts, trained_on.shape[0])
    return {name: round(value, 2) for name, value in table.items() if name.startswith(("P@", "nDCG@", "PSP@"))}


class Results:
    """Runs by method and number of labels, kept in a file where one is named."""

    def __init__(self, file: Path | None, threads: int) -> None:
        self.file, self.runs = file, dict[tuple[str, int], Figures]()
        if file is not None and file.exists():
            kept = json.loads(file.read_text(encoding="utf-8"))
            self.runs = {(run["method"], run["labels"]): run for run in kept}
        other = {run["threads"] for run in self.runs.values()} - {threads}
        if other:
            rule = f"all runs of a table must have as many threads, but --threads is {threads}"
            print(f"{rule} and {file} has runs with {other.pop()}; set that, or name another file", file=sys.stderr)
            sys.exit(2)

    def add(self, method: str, labels: int, figures: Figures) -> None:
        """Keep a run."""
        self.runs[method, labels] = {"method": method, "labels": labels, **figures}
        if self.file is not None:
            with writing_text(self.file) as text:
                text.write(json.dumps(list(self.runs.values()), indent=1) + "\n")

    def is_due(self, method: str, labels: int, limits: Limits) -> bool:
        """Whether to run it: not where it was measured, or over a limit that is no higher now."""
        run = self.runs.get((method, labels), {"failed": "not run"})
        if "stopped" not in run:
            return "failed" in run
        return bool(getattr(limits, run["stopped"]) > run[run["stopped"]])


def run_all(results: Results, args: argparse.Namespace) -> None:
    """Run what is due, from the smallest size on."""
    given_up: set[str] = set(UNSUITED)
    for labels in args.labels:
        due = [name for name in args.methods if name not in given_up and results.is_due(name, labels, args.limits)]
        if due:
            run_size(due, labels, results, args)
        given_up |= {name for name in args.methods if why_missing(results.runs.get((name, labels), {}))}


def run_size(methods: Sequence[str], labels: int, results: Results, args: argparse.Namespace) -> None:
    """Run methods at one size; the matrices are there for so long."""
    with tempfile.TemporaryDirectory(prefix="scaling-") as folder:
        print(f"making documents with {labels:,} labels", file=sys.stderr, flush=True)
        write_matrices(Path(folder), labels, args.test_documents)
        for method in methods:
            figures = run(method, Path(folder), args)
            results.add(method, labels, figures)
            print(f"{method}, {labels:,} labels: {told(figures)}", file=sys.stderr, flush=True)


def told(figures: Figures) -> str:
    """A run in one line."""
    if missing := why_missing(figures):
        return str(figures.get("failed", missing))
    return ", ".join([*(f"{name} {short(figures[key])}" for key, name in COSTS.items()), f"P@1 {figures['P@1']}"])


def parse_arguments() -> argparse.Namespace:
    """The options, with lists as lists."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", default="10000,100000,1000000")
    parser.add_argument("--methods", default="all", help="all, or some with commas between them")
    parser.add_argument("--python", help="the Python of an environment with PECOS; without it PECOS is not run")
    parser.add_argument("--harness", type=Path, default=HARNESS)
    parser.add_argument("--minutes", type=float, default=20.0, help="limit of a run, in CPU time of all threads")
    parser.add_argument("--gigabytes", type=float, default=16.0, help="limit of a run")
    parser.add_argument("--test-documents", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path, help="keep results here, and do not repeat those that are there")
    parser.add_argument("--table", action="store_true", help="print a Markdown table at the end")
    parser.add_argument("--plot", type=Path, help="write a picture (SVG) at the end")
    parser.add_argument("--no-runs", action="store_true", help="table and plot of what --json has")
    args = parser.parse_args()
    check_arguments(args, parser)
    names = list(METHODS) if args.methods == "all" else args.methods.split(",")
    args.methods = [*([PEER] if args.python or args.no_runs else []), *names]
    args.labels = sorted(set(map(int, args.labels.split(","))))
    args.limits = Limits(args.minutes, args.gigabytes)
    return args


def check_arguments(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """End with an error where options make no sense."""
    for name in args.methods.split(","):
        if name not in ("all", *METHODS):
            parser.error(f"there is no method {name!r}; the methods are: {', '.join(METHODS)}")
    for size in args.labels.split(","):
        if not size.isdecimal() or int(size) < MIN_LABELS:
            parser.error(f"--labels must be numbers from {MIN_LABELS} on, but has {size!r}; write 10000,100000")
    if args.no_runs and not (args.json and args.json.exists()):
        parser.error("--no-runs shows the runs of a file, but --json names none that exists; name one")
    if not (args.json or args.table or args.plot):
        parser.error("results must go somewhere, but no option says where; give --json, --table or --plot")


def main() -> None:
    """Run what is missing, and show all."""
    args = parse_arguments()
    results = Results(args.json, args.threads)
    if not args.no_runs:
        run_all(results, args)
    runs: Runs = results.runs
    if args.table:
        print("\n".join(table(runs, args.methods, args.labels)))
    for line in failures(runs):
        print(line, file=sys.stderr)
    if args.plot:
        with writing_text(args.plot) as text:
            text.write(drawing(runs, args.methods, args.labels))


if __name__ == "__main__":
    main()
