"""Time and memory to import a SKOS vocabulary in N-Triples, and to update the labels that came of it.

Writes a file like the large library vocabularies: type, names in two languages, one synonym, a notation and a broader
concept for each of N concepts. Imports it in a child process, imports it again over the result in another, and prints
a JSON line for each. Memory is the peak of the whole process.

    python benchmarks/vocabulary.py --concepts 1000000
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from labelspace.data.vocabularies import LabelsBefore, plan_update, read_vocabulary

SKOS = "http://www.w3.org/2004/02/skos/core#"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
BRANCHES = 20  # narrower concepts of each


def main() -> None:
    """Write, import, update."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--concepts", type=int, default=1_000_000)
    parser.add_argument("--read", nargs=2, metavar=("FILE", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        print(json.dumps(measure(*map(Path, options.read))))
        return
    with tempfile.TemporaryDirectory() as work:
        file, folder = Path(work, "vocabulary.nt"), Path(work, "labels")
        write_vocabulary(file, options.concepts)
        for what in ("import", "update"):
            child = [sys.executable, __file__, "--read", str(file), str(folder)]
            out = subprocess.run(child, check=True, capture_output=True, text=True).stdout
            print(json.dumps({"what": what, "file_mb": round(file.stat().st_size / 1e6), **json.loads(out)}))


def write_vocabulary(path: Path, n: int) -> None:
    """Seven statements per concept; names are unique, and one in a thousand needs an escape."""
    with path.open("w", encoding="utf-8") as file:
        for at in range(n):
            uri = f"<http://vocabulary.example.org/subjects/p{at}>"
            accent = "\\u00e9" if at % 1000 == 0 else ""
            statements = [
                f"<{TYPE}> <{SKOS}Concept>",
                f'<{SKOS}prefLabel> "subject heading{accent} number {at}"@en',
                f'<{SKOS}prefLabel> "asiasana numero {at}"@fi',
                f'<{SKOS}altLabel> "another name of {at}"@en',
                f'<{SKOS}notation> "{at // 1000}.{at % 1000:03d}"',
                f"<{SKOS}inScheme> <http://vocabulary.example.org/subjects/>",
            ]
            if at:
                parent = (at - 1) // BRANCHES
                statements.append(f"<{SKOS}broader> <http://vocabulary.example.org/subjects/p{parent}>")
            file.writelines(f"{uri} {statement} .\n" for statement in statements)


def measure(file: Path, folder: Path) -> dict[str, float]:
    """Import one file and say what it took."""
    started = time.perf_counter()
    before = LabelsBefore.of(folder)
    update = plan_update(read_vocabulary(file), before, "en")
    update.write(folder)
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "labels": len(update.after),
        "new": len(update.changes["new"]),
        "changed": len(update.changes["changed"]),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "seconds": round(time.perf_counter() - started, 1),
        "peak_mb": round(used.ru_maxrss / 1024),
    }


if __name__ == "__main__":
    main()
