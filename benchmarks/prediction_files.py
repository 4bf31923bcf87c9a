"""Do other programs read what we write, and find the same figures in it? PECOS, napkinXC and Annif are asked.

    python benchmarks/prediction_files.py MODEL DATA [--python PEERS_VENV/bin/python] [--annif ANNIF_VENV/bin/annif]

Tags the test documents of DATA, which must have texts, with MODEL, writes predictions and data in the formats of these
programs, and compares. What is not installed is skipped with a line: ``pip install libpecos napkinxc`` in PEERS_VENV
(libpecos needs numpy<2, scipy<1.14 and scikit-learn here, not torch), ``pip install annif`` in ANNIF_VENV.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

KS = (1, 3, 5)
READ_WITH = "--read-with"  # how the peers' Python is asked, by this file
PROJECT = """[ours]
name=documents that we tagged
language=en
backend=tfidf
analyzer=snowball(english)
vocab=ours
"""


def main() -> None:
    """Write all files, ask each program, and print what it found beside what we say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--python", default=sys.executable, help="a Python with libpecos and napkinxc")
    parser.add_argument("--annif", default="annif", help="the program annif")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ours = write_all(given.model, given.data, Path(folder))
        print(f"ours: {shown(ours)}")
        for peer in ("pecos", "napkinxc"):
            compare(peer, ask(given.python, peer, folder), ours)
        annif(given.annif, Path(folder), ours)


def write_all(model: str, data: str, folder: Path) -> dict[str, Any]:
    """Write the data as PECOS and the repository have it, and the predictions as .npz, .txt and for Annif."""
    from dataclasses import replace

    from labelspace import Tagger
    from labelspace.data.formats import pecos, xmc, xmc_pairs
    from labelspace.data.source import open_source
    from labelspace.experiment import evaluate
    from labelspace.features.tfidf import Tfidf

    tagger, source = Tagger.load(model), open_source(data)
    train = source.train()
    test = source.test(train.labels)
    if train.texts is None or test is None or test.texts is None:
        sys.exit(f"{data} must have texts in train.* and test.*, but has not; give another folder")
    features = Tfidf().fit(train.texts)
    for name, part in (("trn", train), ("tst", test)):
        X = features.transform(part.texts or [])
        with_features = replace(part, X=X)
        pecos.write(folder / "tfidf-attnxml" / f"X.{name}.npz", with_features)
        xmc_pairs.write(folder / f"{name}_X_Xf.txt", with_features)
        xmc.write(folder / f"{name}.txt", with_features)
    command = [
        sys.executable,
        "-m",
        "labelspace",
        "predict",
        model,
        "--input",
        str(source.test_path),
        "--k",
        str(max(KS)),
    ]
    for ending in ("npz", "txt", "annif.jsonl"):
        subprocess.run([*command, "--out", str(folder / f"P.{ending}")], check=True, stdout=subprocess.DEVNULL)
    figures = evaluate(tagger, test, ks=KS, unlabelled="count", thresholds=False)
    found = {
        f"{name}@{k}": figures[f"{name}@{k}"]
        for name in ("P", "R", "nDCG", "PSP")
        for k in KS
        if f"{name}@{k}" in figures
    }
    labels = test.labels
    uris = [labels.concept(label).uri or f"http://example.org/{label}" for label in range(len(labels))]
    names = "".join(f"<{uri}>\t{name}\n" for uri, name in zip(uris, labels.names, strict=True))
    (folder / "vocabulary.tsv").write_text(names, encoding="utf-8")
    return {**found, "documents": len(test), "features": int(X.nnz), "labels": int(test.Y.nnz)}


