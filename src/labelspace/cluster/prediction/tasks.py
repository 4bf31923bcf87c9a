"""Predict one block in a task: read, label and write its documents, with one thread."""

from __future__ import annotations

import hashlib
import socket
import tempfile
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from labelspace.cluster.prediction.block_reader import block_records
from labelspace.cluster.prediction.blocks import Block
from labelspace.cluster.prediction.output_folder import OutputFolder
from labelspace.data.answer_files import LabelDisplay, writing_answers
from labelspace.errors import ClusterError, DataError
from labelspace.labels.tag_options import TagOptions
from labelspace.report.predictions import PredictRequest, predictions
from labelspace.report.terminal import json_text
from labelspace.store.model_folder import MANIFEST
from labelspace.tagger import Tagger


@dataclass(frozen=True)
class PredictJob:
    """The settings of predictions, the same for all documents."""

    model: str  # the path of its folder on all machines, which is memory-mapped there
    fingerprint: str
    k: int
    options: TagOptions
    language: str | None
    out: str  # a path or URL


class NamedBlock(NamedTuple):
    """A block, and the name of the file of its predictions."""

    name: str
    block: Block


def model_fingerprint(folder: str | Path) -> str:
    """Return a checksum of a model: of its manifest, which has the checksums of all other files."""
    return hashlib.sha256(Path(folder, MANIFEST).read_bytes()).hexdigest()


def predict_block(job: PredictJob, item: NamedBlock) -> Counter[str]:
    """Write the predictions for a block; a repeated task writes the same bytes.

    Return how many documents the model can read nothing in, by reason.
    """
    tagger, display = _loaded(job.model, job.fingerprint, job.language)
    request = PredictRequest(tagger, job.k, job.options, display)
    problems = Counter[str]()
    n = 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, item.name)
        with (
            block_records(item.block) as (source, records),
            writing_answers(file, display, len(tagger.labels_), json_text) as add,
        ):
            for prediction in predictions(records, source, request, problems):
                add(prediction)
                n += 1
        if n != item.block.n_rows:
            changed = f"{n:,} documents and not {item.block.n_rows:,} from row {item.block.first_row:,} on"
            raise DataError(f"{item.block.file.path} must stay as it is, but has {changed}; start anew with --force")
        OutputFolder(job.out).put(file)
    return problems


@lru_cache(maxsize=1)
def _loaded(model: str, fingerprint: str, language: str | None) -> tuple[Tagger, LabelDisplay]:
    """Load the model, once per process."""
    try:
        same = model_fingerprint(model) == fingerprint
    except OSError as error:
        raise ClusterError(
            f"all machines must see the model, but {socket.gethostname()} has no {model} ({error.strerror}); put it "
            "on a shared file system, or copy it there to the same path"
        ) from error
    if not same:
        raise ClusterError(
            f"all machines must have the same model, but {socket.gethostname()} has a different one at {model}; copy "
            "it there again"
        )
    tagger = Tagger.load(model)
    return tagger, LabelDisplay(tagger.labels_, language, tagger.gives_probabilities)
