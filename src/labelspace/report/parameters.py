"""The parameters of a method: as a table for the terminal and the docs, and as plain values."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any

from labelspace.estimator import Estimator, Param
from labelspace.estimator.parameter_constraints import shown
from labelspace.models.base import Model
from labelspace.models.registry import METHODS, RECOMMENDED, method
from labelspace.report.tables import add_row, plain_table

if TYPE_CHECKING:
    from rich.table import Table

SHARED_BY = 3  # methods from which on a parameter is explained once, for all of them


def method_json(cls: type[Model]) -> dict[str, Any]:
    """Return everything that a method declares, as plain values."""
    parameters = []
    for key, p in cls.params.items():
        value = {"type": p.type, "default": p.default, "constraint": p.constraint.text}
        parameters.append({"name": key, **value, "meaning": p.meaning, "only_with": p.needs or None})
    presets = {name: dict(params) for name, params in cls.presets.items()}
    about = {"name": cls.name, "title": cls.title, "recommended": cls.name in RECOMMENDED}
    return {**about, "choose_when": cls.choose_when, "parameters": parameters, "presets": presets}


def parameters_table(estimator: type[Estimator]) -> Table:
    """Return a table with name, default, constraint and meaning of every parameter."""
    table = plain_table("parameter", "default", "must be", "meaning", left=4)
    for key, p in estimator.params.items():
        add_row(table, key, shown(p.default), p.constraint.text, described(p))
    return table


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


def with_parameter_tables(page: str) -> str:
    """Return a page of docs with a table of parameters between ``<!-- parameters: NAME -->`` and ``<!-- end -->``.

    Between ``<!-- shared parameters -->`` and ``<!-- end -->`` it gets the table of the parameters that methods share.
    """
    between = re.compile(r"(<!-- (?:parameters: (\w+)|shared parameters) -->\n).*?(<!-- end -->)", re.DOTALL)

    def made(found: re.Match[str]) -> str:
        table = parameters_markdown(method(found[2])) if found[2] else shared_parameters_markdown()
        return f"{found[1]}{table}\n{found[3]}"

    return between.sub(made, page)


def described(parameter: Param) -> str:
    """Return the meaning, with the settings that the parameter needs to have an effect."""
    return f"{parameter.meaning} Only with {parameter.needs}." if parameter.needs else parameter.meaning
