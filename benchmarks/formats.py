"""Do the programs that a format comes from read our files as we do, and we theirs?

Writes documents with hard texts and names, reads them in the program itself, and compares texts, labels and features
document by document; so too with files made by hand or by the program. What is not installed is skipped: name a Python
that has it.

    python benchmarks/formats.py --fasttext VENV/bin/python --annif VENV/bin/python --libmultilabel VENV/bin/python
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelspace.data.formats import annif, fasttext, libmultilabel, libsvm, text_folder
from labelspace.data.read_options import ReadOptions
from labelspace.data.records import Record, Subject
from labelspace.data.synthetic import planted
from labelspace.types import Concept, Dataset, LabelSpace

OPTIONS = ReadOptions(encoding="utf-8")
HARD_TEXTS = [
    "two\nlines", "tab\there", "a  double space", " outer ", 'a "quote', "it's 3:1, #1", "naïve 日本 😀",
    "a\u00a0b\u2028c", "<http://example.org/x> in a text", "a_b __lab el__", "back\\slash", "x\x1cy\x85z", "[]{}",
]  # fmt: skip
FASTTEXT_FILE = (
    "__label__a red apple\ngreen __label__b tea __label__a\nno labels\n__label__x__y\tz\va\0b\n__label__a \n"
)
ANNIF_FILE = "red apple\t<http://a/1> <http://a/2>\nbare\thttp://a/1\nnone\t\ntwice\t<http://a/1> <http://a/1>\n"
SVM_FILE = "0,3 1:0.5 4:-1e-3\n 2:1\n2:7 3:1\n3 \n"

READ_FASTTEXT = """
import json, sys, fasttext
path = sys.argv[1]
model = fasttext.train_supervised(path, epoch=1, dim=2, minCount=1, verbose=0)
for line in open(path, encoding="utf-8", newline="\\n"):
    words, labels = model.get_line(line.rstrip("\\n"))
    print(json.dumps([[word for word in words if word != "</s>"], sorted(label[9:] for label in labels)]))
"""
READ_ANNIF = """
import json, os, sys
from annif.corpus import DocumentDirectory, DocumentFileTSV
class Index:
    def by_uri(self, uri): return uri
    def by_label(self, label, language): return label
path = sys.argv[1]
if os.path.isdir(path):
    corpus = DocumentDirectory(path, Index(), "en", require_subjects=True)
else:
    corpus = DocumentFileTSV(path, Index(), require_subjects=True)
for document in corpus.documents:
    print(json.dumps([document.text, sorted(document.subject_set)]))
"""
READ_SCIKIT_LEARN = """
import json, sys
from sklearn.datasets import load_svmlight_file
X, labels = load_svmlight_file(sys.argv[1], multilabel=True, zero_based=False)
for row, found in zip(X, labels):
    print(json.dumps([row.indices.tolist(), row.data.astype("f").tolist(), sorted(map(int, found))]))
"""
READ_LIBMULTILABEL = """
import json, sys
from libmultilabel.linear.data_utils import load_dataset
kind = "svm" if sys.argv[1].endswith(".svm") else "txt"
data = load_dataset(kind, train_path=sys.argv[1])["train"]
for x, y in zip(data["x"], data["y"]):
    print(json.dumps([x.indices.tolist(), x.data.astype("f").tolist(), sorted(y)] if kind == "svm" else [x, sorted(y)]))
"""
WRITE_SCIKIT_LEARN = """
import sys
from scipy.sparse import load_npz
from sklearn.datasets import dump_svmlight_file
X, Y = (load_npz(path) for path in sys.argv[1:3])
dump_svmlight_file(X, Y, sys.argv[3], zero_based=True, multilabel=True, comment="made by scikit-learn")
"""
Rows = list[list[Any]]


def main() -> None:
    """Run all checks, print a line each; exit with 1 where one differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for program in ("fasttext", "annif", "libmultilabel", "sklearn"):
        parser.add_argument(f"--{program}", default=sys.executable, metavar="PYTHON", help="a Python that has it")
    pythons = vars(parser.parse_args())
    with tempfile.TemporaryDirectory() as folder:
        results = [
            check(program, pythons[program], Path(folder)) if has(pythons[program], program) else skipped(program)
            for program, check in CHECKS.items()
        ]
    sys.exit(0 if all(results) else 1)


