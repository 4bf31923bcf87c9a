"""The part that methods with one linear classifier per label share: prediction and explanation."""

from labelspace.estimator import learned
from labelspace.estimator.state_constraints import array, part
from labelspace.features.normalize import normalize_rows
from labelspace.models.base import Model
from labelspace.models.evidence import MIN_PROBABILITY, ColumnShares, Evidence, logit
from labelspace.training.linear_weights import LinearWeights
from labelspace.types import Bools, Csr, Ints, TopK


class LinearModel(Model):
    """One linear classifier per label; a subclass trains them, and declares whether it normalizes rows.

    The score of a label is the sigmoid of twice its margin.
    """

    normalize: bool | None

    # By features: prediction reads the rows of a document's features.
    classifiers_: LinearWeights = learned(part(LinearWeights, n_features="n_features", n_labels="n_labels"))
    seen_: Bools = learned(array("bool", "n_labels"))  # whether a label had a training document

    def _scaled(self, X: Csr) -> Csr:
        return normalize_rows(X) if self.normalize else X

    @property
    def weights_(self) -> Csr:
        """The classifiers as a matrix (n_features, n_labels), made at each call."""
        return self.classifiers_.to_matrix()

    def _predict(self, X: Csr, k: int, allowed: Bools | None = None) -> TopK:
        X = self._scaled(X)
        if allowed is None:
            return self.classifiers_.rank(X, self.seen_, k)
        return self.classifiers_.rank_allowed(X, self.seen_ & allowed, k, self.mask_cache)

    def explain(self, X: Csr, labels: Ints) -> list[Evidence]:
        """Explain the scores of labels by the weights of the document's features: the shares are exact.

        A label without training documents has no classifier: nothing speaks for it.
        """
        X = self._scaled(X)
        found = []
        for own, label in zip(self.classifiers_.weights_of(X.indices, labels), labels.tolist(), strict=True):
            seen = bool(self.seen_[label])
            baseline = 2.0 * float(self.classifiers_.bias[label]) if seen else logit(MIN_PROBABILITY)
            shares = 2.0 * own * X.data * seen
            by_view = {self.view.name: ColumnShares(X.indices, shares)}
            found.append(Evidence(baseline + float(shares.sum()), baseline, by_view))
        return found
