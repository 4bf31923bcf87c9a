"""The parameters of a method: as a table for the terminal, and as plain values."""

from typing import Any

from rich.table import Table

from labelspace.estimator import Estimator, Param
from labelspace.estimator.parameter_constraints import shown
from labelspace.models.base import Model
from labelspace.models.registry import RECOMMENDED
from labelspace.report.tables import add_row, plain_table


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


def described(parameter: Param) -> str:
    """Return the meaning, with the settings that the parameter needs to have an effect."""
    return f"{parameter.meaning} Only with {parameter.needs}." if parameter.needs else parameter.meaning
