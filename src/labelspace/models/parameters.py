"""Parameters that several methods have, declared once: the same name means the same everywhere.

A method takes one in its class body, with a default of its own: ``dropout: float = parameters.dropout(0.4)``.
"""

# ruff: noqa: ANN401 - declarations, of the type that a class annotates

from typing import Any

from labelspace.estimator import param
from labelspace.estimator.parameter_constraints import Constraint, boolean, integer, one_of, optional, real

FRACTION = real(at_least=0, below=1)
POSITIVE = real(above=0)
BATCH_SIZE = 256
SAMPLED = {"all_labels": (None, False)}  # labels are sampled, or may be


def random_state() -> Any:
    """Seed."""
    return param(0, integer(0), "Seed of everything drawn at random.")


def normalize(default: bool = True) -> Any:
    """Cosine."""
    return param(default, boolean(), "Scale every document to length one first.")


def epochs() -> Any:
    """Passes over the documents."""
    return param(None, integer(1), "Number of epochs; none chooses it by the number of documents.")


def patience() -> Any:
    """Early stopping."""
    meaning = "Stop after this many epochs without improvement on validation documents; none runs all epochs."
    return param(None, integer(1), meaning)


def batch_size(usual: int = BATCH_SIZE) -> Any:
    """Documents per step."""
    return param(None, integer(1), f"Documents per batch; none takes {usual}, but at most a 16th of all.")


def learning_rate(default: float, of: str = "") -> Any:
    """Learning rate, of all weights or of some."""
    return param(default, POSITIVE, f"Learning rate of {of}." if of else "Learning rate.")


def feature_learning_rate(default: float) -> Any:
    """Learning rate of the first layer."""
    return learning_rate(default, "the feature embeddings")


def dropout(default: float | None) -> Any:
    """Dropout of hidden units; as ``input_dropout``."""
    return _dropout(default, "Share of hidden units dropped in training")


def input_dropout(default: float | None) -> Any:
    """Dropout of features; with None as the default it may be left to the method."""
    return _dropout(default, "Share of a document's features dropped in training")


def _dropout(default: float | None, meaning: str) -> Any:
    chosen = "; none chooses it by the number of documents" if default is None else ""
    return param(default, FRACTION, f"{meaning}{chosen}.")


def training() -> Any:
    """Order in which autoencoders and the rest are trained."""
    meaning = "Joint from the start, staged (autoencoders first), or pretrained (autoencoders first, then all)."
    return param("joint", one_of("joint", "staged", "pretrained"), meaning)


def n_sampled_features() -> Any:
    """Sampling of features."""
    meaning = "Absent features sampled per batch in the reconstruction loss; none counts all."
    return param(2048, optional(integer(1)), meaning)


def all_labels() -> Any:
    """Whether labels are sampled."""
    return param(None, boolean(), "Train on all labels, not on sampled ones; none decides by their number.")


def n_negatives(default: int) -> Any:
    """Negative sampling."""
    return param(default, integer(1), "Negative labels sampled per batch.").only_with(**SAMPLED)


def clip_norm(default: float) -> Any:
    """Gradient clipping."""
    return param(default, POSITIVE, "Gradients are clipped to this norm.")


MAX_BEAM_SIZE = 10_000


def beam_size(default: int) -> Any:
    """Beam search."""
    return param(default, integer(1, at_most=MAX_BEAM_SIZE), "Nodes or prefixes kept at each level of the search.")


def hidden_dim(default: int, constraint: Constraint | None = None) -> Any:
    """Width of the hidden layer."""
    return param(default, constraint or integer(1), "Units of the hidden layer.")


def C(default: float) -> Any:  # noqa: N802 - the name that scikit-learn uses
    """Regularization of linear classifiers."""
    return param(default, POSITIVE, "Inverse regularization strength of the linear classifiers.")


def threshold(default: float) -> Any:
    """Pruning of linear classifiers."""
    return param(default, real(at_least=0), "Weights smaller than this are set to zero.")


def tol() -> Any:
    """Convergence of linear classifiers."""
    return param(0.1, POSITIVE, "Stopping tolerance of dual coordinate descent.")


def max_iter(default: int) -> Any:
    """Passes of linear classifiers."""
    return param(default, integer(1), "Maximum number of passes of dual coordinate descent.")


def label_text(default: float) -> Any:
    """Label names as training texts."""
    return param(default, real(at_least=0), "Weight of the labels' own texts; 0 leaves them out.")
