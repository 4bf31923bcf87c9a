import subprocess
import sys

CODE = """
import sys

sys.modules["sklearn"] = None  # as if it were not installed
from labelspace.errors import MissingExtraError

try:
    import labelspace.sklearn
except MissingExtraError as error:
    print(error)
"""


def test_the_error_names_the_extra():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == [
        "labelspace.sklearn needs the package 'sklearn', which is not installed; run: pip install 'labelspace[sklearn]'"
    ]
