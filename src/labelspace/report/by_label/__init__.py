"""Figures of each label: file, table and page."""
