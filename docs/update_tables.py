"""Write the tables of the docs that come from the code: parameters of methods, published tables. `make docs`."""

from pathlib import Path

from labelspace.report.parameters import with_parameter_tables
from labelspace.report.reproduction import with_published_tables

DOCS = Path(__file__).parent


def main() -> None:
    """Write them where they differ."""
    for path in [*sorted(DOCS.glob("methods/*.md")), DOCS / "reproduction.md"]:
        page = path.read_text(encoding="utf-8")
        made = with_published_tables(with_parameter_tables(page))
        if made != page:
            path.write_text(made, encoding="utf-8")


if __name__ == "__main__":  # pytest imports this module to look for doctests
    main()
