"""Time and memory to read a file in the format of the Extreme Classification Repository on one core.

Writes a file like AmazonCat-13K (about 70 features and 5 labels per document), reads it in a child process, prints one
JSON line. Linux only: memory is read from /proc.

    python benchmarks/read_xmc.py --mb 300
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace.data.source import read_dataset, write_dataset
from labelspace.types import Csr, Dataset, LabelSpace

N_FEATURES, N_LABELS = 203_882, 13_330
FEATURES_PER_ROW, LABELS_PER_ROW = 70, 5
BYTES_PER_ROW = 1_090  # measured; only the size of the file depends on it
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")}


def main() -> None:
    """Write, then read in a child, and print what it measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=int, default=300, help="size of the file in MB")
    parser.add_argument("--gz", action="store_true", help="compress the file")
    parser.add_argument("--read", nargs=2, metavar=("TINY", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        print(json.dumps(measure(*map(Path, options.read))))
        return
    with tempfile.TemporaryDirectory() as folder:
        ending = ".txt.gz" if options.gz else ".txt"
        tiny, large = (Path(folder, name + ending) for name in ("tiny", "large"))
        write_dataset(random_documents(10), tiny)
        started = time.perf_counter()
        write_dataset(random_documents(max(1, options.mb * 10**6 // BYTES_PER_ROW)), large)
        written = time.perf_counter() - started
        child = [sys.executable, __file__, "--read", str(tiny), str(large)]
        out = subprocess.run(child, env={**os.environ, **ONE_THREAD}, check=True, capture_output=True, text=True).stdout
        print(json.dumps({**json.loads(out), "make_and_write_seconds": round(written, 2)}))


def random_documents(n: int) -> Dataset:
    """Ascending random indices, values of six decimals."""
    rng = np.random.default_rng(0)
    values = rng.integers(1, 10**6, n * FEATURES_PER_ROW, dtype=np.int32).astype(np.float32) / np.float32(10**6)
    X = random_matrix(rng, n, FEATURES_PER_ROW, N_FEATURES, values)
    Y = random_matrix(rng, n, LABELS_PER_ROW, N_LABELS, np.ones(n * LABELS_PER_ROW, np.float32))
    return Dataset(Y, LabelSpace.numbered(N_LABELS), X=X)


def random_matrix(
    rng: np.random.Generator, n: int, per_row: int, n_columns: int, values: npt.NDArray[np.float32]
) -> Csr:
    """A matrix with ``per_row`` entries per row, in random columns."""
    gaps = rng.integers(1, n_columns // per_row, (n, per_row), dtype=np.int32)
    indptr = np.arange(0, n * per_row + 1, per_row, dtype=np.int32)
    return sp.csr_matrix((values, np.cumsum(gaps, axis=1, dtype=np.int32).ravel(), indptr), shape=(n, n_columns))


def measure(tiny: Path, large: Path) -> dict[str, float]:
    """Read the tiny file to compile, then time the large one."""
    started = time.perf_counter()
    read_dataset(tiny)
    compiled = time.perf_counter() - started
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak of the compiler
    before, cpu, started = status("VmRSS"), cpu_seconds(), time.perf_counter()
    dataset = read_dataset(large)
    seconds, cpu = time.perf_counter() - started, cpu_seconds() - cpu
    peak = status("VmHWM") - before
    matrices = [matrix for matrix in (dataset.X, dataset.Y) if matrix is not None]
    size = sum(array.nbytes for matrix in matrices for array in (matrix.data, matrix.indices, matrix.indptr))
    mb = large.stat().st_size / 1e6
    return {
        "mb": round(mb, 1),
        "documents": len(dataset),
        "seconds": round(seconds, 3),
        "mb_per_second": round(mb / seconds, 1),
        "cpu_seconds": round(cpu, 3),
        "peak_rss_over_baseline_mb": round(peak / 1e6, 1),
        "matrices_mb": round(size / 1e6, 1),
        "peak_over_matrices": round(peak / size, 2),
        "first_read_seconds": round(compiled, 2),
    }


def status(field: str) -> int:
    """A memory figure of this process, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":"))


def cpu_seconds() -> float:
    """User and system time of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
