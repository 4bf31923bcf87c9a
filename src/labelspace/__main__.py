"""``python -m labelspace``."""

from labelspace.cli import run

run()
