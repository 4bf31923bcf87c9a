"""The folder of an experiment: one process writes to it, and its results are one JSON file and one table."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from labelspace import store
from labelspace.errors import ParameterError

RESULTS = "results.json"


@contextmanager
def only_writer(out: Path, lock: str, writer: str) -> Iterator[None]:
    """Make a folder, and raise ParameterError if another process, called ``writer`` in the message, writes to it."""
    out.mkdir(parents=True, exist_ok=True)
    with store.locked(out / lock) as free:
        if not free:
            raise ParameterError(f"one {writer} may write to {out}, but another one does; wait, or change --out")
        yield


def write_json(results: Mapping[str, Any], out: Path) -> None:
    """Write ``results.json`` to a folder."""
    with store.replacing_file(out / RESULTS) as path:
        path.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8", newline="")


def write_results(results: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], out: Path) -> None:
    """Write ``results.json`` in full, and ``results.csv`` with the numbers and texts of the rows."""
    write_json(results, out)
    values = ((key, value) for row in rows for key, value in row.items())
    columns = list(dict.fromkeys(key for key, value in values if not isinstance(value, (dict, list))))
    with store.replacing_file(out / "results.csv") as path, path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
