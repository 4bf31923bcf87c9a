"""Prepare Annif as the peer of ``benchmarks/serve.py``: its vocabulary, corpus and project of a data folder.

    python benchmarks/serve_annif.py DATA FOLDER

writes ``vocab.tsv``, ``train.tsv.gz`` and ``projects.cfg`` (backend omikuji with the defaults, which are Parabel's) and
prints the commands that train and serve it. Give Annif a virtual environment of its own: ``pip install
'annif[omikuji]'``. It also needs NLTK's ``punkt_tab``, which it downloads, or finds in the folder that NLTK_DATA names.
"""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path

from labelspace.data.source import open_source

PORT = 8765
WORKERS = 2

PROJECT = """[{project}]
name={project}, Omikuji
language=en
backend=omikuji
analyzer=snowball(english)
vocab={project}
limit=100
"""

COMMANDS = """cd {folder}
annif load-vocab --language en {project} vocab.tsv
annif train {project} train.tsv.gz
gunicorn "annif:create_app()" --worker-class uvicorn.workers.UvicornWorker --workers {workers} --bind 127.0.0.1:{port}
# then, from another terminal: python benchmarks/serve.py MODEL DATA --annif http://127.0.0.1:{port} {project}"""


def uri(label: int) -> str:
    """Annif names subjects by URIs.

    >>> uri(17)
    '<http://example.org/17>'
    """
    return f"<http://example.org/{label}>"


def one_line(text: str) -> str:
    r"""A cell of a TSV file.

    >>> one_line("two lines\nand a\ttab")
    'two lines and a tab'
    """
    return " ".join(text.split())


def main() -> None:
    """Write the files, and print the commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    train = open_source(args.data).train()
    if train.texts is None:
        raise SystemExit(f"Annif reads texts, but {args.data} has features; give data with texts")
    project = args.data.resolve().name.lower()
    args.folder.mkdir(parents=True, exist_ok=True)
    names = "".join(f"{uri(label)}\t{one_line(name)}\n" for label, name in enumerate(train.labels.names))
    (args.folder / "vocab.tsv").write_text(names, encoding="utf-8")
    (args.folder / "projects.cfg").write_text(PROJECT.format(project=project), encoding="utf-8")
    with gzip.open(args.folder / "train.tsv.gz", "wt", encoding="utf-8", compresslevel=1) as file:
        for text, row in zip(train.texts, train.Y, strict=True):
            file.write(f"{one_line(text)}\t{' '.join(map(uri, row.indices.tolist()))}\n")
    print(COMMANDS.format(folder=args.folder, project=project, port=PORT, workers=WORKERS))


if __name__ == "__main__":
    main()
