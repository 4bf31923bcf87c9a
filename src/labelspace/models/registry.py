"""The methods by name. A method is imported on first use, so that listing the names stays quick."""

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

from labelspace import store
from labelspace.errors import ModelError, ParameterError
from labelspace.models.base import Model
from labelspace.types.limits import MAX_LABELS

METHODS = {  # registry name -> module and class
    "popular": "labelspace.models.baselines:Popular",
    "random": "labelspace.models.baselines:Random",
    "neighbors": "labelspace.models.neighbors.model:Neighbors",
    "one_vs_rest": "labelspace.models.one_vs_rest:OneVsRest",
    "pdsparse": "labelspace.models.pdsparse.model:PDSparse",
    "label_tree": "labelspace.models.label_tree:LabelTree",
    "fastxml": "labelspace.models.fastxml.model:FastXML",
    "leml": "labelspace.models.leml.model:Leml",
    "lexical": "labelspace.models.lexical.model:Lexical",
    "semantic": "labelspace.models.semantic.model:Semantic",
    "network": "labelspace.models.network:Network",
    "glas": "labelspace.models.glas.model:Glas",
    "poincare": "labelspace.models.poincare.model:Poincare",
    "annexml": "labelspace.models.annexml.model:AnnexML",
    "neuralxc": "labelspace.models.neuralxc.model:NeuralXC",
    "hierarchicalxc": "labelspace.models.hierarchicalxc.model:HierarchicalXC",
    "secseq": "labelspace.models.secseq.model:SeCSeq",
    "mlc2seq": "labelspace.models.secseq.model:Mlc2Seq",
    "xmlcnn": "labelspace.models.xmlcnn.model:XMLCNN",
    "treespace": "labelspace.models.treespace.model:Treespace",
    "sleec": "labelspace.models.sleec.model:Sleec",
    "text2text": "labelspace.models.text2text.model:Text2Text",
    "blend": "labelspace.models.blend.model:Blend",
}
# What to start with.
RECOMMENDED = ("blend", "label_tree", "pdsparse", "neighbors", "lexical", "semantic", "glas", "poincare")
BASELINES = ("popular", "random")  # what any method must beat; all others are methods of the literature
DEFAULT = "blend"  # the method of ``train`` and ``Tagger`` if none is named


def methods() -> dict[str, type[Model]]:
    """Return every registered method, by name."""
    return {name: method(name) for name in METHODS}


def method(name: str) -> type[Model]:
    """Return the class of a method.

    >>> method("popular").__name__
    'Popular'
    """
    if name not in METHODS:
        close = get_close_matches(name, METHODS, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise ParameterError(f"there is no method {name!r}; {hint}the methods are: {', '.join(METHODS)}")
    module, cls = METHODS[name].split(":")
    return getattr(import_module(module), cls)  # type: ignore[no-any-return]


def load_model(folder: str | Path, manifest: Mapping[str, Any], verify: bool | None = None) -> Model:
    """Return the model of a folder with its labels."""
    model: Model = store.load_part(folder, manifest, "model", method, verify)
    labels = store.read_labels(folder, manifest, verify)
    if labels is None and model.n_labels_ > MAX_LABELS.value:
        rule = f"{folder} must have at most {MAX_LABELS.value} labels without names, but says {model.n_labels_}"
        raise ModelError(f"{rule}; save it with its labels, or {MAX_LABELS.raise_it}")
    if labels is not None and len(labels) != model.n_labels_:
        rule = f"{folder} must hold the names of its {model.n_labels_} labels, but holds {len(labels)}"
        raise ModelError(f"{rule}; copy the whole folder again, or train it again")
    model.attach_labels(labels)
    return model


def create(name: str, **params: Any) -> Model:  # noqa: ANN401 - parameters are of any type
    """Return a new model by its registry name.

    >>> create("popular")
    Popular()
    """
    return method(name)(**params)
