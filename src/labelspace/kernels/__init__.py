"""Numba kernels; each has a NumPy twin in the tests.

Compiled kernels are cached beside the sources where that is possible, else in a private folder of the user.
"""

from pathlib import Path

from labelspace.kernels.cache_folder import set_cache_folder

PACKAGE = Path(__file__).parent
set_cache_folder(PACKAGE)
