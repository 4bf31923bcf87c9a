"""The parameters of a method: as a table for the terminal and the docs, and as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labelspace.estimator import Estimator
from labelspace.models.base import Model
from labelspace.report.tables import plain_table

if TYPE_CHECKING:
    from rich.table import Table


def method_json(method: type[Model]) -> dict[str, Any]:
    """Title and parameters of a method as plain values."""
    return {
        "name": method.name,
        "title": method.title,
        "choose_when": method.choose_when,
        "parameters": [
            {"name": key, "type": p.type, "default": p.default, "constraint": p.constraint.text, "meaning": p.meaning}
            for key, p in method.params.items()
        ],
    }


def parameters_table(estimator: type[Estimator]) -> Table:
    """Name, default, constraint and meaning of every parameter."""
    table = plain_table("parameter", "default", "must be", "meaning", left=4)
    for key, p in estimator.params.items():
        table.add_row(key, shown(p.default), p.constraint.text, p.meaning)
    return table


def parameters_markdown(estimator: type[Estimator]) -> str:
    """The parameters as a Markdown table."""
    rows = [f"| `{key}` | {shown(p.default)} | {p.meaning} |" for key, p in estimator.params.items()]
    return "\n".join(["| parameter | default | meaning |", "|---|---|---|", *rows])


def shown(value: object) -> str:
    """A default as the command line takes it."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return str(value) or "(empty)"
