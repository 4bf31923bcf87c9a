"""Explanations of linear classifiers, one per label: each feature's weight times its value."""

from labelspace.models.evidence import MIN_PROBABILITY, ColumnShares, Evidence, logit
from labelspace.training.linear_weights import LinearWeights
from labelspace.types import Bools, Csr, Ints


def linear_evidence(classifiers: LinearWeights, seen: Bools, X: Csr, labels: Ints, view: str) -> list[Evidence]:
    """Explain the scores of labels for one document X (1, n_features), by sigmoids of twice the margin.

    The shares are exact. A label without training documents has no classifier: nothing speaks for it.
    """
    weights = classifiers.weights_of(X.indices, labels)
    found = []
    for own, label in zip(weights, labels.tolist(), strict=True):
        baseline = 2.0 * float(classifiers.bias[label]) if seen[label] else logit(MIN_PROBABILITY)
        shares = 2.0 * own * X.data * bool(seen[label])
        log_odds = baseline + float(shares.sum())
        found.append(Evidence(log_odds, baseline, {view: ColumnShares(X.indices, shares)}))
    return found
