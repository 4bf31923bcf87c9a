"""The files that a training keeps in its checkpoint folder, so that no finished step is done again.

- ``blend.safetensors``: which training this is. Without it, the rest is removed: it starts anew.
- ``blend-fold-1-member-2.safetensors``: what a member of a fold predicts for the documents held out.
- ``blend-member-2/``: a member trained on all documents, saved as a model is.
- ``blend-fold-1-member-2-training/``, ``blend-member-2-training/``: of a member that can resume, while it is trained.

All of it is removed when the training is done.
"""

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import numpy as np

from labelspace import store
from labelspace.errors import ModelError
from labelspace.features.views import Views
from labelspace.models.base import Model
from labelspace.models.capabilities import Checkpoints
from labelspace.models.registry import method
from labelspace.store.atomic import replacing_folder
from labelspace.training.checkpoints import Checkpoint, data_fingerprint, of_another_training, unreadable
from labelspace.types import Csr, LabelSpace, TopK

PREFIX = "blend"
MAX_SECONDS = 1e9  # of a step, about 30 years: a larger number is damage
STEP = re.compile(rf"{PREFIX}-(fold-\d+-)?member-\d+(-training|\.safetensors)?")  # names of files and folders


class FinishedSteps:
    """The finished steps of a training in its checkpoint folder; without a folder nothing is kept."""

    def __init__(self, folder: Path | None, fingerprint: Mapping[str, Any]) -> None:
        self.folder, self._fingerprint = folder, fingerprint

    @contextmanager
    def in_use(self) -> Iterator[Self]:
        """Refuse the folder of a different training; remove the folder's steps when this training is done."""
        if self.folder is None:
            yield self
            return
        training = self._checkpoint(self.folder, PREFIX)
        with training.in_use():
            if training.read({}, {}) is None:
                self._remove_all(self.folder)
                training.write({}, {})
            yield self
            training.remove()  # first: without it, what is left has no meaning
            self._remove_all(self.folder)

    def read_topk(self, key: str, shape: tuple[int, int], n_labels: int) -> tuple[TopK, float] | None:
        """Return the predictions of a member of a fold, and its seconds; None if the step is not finished."""
        if self.folder is None:
            return None
        checkpoint, top = self._checkpoint(self.folder, f"{PREFIX}-{key}"), TopK.empty(*shape)
        values = checkpoint.read({"labels": top.labels, "scores": top.scores}, {"seconds": 0.0})
        if values is None:
            return None
        listed = top.labels >= 0
        if not (-1 <= top.labels.min(initial=-1) and top.labels.max(initial=-1) < n_labels):
            raise unreadable(checkpoint.path, f"its labels are not of the {n_labels} of this training")
        if not np.isfinite(top.scores[listed]).all() or not 0 <= values["seconds"] < MAX_SECONDS:
            raise unreadable(checkpoint.path, "its scores or seconds are out of range")
        top.scores[~listed] = -np.inf
        self._remove_training(key)
        return top, float(values["seconds"])

    def keep_topk(self, key: str, top: TopK, seconds: float) -> None:
        """Keep the predictions of a member of a fold."""
        if self.folder is not None:
            arrays: store.Arrays = {"labels": top.labels, "scores": top.scores}
            self._checkpoint(self.folder, f"{PREFIX}-{key}").write(arrays, {"seconds": seconds})
            self._remove_training(key)

    def read_member(self, key: str, untrained: Model, widths: Mapping[str, int], n_labels: int) -> Model | None:
        """Return the member that was trained on views of these widths, checked; None if it is not finished."""
        path = None if self.folder is None else self.folder / f"{PREFIX}-{key}"
        if path is None or not path.exists():
            return None
        try:
            manifest = store.read_manifest(path)
            same = manifest.get("fingerprint") == self._checkpoint(path, key).fingerprint
            member: Model = store.load_part(path, manifest, "model", method, verify=True)
        except (ModelError, OSError) as error:
            raise unreadable(path, error) from error
        found = (type(member), member.get_params(), member.widths_, member.n_labels_)
        if not same or found != (type(untrained), untrained.get_params(), widths, n_labels):
            raise of_another_training(path)
        self._remove_training(key)
        return member

    def keep_member(self, key: str, member: Model) -> None:
        """Keep a member that was trained on all documents."""
        if self.folder is not None:
            store.save(self.folder / f"{PREFIX}-{key}", self.about(key, member.name), {"model": member}, None)
            self._remove_training(key)

    def about(self, key: str, method: str) -> dict[str, Any]:
        """Return the head of the folder of a member."""
        return {"method": method, "fingerprint": self._checkpoint(Path(), key).fingerprint}

    def keep_member_files(self, key: str, files: Mapping[str, bytes]) -> None:
        """Keep a member by the files that another machine saved it to."""
        if self.folder is not None:
            with replacing_folder(self.folder / f"{PREFIX}-{key}", lambda _: None) as made:
                for name, content in files.items():
                    (made / name).write_bytes(content)

    def is_finished(self, key: str) -> bool:
        """Return whether a step was done before."""
        if self.folder is None:
            return False
        return any((self.folder / f"{PREFIX}-{key}{ending}").exists() for ending in ("", ".safetensors"))

    def training_folder(self, key: str, member: Model) -> Path | None:
        """Return the folder where a member that can resume keeps its own checkpoints; None if it cannot."""
        return self._training_folder(key) if isinstance(member, Checkpoints) else None

    def _checkpoint(self, folder: Path, name: str) -> Checkpoint:
        return Checkpoint(folder, self._fingerprint, name)

    def _training_folder(self, key: str) -> Path | None:
        return None if self.folder is None else self.folder / f"{PREFIX}-{key}-training"

    def _remove_training(self, key: str) -> None:
        folder = self._training_folder(key)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def _remove_all(self, folder: Path) -> None:
        for path in folder.iterdir():
            if STEP.fullmatch(path.name) and path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif STEP.fullmatch(path.name):
                with suppress(OSError):
                    path.unlink()


def training_data(views: Views, Y: Csr, labels: LabelSpace | None) -> list[int]:
    """Return the fingerprint of documents under all their views, and of all that members may read of the labels."""
    numbers = data_fingerprint(Y, *(views.tables[name] for name in sorted(views.tables)))
    if labels is None:
        return numbers
    synonyms = [repr(list(alternatives)) for alternatives in labels.synonyms or ()]
    edges = [] if labels.hierarchy is None else [labels.hierarchy.edges]
    return numbers + data_fingerprint(list(labels.names), synonyms, *edges)
