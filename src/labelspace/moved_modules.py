"""Old names of modules that moved: importing one still works, with a DeprecationWarning that names the new one."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec

MOVED = {
    "labelspace.answers": "labelspace.tagger.answers",
    "labelspace.data.columns": "labelspace.data.table",
    "labelspace.limits": "labelspace.types.limits",
    "labelspace.parameter_constraints": "labelspace.estimator.parameter_constraints",
    "labelspace.propensity": "labelspace.types.propensity",
    "labelspace.reading": "labelspace.data.source",
    "labelspace.state_constraints": "labelspace.estimator.state_constraints",
}


class MovedModules:
    """An import finder and loader that answers old names with the modules of today."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return a spec for the old name of a module; None for all other names."""
        if name not in MOVED:
            return None
        from importlib.machinery import ModuleSpec  # not before: ``import labelspace`` loads next to nothing

        return ModuleSpec(name, MovedModules)  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType:
        """Return the module of today, and warn."""
        new = MOVED[spec.name]
        warnings.warn(f"{spec.name} is now {new}; import it from there", DeprecationWarning, stacklevel=2)
        module = import_module(new)
        return ModuleType(spec.name, module.__doc__)

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Give the old module the names of the new one."""
        vars(module).update({k: v for k, v in vars(import_module(MOVED[module.__name__])).items() if k[:2] != "__"})


def install() -> None:
    """Let Python find the old names, once."""
    if MovedModules not in sys.meta_path:
        sys.meta_path.append(MovedModules)
