"""The declaration of options that the command line, the HTTP service and Python callers share.

A ``TypedDict`` declares such options, each annotated with an ``Option``. Python functions take it as keywords
(``**options: Unpack[FileOptions]``); the flags of the command line and the fields of a request are made from it.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, get_args, get_type_hints

from labelspace.errors import ParameterError


class Option(NamedTuple):
    """What an option means, wherever it is given.

    >>> from typing import Annotated, TypedDict
    >>> class Limits(TypedDict, total=False):
    ...     budget: Annotated[float, Option("CPU seconds that training may take.", "SECONDS", bounds={"gt": 0})]
    >>> declared_options(Limits)["budget"].metavar
    'SECONDS'
    """

    meaning: str  # one sentence, which --help, the HTTP schema and this declaration show
    metavar: str | None = None  # what stands for the value in --help; None for a switch
    on_command_line: str = ""  # what --help says next to the meaning: how the value is typed
    repeats: bool = False  # --help shows a flag that may be given several times
    bounds: Mapping[str, Any] = {}  # of a number: ge, gt, le, lt, as pydantic names them
    kind: Any = str  # the type, read from the annotation


def declared_options(kind: type) -> dict[str, Option]:
    """Return the options that a TypedDict declares, by name."""
    found = {}
    for name, annotation in get_type_hints(kind, include_extras=True).items():
        declared, *extras = get_args(annotation) or (annotation,)
        option = next((extra for extra in extras if isinstance(extra, Option)), Option(""))
        found[name] = option._replace(kind=declared)
    return found


def check_names(names: Iterable[str], kind: type, of: str = "") -> None:
    """Raise ParameterError unless a TypedDict declares all these options; ``of`` names what takes them."""
    known = kind.__annotations__
    for name in names:
        if name not in known:
            raise ParameterError(f"an option{of} must be one of {', '.join(known)}, but is {name!r}; use one of these")