def ask(python: str, peer: str, folder: str) -> dict[str, Any] | None:
    """What a peer library found in the files, None where it is not installed."""
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [python, __file__, READ_WITH, peer, folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    if done.returncode:
        error = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
        print(f"{peer}: skipped ({error[0]})")
        return None
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def compare(peer: str, found: dict[str, Any] | None, ours: dict[str, Any]) -> None:
    """Print the figures of a peer, and end where one is another than ours."""
    if found is None:
        return
    print(f"{peer}: {shown(found)}")
    other = {key: (value, ours[key]) for key, value in found.items() if key in ours and abs(value - ours[key]) > 2e-3}
    if other:
        sys.exit(f"{peer} must find the same as we, but differs: {other}")
    print(f"{peer}: the same {sum(key in ours for key in found)} figures as ours")


def shown(figures: dict[str, Any]) -> str:
    """Figures on one line."""
    return " ".join(
        f"{key}={value:.4f}" if isinstance(value, float) else f"{key}={value}" for key, value in figures.items()
    )


def with_pecos(folder: Path) -> dict[str, Any]:
    """Read the folder of PECOS with its own functions, train its linear model on it, and measure our predictions."""
    import numpy as np

    smat_util = import_module("pecos.utils.smat_util")
    X, Y = (smat_util.load_matrix(str(path)) for path in (folder / "tfidf-attnxml" / "X.tst.npz", folder / "Y.tst.npz"))
    ours = smat_util.Metrics.generate(Y.astype(np.float32), smat_util.load_matrix(str(folder / "P.npz")), topk=max(KS))
    found = {f"P@{k}": 100 * float(ours.prec[k - 1]) for k in KS} | {
        f"R@{k}": 100 * float(ours.recall[k - 1]) for k in KS
    }
    sizes = {"documents": X.shape[0], "features": int(X.nnz), "labels": int(Y.nnz)}
    return {**found, **sizes, "P@1 of its own model": 100 * _pecos_model(folder, X, Y)}


def _pecos_model(folder: Path, X: Any, Y: Any) -> float:  # noqa: ANN401 - matrices of SciPy
    import numpy as np

    smat_util, xmc = import_module("pecos.utils.smat_util"), import_module("pecos.xmc")
    trained_on = (str(folder / "tfidf-attnxml" / "X.trn.npz"), str(folder / "Y.trn.npz"))
    X_train, Y_train = (smat_util.load_matrix(path).astype(np.float32) for path in trained_on)
    clusters = xmc.Indexer.gen(xmc.LabelEmbeddingFactory.create(Y_train, X_train))
    model = import_module("pecos.xmc.xlinear").XLinearModel.train(X_train, Y_train, C=clusters)
    columns = min(X.shape[1], X_train.shape[1])
    predicted = model.predict(X[:, :columns].astype(np.float32), only_topk=1)
    return float(smat_util.Metrics.generate(Y[:, : Y_train.shape[1]].astype(np.float32), predicted, topk=1).prec[0])


def with_napkinxc(folder: Path) -> dict[str, Any]:
    """Read the repository's text files and our predictions as text and as .npz, and measure them."""
    import numpy as np
    import scipy.sparse as sp

    metrics, load_libsvm_file = import_module("napkinxc.metrics"), import_module("napkinxc.datasets").load_libsvm_file
    X, Y = load_libsvm_file(str(folder / "tst.txt"), labels_format="csr_matrix")
    _, Y_train = load_libsvm_file(str(folder / "trn.txt"), labels_format="csr_matrix")
    predicted = sp.load_npz(folder / "P.npz")
    as_text = load_libsvm_file(str(folder / "P.txt"))[0]
    as_text.resize(predicted.shape)
    sizes = {"documents": X.shape[0], "features": int(X.nnz), "labels": int(Y.nnz)}
    same = {"largest difference of .txt and .npz": float(abs(as_text - predicted).max())}
    width = predicted.shape[1]
    Y, Y_train = (sp.csr_matrix((m.data, m.indices, m.indptr), shape=(m.shape[0], width)) for m in (Y, Y_train))
    inverse = metrics.Jain_et_al_inverse_propensity(Y_train)
    values = {
        "P": metrics.precision_at_k(Y, predicted, k=max(KS)),
        "nDCG": metrics.ndcg_at_k(Y, predicted, k=max(KS)),
        "PSP": metrics.psprecision_at_k(Y, predicted, inverse, k=max(KS)),
    }
    found = {f"{name}@{k}": 100 * float(np.asarray(value)[k - 1]) for name, value in values.items() for k in KS}
    return {**found, **sizes, **same}


def annif(program: str, folder: Path, ours: dict[str, Any]) -> None:
    """Let Annif load the labels, learn from our predictions, and evaluate itself against them."""
    (folder / "projects.cfg").write_text(PROJECT)
    steps = [
        ["load-vocab", "ours", "vocabulary.tsv", "--language", "en"],
        ["train", "ours", "P.annif.jsonl"],
        ["eval", "ours", "P.annif.jsonl"],
    ]
    out = ""
    for step in steps:
        try:
            done = subprocess.run([program, *step], cwd=folder, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            print(f"annif: skipped (there is no program {program})")
            return
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if re.search("[a-z]", line)]
            sys.exit(f"annif {step[0]} must read our file, but failed: {lines[-1:]}")
        out = done.stdout
    evaluated = re.search(r"Documents evaluated:\s*(\d+)", out)
    n = int(evaluated[1]) if evaluated else 0
    found = dict(re.findall(r"^(F1@5|NDCG@5|True positives|False negatives):\s*([\d.]+)", out, re.MULTILINE))
    print(f"annif: read {n} of {ours['documents']} documents; trained and evaluated on our labels: {shown(found)}")


if __name__ == "__main__":
    if sys.argv[1:2] == [READ_WITH]:
        print(json.dumps({"pecos": with_pecos, "napkinxc": with_napkinxc}[sys.argv[2]](Path(sys.argv[3]))))
    else:
        main()
