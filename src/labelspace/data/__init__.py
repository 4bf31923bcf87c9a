"""Data files to ``Dataset`` and back: one reader per format, label files, splits, demo and synthetic data."""
