"""Models that train in a moment, and the inputs that they read."""

from labelspace.features.views import ViewTransformer
from labelspace.models.secseq.model import SeCSeq

TARGETS = ("set", "label", "sequence")
PAIRS = (("bag", "set"), ("bag", "label"), ("bag", "sequence"), ("gru", "sequence"), ("convolution", "label"))
"""Encoders and targets: every encoder, and every target."""
SIZES = {
    "code_size": 8, "code_length": 2, "hidden_dim": 64, "decoder_dim": 32, "word_dim": 32, "beam_size": 8,
    "learning_rate": 0.01,
}  # fmt: skip
TINY = {**SIZES, "hidden_dim": 8, "decoder_dim": 8, "word_dim": 8, "epochs": 2, "n_samples": 10}


def tiny(**params):
    return SeCSeq().set_params(**{**TINY, **params})


def inputs(model, train, *others):
    """What the model reads of training documents, and of others."""
    if model.encoder == "bag":
        return [documents.X for documents in (train, *others)]
    views = ViewTransformer(model.views(train))
    return [views.fit_transform(train.texts), *(views.transform(documents.texts) for documents in others)]


def fit(model, documents, **options):
    (X,) = inputs(model, documents)
    return model.fit(X, documents.Y, **options)


def same_state(one, other):
    names = ("embeddings_", "embedding_scales_", "weights_", "digits_", "label_shares_")
    return all((getattr(one, name) == getattr(other, name)).all() for name in names)
