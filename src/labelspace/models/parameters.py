"""Parameters that several methods have, declared once: a name has one meaning everywhere.

A method declares such a parameter in its class body with a default of its own, as in
``dropout: float = parameters.dropout(0.4)``.
"""

# ruff: noqa: ANN401 - declarations, of the type that a class annotates

from typing import Any

from labelspace.estimator import param
from labelspace.estimator.parameter_constraints import Constraint, boolean, integer, one_of, optional, real

FRACTION = real(at_least=0, below=1)
POSITIVE = real(above=0)
BATCH_SIZE = 256  # a larger batch is faster for each document, and takes fewer steps in an epoch
SAMPLED = {"all_labels": (None, False)}  # the settings with which labels are sampled, or may be


def random_state() -> Any:
    """Declare the seed."""
    return param(0, integer(0), "Seed of everything drawn at random.")


def normalize(default: bool = True) -> Any:
    """Declare the scaling of documents to length one."""
    return param(default, boolean(), "Scale every document to length one first.")


def epochs() -> Any:
    """Declare the number of passes over the documents."""
    return param(None, integer(1), "Number of epochs; none chooses it by the number of documents.")


def patience() -> Any:
    """Declare the patience of early stopping."""
    meaning = "Stop after this many epochs without improvement on validation documents; none runs all epochs."
    return param(None, integer(1), meaning)


def batch_size(usual: int = BATCH_SIZE) -> Any:
    """Declare the number of documents per step."""
    return param(None, integer(1), f"Documents per batch; none takes {usual}, but at most a 16th of all.")


def learning_rate(default: float, of: str = "") -> Any:
    """Declare the learning rate, of all weights or of some."""
    return param(default, POSITIVE, f"Learning rate of {of}." if of else "Learning rate.")


def feature_learning_rate(default: float) -> Any:
    """Declare the learning rate of the first layer."""
    return learning_rate(default, "the feature embeddings")


def dropout(default: float | None) -> Any:
    """Declare the dropout of hidden units; with None as the default, the method may choose it."""
    return _dropout(default, "Share of hidden units dropped in training")


def input_dropout(default: float | None) -> Any:
    """Declare the dropout of features; with None as the default, the method may choose it."""
    return _dropout(default, "Share of a document's features dropped in training")


def _dropout(default: float | None, meaning: str) -> Any:
    chosen = "; none chooses it by the number of documents" if default is None else ""
    return param(default, FRACTION, f"{meaning}{chosen}.")


def training() -> Any:
    """Declare the order in which autoencoders and the rest are trained."""
    meaning = "Joint from the start, staged (autoencoders first), or pretrained (autoencoders first, then all)."
    return param("joint", one_of("joint", "staged", "pretrained"), meaning)


def n_sampled_features() -> Any:
    """Declare the sampling of features."""
    meaning = "Absent features sampled per batch in the reconstruction loss; none counts all."
    return param(2048, optional(integer(1)), meaning)


def all_labels() -> Any:
    """Declare whether labels are sampled."""
    return param(None, boolean(), "Train on all labels, not on sampled ones; none decides by their number.")


def n_negatives(default: int) -> Any:
    """Declare the number of sampled negative labels."""
    return param(default, integer(1), "Negative labels sampled per batch.").only_with(**SAMPLED)


def clip_norm(default: float) -> Any:
    """Declare gradient clipping."""
    return param(default, POSITIVE, "Gradients are clipped to this norm.")


MAX_BEAM_SIZE = 10_000  # buffers are allocated for each node of a beam; a typo must not fill the memory


def beam_size(default: int) -> Any:
    """Declare the size of the beam."""
    return param(default, integer(1, at_most=MAX_BEAM_SIZE), "Nodes or prefixes kept at each level of the search.")


def hidden_dim(default: int, constraint: Constraint | None = None) -> Any:
    """Declare the width of the hidden layer."""
    return param(default, constraint or integer(1), "Units of the hidden layer.")


def C(default: float) -> Any:  # noqa: N802 - the name that scikit-learn uses
    """Declare the regularization of linear classifiers."""
    return param(default, POSITIVE, "Inverse regularization strength of the linear classifiers.")


def threshold(default: float) -> Any:
    """Declare the pruning of linear classifiers."""
    return param(default, real(at_least=0), "Weights smaller than this are set to zero.")


def tol() -> Any:
    """Declare the convergence of linear classifiers."""
    return param(0.1, POSITIVE, "Stopping tolerance of dual coordinate descent.")


def max_iter(default: int) -> Any:
    """Declare the passes of linear classifiers."""
    return param(default, integer(1), "Maximum number of passes of dual coordinate descent.")


def label_text(default: float) -> Any:
    """Declare the weight of label names as training texts."""
    return param(default, real(at_least=0), "Weight of the labels' own texts; 0 leaves them out.")
