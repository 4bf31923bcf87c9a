"""Write the tables of the docs that come from the code: parameters of methods, published tables. `make docs`."""

import re
from collections import Counter
from functools import cache
from pathlib import Path

from labelspace.estimator.parameter_constraints import shown
from labelspace.experiment.reproduce.published import published_tables
from labelspace.models.base import Model
from labelspace.models.registry import METHODS, method
from labelspace.report.parameters import described

DOCS = Path(__file__).parent
SHARED_BY = 3  # methods from which on a parameter is explained once, for all of them
TABLE = re.compile(
    r"(<!-- (?:parameters: (\w+)|(shared parameters|published tables)) -->\n).*?(<!-- end -->)", re.DOTALL
)


def with_tables(page: str) -> str:
    """Return a page with its tables as the code has them, each between a comment that names it and ``<!-- end -->``.

    The comments are ``<!-- parameters: NAME -->`` for a method, ``<!-- shared parameters -->`` for the parameters that
    methods share, and ``<!-- published tables -->``.
    """

    def made(found: re.Match[str]) -> str:
        if found[2]:
            table = parameters_markdown(method(found[2]))
        else:
            table = shared_parameters_markdown() if found[3] == "shared parameters" else published_markdown()
        return f"{found[1]}{table}\n{found[4]}"

    return TABLE.sub(made, page)


def parameters_markdown(estimator: type[Model]) -> str:
    """Return the parameters as a Markdown table, with a column for each preset.

    Parameters that many methods share are listed below the table with their values: docs/methods/README.md says what
    they mean.
    """
    presets, shared = estimator.presets, _shared_parameters()
    rows, listed = [], []
    for key, p in estimator.params.items():
        preset_values = {name: shown(preset[key]) for name, preset in presets.items() if key in preset}
        if shared.get(key) == described(p):
            others = ", ".join(f"`{name}` {value}" for name, value in preset_values.items())
            listed.append(f"`{key}` {shown(p.default)}" + (f" ({others})" if others else ""))
        else:
            values = "".join(f" {preset_values[name]} |" if name in preset_values else " |" for name in presets)
            rows.append(f"| `{key}` | {shown(p.default)} |{values} {described(p)} |")
    names = "".join(f" `{name}` |" for name in presets)
    table = [f"| parameter | default |{names} meaning |", f"|---|---|{'---|' * len(presets)}---|", *rows]
    line = f"[Shared](README.md#shared-parameters): {', '.join(listed)}."
    return "\n".join([*(table if rows else []), *([""] if rows and listed else []), *([line] if listed else [])])


def shared_parameters_markdown() -> str:
    """Return the parameters that many methods share, with their meaning, as a Markdown table."""
    rows = [f"| `{key}` | {meaning} |" for key, meaning in sorted(_shared_parameters().items())]
    return "\n".join(["| parameter | meaning |", "|---|---|", *rows])


@cache
def _shared_parameters() -> dict[str, str]:
    """Return the meaning of each parameter that at least ``SHARED_BY`` methods declare alike."""
    declared = Counter((key, described(p)) for name in METHODS for key, p in method(name).params.items())
    return {key: meaning for (key, meaning), n in declared.items() if n >= SHARED_BY}


def published_markdown() -> str:
    """Return the list of published tables: with source, content and data sets, and the methods that make the rows."""
    lines = ["| table | source | what it shows | rows here | data sets |", "|---|---|---|---|---|"]
    for name, table in published_tables().items():
        made_by = [f"`{row.method}`" for row in table.rows if row.method]
        here = f"{len(made_by)} of {len(table.rows)}: {', '.join(dict.fromkeys(made_by)) or 'none yet'}"
        cells = (f"`{name}`", table.source, table.shows, here, ", ".join(table.datasets))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Write them where they differ."""
    for path in [*sorted(DOCS.glob("methods/*.md")), DOCS / "reproduction.md"]:
        page = path.read_text(encoding="utf-8")
        made = with_tables(page)
        if made != page:
            path.write_text(made, encoding="utf-8")


if __name__ == "__main__":  # pytest imports this module to look for doctests
    main()
