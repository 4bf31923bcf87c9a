"""Start-up times: import, --help, loading a model, the first and later predictions.

python benchmarks/startup.py MODEL [TEXT]
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from statistics import median

REPEAT = 7


def command_ms(*command: str) -> float:
    """Median milliseconds of a command, including the start of Python."""
    times = []
    for _ in range(REPEAT):
        start = time.perf_counter()
        subprocess.run([sys.executable, *command], check=True, capture_output=True)
        times.append(1e3 * (time.perf_counter() - start))
    return round(median(times), 1)


def child_ms(setup: str, statement: str) -> float:
    """Median milliseconds of a statement, each time in a fresh process."""
    code = f"import time; {setup}; t = time.perf_counter(); {statement}; print(1e3 * (time.perf_counter() - t))"
    runs = [subprocess.run([sys.executable, "-c", code], check=True, capture_output=True) for _ in range(REPEAT)]
    return round(median(float(run.stdout) for run in runs), 1)


def main() -> None:
    """Print one JSON line."""
    model, text = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "a short text to tag"
    load = f"from labelspace import Tagger; tagger = Tagger.load({model!r})"
    figures = {
        "python_ms": command_ms("-c", "pass"),
        "import_ms": child_ms("pass", "import labelspace"),
        "help_ms": command_ms("-m", "labelspace", "--help"),
        "load_ms": child_ms("from labelspace import Tagger", f"Tagger.load({model!r})"),
        "load_and_import_ms": child_ms("pass", load),
        "first_tag_ms": child_ms(load, f"tagger.tag({text!r})"),
        "later_tag_ms": child_ms(f"{load}; tagger.tag({text!r})", f"tagger.tag({text!r})"),
        "predict_command_ms": command_ms("-m", "labelspace", "predict", model, text),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
