"""Check the installed packages for known vulnerabilities with pip-audit; where its service does not answer, say so.

Exit code 1 where a package is known to be vulnerable, else 0: a machine without the service must be able to build.
"""

import json
import subprocess
import sys
import tempfile
from importlib.metadata import version
from typing import Any

COMMAND = ["pip_audit", "--format", "json", "--progress-spinner", "off", "--timeout", "3", "--skip-editable"]
SECONDS = 60  # at most


def audit(*options: str) -> list[dict[str, Any]]:
    """What pip-audit knows of the packages; nothing where its service does not answer."""
    try:
        command = [sys.executable, "-m", *COMMAND, *options]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        packages = json.loads(ran.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError):
        return []
    return [package for package in packages if "skip_reason" not in package]


def main() -> int:
    """Print one line, or one per vulnerability; the exit code."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as one:  # to ask for all takes long where nobody answers
        one.write(f"numpy=={version('numpy')}\n")
        one.flush()
        known = audit("--requirement", one.name, "--no-deps", "--disable-pip") and audit()
    if not known:
        print("dependency audit: skipped, no vulnerability service can be reached from here")
        return 0
    found = [(package, problem) for package in known for problem in package["vulns"]]
    for package, problem in found:
        fixed = ", ".join(problem["fix_versions"]) or "no version yet"
        print(f"dependency audit: {package['name']} {package['version']} has {problem['id']}; fixed in {fixed}")
    if not found:
        print(f"dependency audit: no known vulnerability in {len(known)} installed packages")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