def has(python: str, program: str) -> bool:
    """Whether a Python can import a package."""
    return subprocess.run([python, "-c", f"import {program}"], capture_output=True, check=False).returncode == 0


def skipped(program: str) -> bool:
    """Say that a program is missing."""
    print(f"{program:14} skipped: not installed; name a Python that has it: --{program} PYTHON")
    return True


def child(python: str, code: str, *arguments: str | Path) -> str:
    """What a script prints in another Python."""
    command = [python, "-c", code, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True, encoding="utf-8").stdout


def compare(python: str, program: str, code: str, path: Path, ours: Rows, what: str) -> bool:
    """Read a file by the program, and say whether it has what we have."""
    theirs = [json.loads(line) for line in child(python, code, path).split("\n") if line]
    pairs = zip(theirs, ours, strict=False)
    different = next((row for row, (their, our) in enumerate(pairs) if their != our), None)
    same = different is None and len(theirs) == len(ours)
    result = "same" if same else f"DIFFERENT: {len(theirs)} documents, ours {len(ours)}"
    if different is not None:
        result = f"DIFFERENT in document {different}: {str(theirs[different])[:100]}, ours {str(ours[different])[:100]}"
    print(f"{program:14} {what:60} {len(ours):5} documents  {result}")
    return same


def documents(spaces: bool) -> Dataset:
    """Planted texts, hard texts, names with spaces where they may have some; some documents have no labels."""
    dataset = planted(n=300, d=200, l=25, texts=True, seed=1)
    n, names = len(HARD_TEXTS), list(dataset.labels.names)
    names[:3] = ["red apple", "Ünï 日本", "c#"] if spaces else ["red_apple", "Ünï", "c#"]
    Y = sp.csr_matrix(np.random.default_rng(0).random((n, len(names))) < 0.1, dtype=np.float32)
    texts = [*(dataset.texts or ()), *HARD_TEXTS]
    ids = [f"d{row:03}" for row in range(len(texts))]
    return Dataset(sp.vstack([dataset.Y, Y]).tocsr(), LabelSpace(names), texts=texts, ids=ids)


def with_uris(dataset: Dataset) -> Dataset:
    """The same with a URI for each label."""
    concepts = [Concept(f"http://example.org/p{label}") for label in range(len(dataset.labels))]
    return replace(dataset, labels=replace(dataset.labels, concepts=concepts))


def features(dataset: Dataset) -> Rows:
    """Feature ids, values as float32 and label ids of each document."""
    X, Y = dataset.X, dataset.Y
    assert X is not None  # noqa: S101 - they are read from features
    return [[x.indices.tolist(), x.data.tolist(), sorted(y.indices.tolist())] for x, y in zip(X, Y, strict=True)]


def text_rows(records: Iterable[Record]) -> Rows:
    """Text and labels of each document; a subject is its URI."""
    return [
        [record.text, sorted(label.uri if isinstance(label, Subject) else str(label) for label in record.labels)]
        for record in records
    ]


def check_fasttext(program: str, python: str, folder: Path) -> bool:
    """A file of ours, and one by hand."""
    written, by_hand = folder / "fasttext.txt", folder / "fasttext_by_hand.txt"
    fasttext.write(written, documents(spaces=True))
    by_hand.write_text(FASTTEXT_FILE, encoding="utf-8", newline="")
    same = True
    for path, what in (
        (written, "written by us: words and labels of each line"),
        (by_hand, "by hand: labels anywhere"),
    ):
        words = str.maketrans(dict.fromkeys("\t\r\v\f\0", " "))
        ours = [
            [[word for word in str(text).translate(words).split(" ") if word], labels]
            for text, labels in text_rows(fasttext.records(path, OPTIONS))
        ]
        same = compare(python, program, READ_FASTTEXT, path, ours, what) and same
    return same


