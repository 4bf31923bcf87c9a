"""Our Tfidf against scikit-learn's TfidfVectorizer on the same texts: seconds, memory, difference, one-text latency.

Usage: python benchmarks/vectorize.py DATA [--ngrams 2] [--min-df 2] [--rounds 1]

DATA is a .jsonl or .jsonl.gz file of objects with a "text", or a folder with train.jsonl(.gz). Each side runs in a
separate process, which reads the texts first; the figures are of ``fit_transform`` alone, the best round. Prints one
JSON line.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

SHORT_WORDS, SHORT_TEXTS = 20, 2000


def read_texts(path: Path) -> list[str]:
    """The texts of a data file, or of the training file of a folder."""
    if path.is_dir():
        path = next(name for name in (path / "train.jsonl.gz", path / "train.jsonl") if name.exists())
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in lines]


def build(side: str, ngrams: int, min_df: int) -> Any:  # noqa: ANN401 - one of two vectorizers
    """The vectorizer of a side, with the same settings."""
    if side == "labelspace":
        from labelspace.features import Tfidf

        return Tfidf(ngrams=ngrams, min_df=min_df)
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(ngram_range=(1, ngrams), min_df=min_df, sublinear_tf=True, dtype=np.float32)


def peak_mb() -> float:
    """Peak memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def latencies_ms(vectorizer: Any, texts: list[str]) -> list[float]:  # noqa: ANN401
    """Milliseconds of each of many short texts, one at a time: p50 and p99."""
    short = [" ".join(text.split()[:SHORT_WORDS]) for text in texts[:SHORT_TEXTS]]
    milliseconds = []
    for text in short:
        start = time.perf_counter()
        vectorizer.transform([text])
        milliseconds.append(1000 * (time.perf_counter() - start))
    return [round(float(q), 4) for q in np.percentile(milliseconds, [50, 99])]


def run_side(side: str, args: argparse.Namespace, out: Path) -> None:
    """Measure one side, and write its figures and matrix to a folder."""
    texts = read_texts(args.data)
    build(side, args.ngrams, 1).fit_transform(texts[:50])  # compiled kernels are loaded, modules imported
    before = peak_mb()
    rounds = []
    for _ in range(args.rounds):
        vectorizer = build(side, args.ngrams, args.min_df)
        wall, cpu = time.perf_counter(), time.process_time()
        X = vectorizer.fit_transform(texts)
        rounds.append((time.perf_counter() - wall, time.process_time() - cpu))
    wall_s, cpu_s = min(rounds)
    p50, p99 = latencies_ms(vectorizer, texts)
    figures = {
        "wall_s": round(wall_s, 2),
        "cpu_s": round(cpu_s, 2),
        "peak_mb": round(peak_mb()),
        "peak_over_texts_mb": round(peak_mb() - before),
        "latency_ms_p50": p50,
        "latency_ms_p99": p99,
        "shape": list(X.shape),
        "nnz": int(X.nnz),
    }
    (out / f"{side}.json").write_text(json.dumps(figures))
    sp.save_npz(out / f"{side}.npz", X, compressed=False)


def compare(args: argparse.Namespace) -> dict[str, Any]:
    """Run both sides, and compare their matrices."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        for side in ("labelspace", "scikit-learn"):
            command = [sys.executable, __file__, str(args.data), "--side", side, "--out", folder]
            for key in ("ngrams", "min_df", "rounds"):
                command += [f"--{key.replace('_', '-')}", str(getattr(args, key))]
            subprocess.run(command, check=True)
        ours, theirs = (json.loads((out / f"{side}.json").read_text()) for side in ("labelspace", "scikit-learn"))
        X, S = (sp.load_npz(out / f"{side}.npz") for side in ("labelspace", "scikit-learn"))
    same_shape = X.shape == S.shape
    return {
        "data": str(args.data),
        "ngrams": args.ngrams,
        "min_df": args.min_df,
        "labelspace": ours,
        "scikit-learn": theirs,
        "times_faster_wall": round(theirs["wall_s"] / ours["wall_s"], 1),
        "times_faster_cpu": round(theirs["cpu_s"] / ours["cpu_s"], 1),
        "max_abs_difference": float(abs(X - S).max()) if same_shape else None,
    }


def main() -> None:
    """Read the command line; a child process measures one side, the parent compares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--ngrams", type=int, default=2)
    parser.add_argument("--min-df", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.side:
        run_side(args.side, args, args.out)
    else:
        print(json.dumps(compare(args)))


if __name__ == "__main__":
    main()
