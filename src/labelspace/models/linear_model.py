"""The part that methods with one linear classifier per label share: prediction, explanation and going on learning."""

from collections.abc import Collection, Mapping

import numpy as np
import scipy.sparse as sp

from labelspace.estimator import learned
from labelspace.estimator.state_constraints import array, part
from labelspace.features.normalize import normalize_rows
from labelspace.kernels.beam_search import Tree
from labelspace.models.base import Model
from labelspace.models.evidence import MIN_PROBABILITY, ColumnShares, Evidence, logit
from labelspace.models.partial_fit import NewDocuments
from labelspace.training.linear_weights import LinearWeights
from labelspace.training.warm_start import REJECTED, Examples, Halves, WarmOptions, continue_training, sums_of_squares
from labelspace.types import Bools, Csr, Ints, Longs, TopK


class LinearModel(Model):
    """One linear classifier per label; a subclass trains them, and declares whether it normalizes rows.

    The score of a label is the sigmoid of twice its margin.
    """

    normalize: bool | None

    # By features: prediction reads the rows of a document's features.
    classifiers_: LinearWeights = learned(part(LinearWeights, n_features="n_features", n_labels="n_labels"))
    seen_: Bools = learned(array("bool", "n_labels"))  # whether a label had a training document
    # Of the documents, for ``partial_fit``; None for models that cannot, or that were saved before there was any.
    squares_: Halves | None = learned(array("float16", "n_features", at_least=0, optional=True), default=None)

    def _scaled(self, X: Csr) -> Csr:
        return normalize_rows(X) if self.normalize else X

    def _learn_more(self, new: NewDocuments, options: WarmOptions, seed: int) -> None:
        """Go on learning: the classifiers are the children of one node, which complete documents reach."""
        X, n = self._scaled(new.X), new.n_labels
        seen = np.pad(self.seen_, (0, n - len(self.seen_)))
        fresh = ~seen & (np.bincount(new.Y.indices, minlength=n) > 0)
        bias = np.zeros(n, np.float32)
        bias[: len(self.seen_)] = self.classifiers_.bias
        if self.seen_.any():  # else the saved model is damaged
            bias[fresh] = self.classifiers_.bias[self.seen_].mean()  # how rare a label usually is
        trained = seen | fresh
        search_bias = np.where(fresh, np.inf, np.where(seen, bias, -np.inf)).astype(np.float32)
        signs = (new.Y - new.rejected @ sp.diags(REJECTED * trained.astype(np.float32))).tocsr()
        signs.eliminate_zeros()
        reached = sp.csr_matrix(new.are_complete.astype(np.float32)[:, None])
        root = Tree(np.zeros(1, np.int32), np.full(1, n, np.int32), np.full(1, -1, np.int32))
        weights = self.classifiers_.in_order().with_bias(bias)
        examples = Examples(X, signs, reached, search_bias)
        shares = np.ones(n, np.float32)
        self.classifiers_ = continue_training(weights, root, examples, self.squares_, shares, options, seed)
        self.squares_ = sums_of_squares(X, self.squares_)
        self.seen_ = trained

    def growing_views(self) -> Collection[str]:
        """Return the view of the documents."""
        return (self.view.name,)

    def insert_features(self, at: Mapping[str, Longs]) -> None:
        """Insert features without weights before these columns."""
        columns = at[self.view.name]
        self.classifiers_ = self.classifiers_.insert_features(columns)
        if self.squares_ is not None:
            self.squares_ = np.insert(self.squares_, columns, 0)

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
