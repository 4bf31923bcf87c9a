"""SLEEC: embeddings in which documents with similar labels are near each other; near documents vote.

Bhatia, Jain, Kar, Varma and Jain, "Sparse Local Embeddings for Extreme Multi-label Classification" (NIPS 2015).

1. Cluster the documents by k-means of their unit feature vectors. Steps 2 to 5 are made for each cluster by
   itself, and ``n_estimators`` learners make all steps, each with other random numbers.
2. Omega: for each document the ``n_label_neighbors`` documents with the largest products of unit label vectors,
   G_ij = y_i.y_j for (i, j) in Omega.
3. Z, V minimize |G - Z V'|^2 over Omega: from the truncated SVD of G, by alternating gradient steps.
4. Regressors W minimize |W|^2 / 2 + C |Z - X W|^2 + C l1 |X W|_1, by ridge regression, or ADMM if l1 is above 0.
   Set the smallest weights to zero (``weight_sparsity``).
5. The embeddings of the training documents are X W, not Z: they err in the same way as embeddings of new documents.
   Set the smallest numbers of each dimension to zero (``embedding_sparsity``).
6. A new document x goes to the cluster whose center has the largest product with x. There the ``n_neighbors`` training
   documents nearest to x W vote for their labels; the votes of all learners are added.

| the paper's symbol | here |
|---|---|
| P_Omega(Y'Y) | ``observed_products`` |
| Z | ``label_embeddings`` |
| V, the regressors | W, ``Learner.weights`` |
| lambda, mu | 1 / 2C, ``l1`` |
| L-hat, n-bar, k | ``embedding_dim``, ``n_label_neighbors``, ``n_neighbors`` |

Where we differ, and why: a vote has the weight exp(-sharpness d^2 / d_m^2), where d_m is the distance of the last
neighbor that votes (``sharpness`` 0 is the paper's count). Omega has 100 neighbors, and step 3 stops after 10 passes:
more of either cost time and gained nothing on Bibtex and Delicious. l1 is 0: at the authors' settings its threshold
is larger than any embedding, so that it changes next to nothing. Weights and embeddings are stored as int8, which
needs less memory than a sparse matrix with three quarters of the weights gone.
"""

import numpy as np
from threadpoolctl import threadpool_limits

from labelspace.estimator import learned, param
from labelspace.estimator.parameter_constraints import AllBut, integer, real
from labelspace.estimator.state_constraints import must, parts, sparse
from labelspace.features.normalize import normalize_rows
from labelspace.labels.document_neighbors import count_votes
from labelspace.labels.masks import labels_among
from labelspace.models import parameters
from labelspace.models.base import Model
from labelspace.models.fit_context import FitContext
from labelspace.models.sleec.learner import Learner, train_learner
from labelspace.types import Bools, Csr, Floats, TopK

CLUSTER_SIZE = 50_000  # fewest documents per cluster by default
CLUSTERED_LEARNERS = 5  # by default, if there are clusters: learners cut the documents differently


