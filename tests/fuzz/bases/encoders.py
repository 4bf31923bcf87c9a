"""Small encoders of each kind of file: weights in 8 bits, safetensors of transformers and of model2vec."""

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

from labelspace.features.encoders.granite import FILE
from tests.features.encoders.weights import write_granite, write_model2vec, write_transformer


def makers() -> Iterator[tuple[str, Callable[[Path], None]]]:
    """The name of each folder, and who makes it."""
    yield "granite-", _granite
    if find_spec("tokenizers"):
        for family in ("bert", "roberta"):
            yield f"{family}-", lambda folder, family=family: write_transformer(folder, family)
        yield "model2vec-", write_model2vec


def _granite(folder: Path) -> None:
    folder.mkdir(parents=True)
    write_granite(folder / FILE)
