"""Which methods can run here, on these data."""

from collections.abc import Sequence

from labelspace.errors import MissingExtraError
from labelspace.experiment.train import Recipe
from labelspace.types import Dataset


def installed(recipes: Sequence[Recipe]) -> tuple[list[Recipe], dict[str, str]]:
    """The recipes whose packages are installed, and by method why the others are left out.

    >>> installed([Recipe("popular")])
    ([Recipe(method='popular', ...)], {})
    """
    kept, left_out = [], {}
    for recipe in recipes:
        try:
            recipe.check()
            kept.append(recipe)
        except MissingExtraError as error:
            left_out[recipe.method] = str(error)
    return kept, left_out


def readable(recipes: Sequence[Recipe], documents: Dataset) -> tuple[list[Recipe], dict[str, str]]:
    """The recipes whose methods can read the documents, and by method why the others are left out."""
    reason = "it reads texts, but the data hold ready-made features"
    left_out = {recipe.method: reason for recipe in recipes if not _reads(recipe, documents)}
    return [recipe for recipe in recipes if recipe.method not in left_out], left_out


def _reads(recipe: Recipe, documents: Dataset) -> bool:
    """Texts can be read by all methods, ready-made features by those with a view that is a matrix."""
    return documents.texts is not None or any(view.is_matrix for view in recipe.tagger().views(documents))