class Sleec(Model):
    """Embeddings that bring documents with similar labels near each other; the nearest training documents vote.

    >>> from labelspace.data.synthetic import planted
    >>> data = planted(n=600, d=400, l=50, seed=1)
    >>> train, test = data.rows(range(500)), data.rows(range(500, 600))
    >>> model = Sleec().fit(train.X, train.Y)
    >>> first = model.predict_topk(test.X, k=1).labels[:, 0]
    >>> bool(test.Y[np.arange(100), first].mean() > 0.5)
    True
    """

    name = "sleec"
    title = "SLEEC: sparse local embeddings (Bhatia et al., 2015)"
    choose_when = "documents have many labels that occur together, and training must be quick"
    trains_in_tasks = True
    presets = {
        "paper": {  # the authors' settings for Bibtex
            "n_label_neighbors": 250,
            "n_neighbors": 25,
            "sharpness": 0.0,
            "l1": 0.01,
            "max_iter": 200,
            "weight_sparsity": 0.01,
            "embedding_sparsity": 0.01,
        }
    }

    n_estimators: int | None = param(
        None, integer(1, at_most=100), "Number of learners; none takes 1, or 5 if there are clusters."
    )
    n_clusters: int | None = param(
        None, integer(1), "Clusters of documents, each with its own embedding; none takes one per 50,000 documents."
    )
    embedding_dim: int = param(100, integer(1), "Dimension of the embeddings.")
    n_label_neighbors: int = param(100, integer(1), "Documents with the most similar labels that are to be near.")
    n_neighbors: int = param(50, integer(1), "Nearest training documents that vote, for each learner.")
    sharpness: float = param(4.0, real(at_least=0), "Decay of votes with squared distance; 0 counts all the same.")
    C: float = param(0.2, real(above=0), "Inverse regularization strength of the regressors.")
    l1: float = param(
        0.0, real(at_least=0), "Weight of the sum of the sizes of all embeddings, which makes them sparse."
    )
    rho: float = param(0.001, real(above=0), "Penalty of ADMM.").only_with(l1=AllBut(0))
    admm_iter: int = param(2, integer(1), "Iterations of ADMM.").only_with(l1=AllBut(0))
    weight_sparsity: float = param(0.0, parameters.FRACTION, "Share of the weights, the smallest, set to zero.")
    embedding_sparsity: float = param(
        0.0, parameters.FRACTION, "Share of each dimension of the training documents, the smallest, set to zero."
    )
    max_iter: int = param(10, integer(0), "Maximum number of passes of the alternating gradient.")
    tol: float = param(1e-3, real(at_least=0), "Stop when a pass lowers the squared error by less than this share.")
    normalize: bool = parameters.normalize()
    random_state: int = parameters.random_state()

    learners_: list[Learner] = learned(parts(Learner, "n_learners", n_documents="n_documents", n_features="n_features"))
    Y_: Csr = learned(sparse("float32", "n_documents", "n_labels"))

    def check_state(self) -> None:
        """Check that there are learners and documents."""
        must(len(self.learners_) > 0 and self.Y_.shape[0] > 0, "learners and documents")

    def _fit(self, X: Csr, Y: Csr, context: FitContext) -> None:
        X = normalize_rows(X) if self.normalize else X
        n_clusters = min(self.n_clusters or max(1, X.shape[0] // CLUSTER_SIZE), X.shape[0])
        n_estimators = self.n_estimators or (1 if n_clusters == 1 else CLUSTERED_LEARNERS)
        total = n_estimators * n_clusters * (self.max_iter + 1)
        with threadpool_limits(1, user_api="blas"):  # the sums of BLAS depend on the number of threads
            data = (X, Y, self, n_clusters)
            self.learners_ = context.train_learners(
                train_learner, data, n_estimators, lambda done: context.progress("passes", done, total)
            )
        self.Y_ = Y.copy()  # the caller may change the original

    def _predict(self, X: Csr, k: int, allowed: Bools | None = None) -> TopK:
        Y = self.Y_ if allowed is None else self.mask_cache.get(allowed, lambda: labels_among(self.Y_, allowed))
        X = normalize_rows(X) if self.normalize else X
        m = min(self.n_neighbors, self.Y_.shape[0])
        nearest = [learner.nearest(X, m) for learner in self.learners_]  # step 6
        documents = np.concatenate([found.labels for found in nearest], axis=1)
        weights: Floats = np.concatenate([vote_weights(found.scores, self.sharpness) for found in nearest], axis=1)
        weights /= np.float32(len(nearest))
        return count_votes(documents, weights, Y, k)


def vote_weights(scores: Floats, sharpness: float) -> Floats:
    """Return exp(-sharpness d^2 / d_m^2), divided by the sum; scores are -d^2 (n, m), best first, -inf for no neighbor.

    >>> vote_weights(np.array([[0.0, -1.0, -np.inf]], np.float32), sharpness=0).tolist()
    [[0.5, 0.5, 0.0]]
    """
    found = np.isfinite(scores)
    squares = np.where(found, np.maximum(-scores, 0), np.float32(0))  # rounding may make a square negative
    last = np.maximum(squares.max(axis=1, keepdims=True), np.float32(1e-30))
    weights: Floats = np.where(found, np.exp(np.float32(-sharpness) * (squares / last)), np.float32(0))
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), np.float32(1e-30))
    return weights
