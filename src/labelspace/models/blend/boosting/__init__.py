"""Gradient-boosted decision trees, the learner of the stacking model."""

from labelspace.models.blend.boosting.forest import BinnedColumns, Forest, fit_forest

__all__ = ["BinnedColumns", "Forest", "fit_forest"]
