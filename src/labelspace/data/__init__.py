"""Data files to ``Dataset`` and back: a reader a format, the label files beside them, splits, demo and planted data."""
