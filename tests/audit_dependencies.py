"""Check the installed packages for known vulnerabilities with pip-audit; where its service does not answer, say so.

Exit code 1 where a package is known to be vulnerable, else 0: a machine without the service must be able to build.
"""

import json
import subprocess
import sys
from importlib.metadata import version
from urllib.error import URLError
from urllib.request import urlopen

SERVICE = f"https://pypi.org/pypi/numpy/{version('numpy')}/json"  # what pip-audit asks, of one package
COMMAND = ["pip_audit", "--format", "json", "--progress-spinner", "off", "--timeout", "5", "--skip-editable"]
SECONDS = 90  # at most


def main() -> int:
    """Print one line, or one per vulnerability; the exit code."""
    try:
        with urlopen(SERVICE, timeout=5):
            pass
        ran = subprocess.run([sys.executable, "-m", *COMMAND], capture_output=True, text=True, timeout=SECONDS)
        packages = json.loads(ran.stdout)["dependencies"]
    except (URLError, TimeoutError, subprocess.TimeoutExpired, ValueError) as error:
        reason = " ".join(str(error).split())[:100]
        print(f"dependency audit: skipped, the vulnerability service of PyPI does not answer ({reason})")
        return 0
    known = [package for package in packages if "skip_reason" not in package]
    found = [(package, problem) for package in known for problem in package["vulns"]]
    for package, problem in found:
        fixed = ", ".join(problem["fix_versions"]) or "no version yet"
        print(f"dependency audit: {package['name']} {package['version']} has {problem['id']}; fixed in {fixed}")
    if not found:
        print(f"dependency audit: no known vulnerability in {len(known)} of {len(packages)} installed packages")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
