"""Write the tables of parameters into the pages of the methods, from what the methods declare: `make docs`."""

from pathlib import Path

from labelspace.report.parameters import with_parameter_tables

for path in sorted(Path(__file__).parent.glob("methods/*.md")):
    page = path.read_text(encoding="utf-8")
    path.write_text(with_parameter_tables(page), encoding="utf-8")
