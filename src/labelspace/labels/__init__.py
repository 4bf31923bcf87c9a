"""Computations with labels: co-occurrence, trees by clustering, codes, votes, ancestors, selections."""
