"""scikit-learn: a classifier for pipelines and searches, and scorers of the field's metrics; the extra ``sklearn``."""

from labelspace.errors import require

require("sklearn", extra="sklearn", needed_by="labelspace.sklearn")

from labelspace.sklearn import scorers  # noqa: E402 - the error above names the extra
from labelspace.sklearn.classifier import TaggerClassifier  # noqa: E402

__all__ = ["TaggerClassifier", "scorers"]