def check_annif(program: str, python: str, folder: Path) -> bool:
    """A file of ours, one by hand, and folders with URIs and with names."""
    written, by_hand = folder / "annif.tsv", folder / "annif_by_hand.tsv"
    dataset = documents(spaces=True)
    annif.write(written, with_uris(dataset))
    by_hand.write_text(ANNIF_FILE, encoding="utf-8", newline="")
    same = True
    for path, what in ((written, "TSV written by us"), (by_hand, "TSV by hand: bare URIs, repeated, none")):
        same = compare(python, program, READ_ANNIF, path, text_rows(annif.records(path, OPTIONS)), what) and same
    # Annif leaves out documents without subjects, and reads every line end as \n.
    labeled = dataset.rows(np.flatnonzero(np.diff(dataset.Y.indptr)))
    for name, part in (("doc.tsv", with_uris(labeled)), ("doc.key", labeled)):
        path = folder / f"annif {name}"
        text_folder.write(path, part)
        ours = text_rows(text_folder.records(path, OPTIONS))
        same = compare(python, program, READ_ANNIF, path, ours, f"folder written by us, with {name}") and same
    return same


def check_libmultilabel(program: str, python: str, folder: Path) -> bool:
    """Texts and features of ours, and a file by hand."""
    dataset, same = documents(spaces=False), True
    for part, what in ((dataset, "texts with ids"), (replace(dataset, ids=None), "texts without ids")):
        path = folder / f"{what}.txt"
        libmultilabel.write(path, part)
        ours = text_rows(libmultilabel.records(path, OPTIONS))
        same = compare(python, program, READ_LIBMULTILABEL, path, ours, f"{what}, written by us") and same
    return check_svm(program, python, folder, READ_LIBMULTILABEL) and same


def check_svm(program: str, python: str, folder: Path, code: str) -> bool:
    """Features of ours, and a file by hand."""
    written, by_hand, same = folder / f"{program}.svm", folder / f"{program}_by_hand.svm", True
    dataset = planted(n=300, d=200, l=25, seed=1)
    libsvm.write(written, dataset)
    by_hand.write_text(SVM_FILE, encoding="utf-8", newline="")
    for path, what in ((written, "features written by us"), (by_hand, "features by hand: no labels, no features")):
        same = compare(python, program, code, path, features(libsvm.read(path, None, OPTIONS)), what) and same
    return same


def check_sklearn(program: str, python: str, folder: Path) -> bool:
    """The same, and a file by scikit-learn, with comments and indices from 0."""
    same = check_svm(program, python, folder, READ_SCIKIT_LEARN)
    dataset = planted(n=300, d=200, l=25, seed=2)
    paths = [folder / name for name in ("X.npz", "Y.npz", "by_scikit_learn.svm")]
    sp.save_npz(paths[0], dataset.X)
    sp.save_npz(paths[1], dataset.Y)
    child(python, WRITE_SCIKIT_LEARN, *paths)
    back = libsvm.read(paths[2], LabelSpace.numbered(len(dataset.labels)), OPTIONS)
    equal = features(back) == features(dataset)
    what = "written by scikit-learn, indices from 0, read by us"
    print(f"{program:14} {what:60} {len(back):5} documents  {'same' if equal else 'DIFFERENT'}")
    return same and equal


CHECKS: dict[str, Callable[[str, str, Path], bool]] = {
    "fasttext": check_fasttext,
    "annif": check_annif,
    "libmultilabel": check_libmultilabel,
    "sklearn": check_sklearn,
}

if __name__ == "__main__":
    main()
