"""Check the installed packages for known vulnerabilities with pip-audit; where its service does not answer, say so.

Exit code 1 where a package is known to be vulnerable, else 0: a machine without the service must be able to build.
"""

import json
import subprocess
import sys

COMMAND = ["pip_audit", "--format", "json", "--progress-spinner", "off", "--timeout", "3", "--skip-editable"]
SECONDS = 60  # at most


def main() -> int:
    """Print one line, or one per vulnerability; the exit code."""
    try:
        ran = subprocess.run([sys.executable, "-m", *COMMAND], capture_output=True, text=True, timeout=SECONDS)
        packages = json.loads(ran.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError):
        packages = []
    known = [package for package in packages if "skip_reason" not in package]
    if not known:
        print("dependency audit: skipped, no vulnerability service can be reached from here")
        return 0
    found = [(package, problem) for package in known for problem in package["vulns"]]
    for package, problem in found:
        fixed = ", ".join(problem["fix_versions"]) or "no version yet"
        print(f"dependency audit: {package['name']} {package['version']} has {problem['id']}; fixed in {fixed}")
    if not found:
        print(f"dependency audit: no known vulnerability in {len(known)} of {len(packages)} installed packages")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
