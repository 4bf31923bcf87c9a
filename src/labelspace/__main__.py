"""``python -m labelspace``."""

from labelspace.cli import main

main()
