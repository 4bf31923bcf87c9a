"""Numba loops, one version each, each with a NumPy twin in the tests."""
