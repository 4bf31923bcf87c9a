"""Save and load features as the Tagger does."""

from labelspace import store
from labelspace.features import features_class


def saved_and_loaded(features, folder, part=features_class):
    """The same features, read from a folder they were written to."""
    store.save(folder / "model", {}, {"features": features}, None)
    return store.load_part(folder / "model", store.read_manifest(folder / "model"), "features", part)
