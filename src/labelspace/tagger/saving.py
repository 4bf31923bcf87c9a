"""Save a tagger to a folder, and load it: its model, features and training documents are parts of the folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from labelspace import store
from labelspace.data.document_sketch import DocumentSketch
from labelspace.data.objects.document_reader import saved_columns, saved_fields
from labelspace.estimator import Stateful
from labelspace.explain.training_documents import TrainingDocuments
from labelspace.features.views import TEXT, ViewTransformer
from labelspace.models.registry import load_model
from labelspace.tagger.card import model_card
from labelspace.tagger.held_out import HeldOutDocuments
from labelspace.tagger.lineage import (
    LICENSE,
    LINEAGE,
    ORIGIN,
    UNKNOWN,
    read_lineage,
    saved_license,
    saved_origin,
    write_lineage,
)
from labelspace.types import LabelSpace, plain_layout

if TYPE_CHECKING:
    from labelspace.tagger.tagger import Tagger

# Names of parts on disk.
FEATURES = "features"
DOCUMENTS = "documents"  # the sketch of the training documents
TRAINING_DOCUMENTS = "training_documents"  # their ids, and their texts if these are kept
HELD_OUT = "held_out"  # the documents by which versions are compared
T = TypeVar("T", bound="Tagger")
S = TypeVar("S", bound=Stateful)


def save(tagger: Tagger, folder: str | Path, force: bool) -> None:
    """Write a tagger to a folder; with ``force`` even to a folder that holds other files."""
    about: dict[str, Any] = {"method": tagger.model.name}
    if tagger.columns_ is not None:
        about["columns"] = plain_layout(tagger.columns_)
    if tagger.fields_ is not None:
        about["fields"] = plain_layout(tagger.fields_)
    if tagger.origin_ != UNKNOWN:
        about[ORIGIN] = tagger.origin_._asdict()
    if tagger.license_ is not None:
        about[LICENSE] = tagger.license_
    if tagger.lineage_:
        about[LINEAGE] = write_lineage(tagger.lineage_)
    parts: dict[str, Stateful | None] = {"model": tagger.model, FEATURES: tagger.features_}
    parts |= {DOCUMENTS: tagger.documents_, TRAINING_DOCUMENTS: tagger.training_documents_}
    parts[HELD_OUT] = tagger.held_out_
    present = {name: part for name, part in parts.items() if part is not None}
    store.save(folder, about, present, tagger.labels_, force, card=model_card)


def load(cls: type[T], folder: str | Path, verify: bool | None) -> T:
    """Read a tagger of this class from a folder that a tagger or a model was saved to."""
    with store.refusing_damage(folder):
        return store.read_unreplaced(folder, lambda: _assembled(cls, folder, store.read_manifest(folder), verify))


def _assembled(cls: type[T], folder: str | Path, manifest: dict[str, Any], verify: bool | None) -> T:
    def part(name: str, kind: type[S]) -> S | None:
        return store.load_part(folder, manifest, name, kind, verify) if name in manifest else None

    model = load_model(folder, manifest, verify)
    tagger = cls(model)
    tagger.labels_ = model.labels_ or LabelSpace.numbered(model.n_labels_)
    if "columns" in manifest:
        tagger.columns_ = saved_columns(manifest["columns"])
    if "fields" in manifest:
        tagger.fields_ = saved_fields(manifest["fields"])
    tagger.features_ = part(FEATURES, ViewTransformer)
    if tagger.features_ is None and list(model.widths_) == [TEXT.name]:  # a saved model that reads texts itself
        tagger.features_ = raw_text()
    tagger.documents_ = part(DOCUMENTS, DocumentSketch)
    tagger.training_documents_ = part(TRAINING_DOCUMENTS, TrainingDocuments)
    tagger.held_out_ = part(HELD_OUT, HeldOutDocuments)
    if tagger.held_out_ is not None:
        tagger.held_out_.check_known(len(tagger.labels_))
    tagger.lineage_ = read_lineage(manifest.get(LINEAGE, []))
    tagger.origin_ = saved_origin(manifest)
    tagger.license_ = saved_license(manifest)
    return tagger


def raw_text() -> ViewTransformer:
    """Return the features of a method that reads texts as they are."""
    return ViewTransformer([TEXT]).fit([""])
