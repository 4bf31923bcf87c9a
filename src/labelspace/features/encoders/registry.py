"""The encoders by name."""

from functools import cache

from labelspace.errors import ParameterError, require
from labelspace.features.encoders import granite, minilm, static
from labelspace.features.encoders.base import Encoder

NAMES = {"static": granite, "granite": granite, "minilm": minilm}
"""The module that knows the package and the extra of each name."""


@cache
def load_encoder(name: str) -> Encoder:
    """Return an encoder, which is loaded once in a process."""
    check_encoder(name)
    if name == "minilm":
        return minilm.MiniLM()
    if name == "granite":
        return granite.Granite.installed()
    network = load_encoder("granite")
    assert isinstance(network, granite.Granite)
    return static.distilled(network)


def check_encoder(name: str) -> None:
    """Raise an error unless there is an encoder of this name, and its package is installed."""
    if name not in NAMES:
        raise ParameterError(f"encoder must be one of {', '.join(NAMES)}, but is {name!r}; choose one")
    require(NAMES[name].PACKAGE, NAMES[name].EXTRA)
