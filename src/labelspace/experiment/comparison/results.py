"""What a comparison says: the paired test of the differences, and the files of results."""

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from labelspace.data.files import writing_text
from labelspace.experiment.comparison.job import PerDocument
from labelspace.experiment.evaluate import percent
from labelspace.metrics import paired_test


def tested(per_document: Mapping[str, PerDocument], seed: int) -> dict[str, Any]:
    """For each metric the best method, and how far the others are behind it, in percent; p-values as fractions."""
    tests = paired_test.compare_with_best(per_document, seed=seed)
    for test in tests.values():
        for other in test["others"].values():
            other["difference"] = percent(other["difference"])
            other["interval"] = [percent(bound) for bound in other["interval"]]
            other |= {key: round(other[key], 6) for key in ("p", "p_holm")}
    return {"n_resamples": paired_test.N_RESAMPLES, "significance": paired_test.SIGNIFICANT, "metrics": tests}


def write_results(results: Mapping[str, Any], out: Path) -> None:
    """``results.json`` in full, and ``results.csv`` with one line a method."""
    items = ((key, value) for row in results["rows"] for key, value in row.items())
    columns = list(dict.fromkeys(key for key, value in items if not isinstance(value, (dict, list))))
    with writing_text(out / "results.json") as file:
        file.write(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    with writing_text(out / "results.csv") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(results["rows"])
