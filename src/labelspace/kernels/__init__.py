"""Numba kernels that several packages share; each has a NumPy twin in the tests.

A kernel that one package uses is in its ``kernels.py``. Compiled kernels are cached next to the sources where that is
possible, else in a private folder of the user.
"""

from pathlib import Path

from labelspace.kernels.compilation import set_cache_folder

ROOT = Path(__file__).parent.parent
set_cache_folder(Path(__file__).parent, *sorted(file.parent for file in ROOT.glob("*/*/kernels.py")))
