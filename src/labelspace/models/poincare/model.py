"""Poincaré: documents and labels as points of one hyperbolic space, where rare labels lie farther from the center.

Gerald and Baskiotis, "Joint Label/Example Hyperbolic Representation for Extreme Classification" (2019).

1. Hold out 5 % of the documents, at most 2,000, unless validation documents are given (``validation_share``,
   ``max_validation``). Steps 2 to 7 train one learner; ``n_estimators`` learners are trained in parallel, each with
   other random numbers.
2. Draw the label points l from N(0, 1e-3), and the map theta from N(0, ``init_std``).
3. For each batch of documents, drop some features. The exponential map at the origin takes r = theta'x to the ball
   (``projection``: or the paper's p).
4. Train on all labels or, where they are many, on the labels of the batch and ``n_negatives`` labels drawn at random
   (``negatives``: or, as in the paper, on labels drawn for each document).
5. The loss: cross-entropy of exp(-alpha d) between each label of a document and the labels it does not have
   (``loss``: or, as in AnnexML, between the documents with the most similar labels and others).
6. A second loss, not in the paper: cross-entropy between the softmax of -d over the other documents of the batch and
   the cosine similarities of label sets, times ``similarity_weight``.
7. Update theta by row-wise Adagrad, and the label points by the same in their tangent spaces, along geodesics. The
   learning rates fall linearly to 0 (``optimizer``: or, as in the paper, SGD or Adam scaled by the inverse metric, with
   constant learning rates). With ``patience``, stop by the accuracy of the nearest labels (``stop_by``: or of votes).
8. Embed all training documents. The nearest ones of a new document vote for their labels with weights
   exp(-sharpness d), and the nearest labels vote for themselves (``route``). The weights are chosen on the held-out
   documents.

The preset ``paper`` is the method as published; ``annexml`` is what its Table 4 compares it with.

| symbol | meaning | in the code |
|---|---|---|
| f_theta | linear map of documents (M, n) | ``Net.theta``, ``theta_`` |
| l_i | point of label i | ``Net.label_points``, ``label_indexes_`` |
| r_j | vector of document j, before the projection | ``r`` |
| p | projection to the ball | ``Manifold.project`` |
| d | distance | ``Manifold.distances_inplace``, ``labelspace.index.PointIndex`` |
| alpha | sharpness of the softmax of distances | ``alpha`` |

Where we differ, and why: with p, documents pile up at the boundary; without it they also do so if alpha is small. There
only their direction matters for distances to labels, while distances between documents grow with every accidental
difference, so that neighbors say little. A larger alpha, or step 6, keeps documents where both distances are
informative. The paper counts votes; weighted votes are more accurate.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from labelspace import index
from labelspace.errors import ParameterError
from labelspace.estimator import learned, param
from labelspace.estimator.parameter_constraints import AllBut, anything, integer, mapping, one_of, optional, real
from labelspace.estimator.state_constraints import array, must, part, parts, plain, sparse
from labelspace.features.normalize import normalize_rows
from labelspace.kernels.quantize import Int8s
from labelspace.labels.document_neighbors import total_dcg
from labelspace.labels.statistics import spearman
from labelspace.models import parameters
from labelspace.models.base import Model
from labelspace.models.batched_prediction import overfetch
from labelspace.models.evidence import Evidence
from labelspace.models.fit_context import FitContext
from labelspace.models.poincare import training
from labelspace.models.poincare.explanations import VoteEvidence
from labelspace.models.poincare.geometry import Euclidean, Manifold, PoincareBall, Sphere
from labelspace.models.poincare.voting import Neighbors, VoteWeights, rank_by_votes, vote_weight_grid
from labelspace.training.epochs import VALIDATION_K
from labelspace.types import Bools, Csr, Floats, Ints, Progress, TopK

NEAREST_LABELS = 100  # that vote; the votes of farther labels are near 0
# What the paper says of both methods that it compares.
PUBLISHED: Mapping[str, Any] = {
    "n_estimators": 15,  # section 3.2, Table 3
    "similarity_weight": 0.0,  # section 2.4: one loss
    "input_dropout": 0.0,
    "epochs": 500,  # as many as it takes to stop: AnnexML's 10 are of steps on single documents
    "negatives": "per_document",  # section 2.4
    "max_validation": None,  # section 3.1: 5 %
    "patience": 25,  # section 3.1
    "stop_by": "votes",  # section 3.1: precision, which is that of votes
    "route": "vote",  # section 2.6
    "sharpness": 0.0,  # section 2.6: occurrences are counted
}


class Poincare(Model):
    """Labels and documents in one hyperbolic space; documents near a new one vote, and so do labels near it.

    >>> from labelspace.data.synthetic import planted
    >>> data = planted(n=600, d=400, l=50, seed=1)
    >>> train, test = data.rows(range(500)), data.rows(range(500, 600))
    >>> model = Poincare().fit(train.X, train.Y)
    >>> first = model.predict_topk(test.X, k=1).labels[:, 0]
    >>> bool(test.Y[np.arange(100), first].mean() > 0.5)
    True
    """

    name = "poincare"
    names_documents = True
    title = "Poincaré: labels and documents in one hyperbolic space (Gerald and Baskiotis, 2019)"
    choose_when = "documents have many labels, labels form a hierarchy, or you want to see them on a map"
    trains_in_tasks = True

    embedding_dim: int = param(50, integer(1), "Dimension of the space.")
    n_estimators: int = param(1, integer(1, at_most=100), "Number of learners, whose votes are averaged.")
    geometry: str = param("poincare", one_of("poincare", "euclidean", "cosine"), "Geometry of the space.")
    projection: str = param(
        "exponential", one_of("exponential", "clip"), "Map of documents to the ball: exponential, or the paper's clip."
    ).only_with(geometry="poincare")
    loss: str = param(
        "labels",
        one_of("labels", "neighbors"),
        "What is near a document: its labels, or as in AnnexML documents with similar labels.",
    )
    n_label_neighbors: int = param(10, integer(1), "Documents with the most similar labels that are near.").only_with(
        loss="neighbors"
    )
    alpha: float = param(16.0, real(above=0), "Sharpness of the softmax of distances.")
    similarity_weight: float = param(0.3, real(at_least=0), "Weight of the loss between documents with similar labels.")
    optimizer: str = param("adagrad", one_of(*training.LEARNING_RATES), "Optimizer.")
    learning_rate: float | None = param(
        None, real(above=0), "Learning rate of label points; none is the optimizer's."
    ).only_with(loss="labels")
    feature_learning_rate: float | None = param(
        None, real(above=0), "Learning rate of the document map; none is the optimizer's."
    )
    schedule: str | None = param(
        None, one_of("linear", "constant"), "Learning rates: linear to 0, or constant; none is the optimizer's."
    )
    init_std: float = param(1e-2, real(above=0), "Standard deviation of the document map at the start.")
    normalize: bool = parameters.normalize()
    input_dropout: float | None = parameters.input_dropout(None)
    epochs: int | None = parameters.epochs()
    batch_size: int | None = parameters.batch_size()
    all_labels: bool | None = parameters.all_labels().only_with(negatives="shared")
    negatives: str = param(
        "shared",
        one_of("shared", "per_document"),
        "Sampled negatives: shared by a batch and weighted, or drawn for each document as in the paper.",
    )
    n_negatives: int = param(1024, integer(1), "Negatives sampled per batch or per document.").only_with(
        **parameters.SAMPLED
    )
    validation_share: float = param(
        0.05, real(above=0, below=1), "Share of documents held out, where no validation documents are given."
    )
    max_validation: int | None = param(
        2000, optional(integer(1)), "Maximum number of held-out or validation documents; none takes all."
    )
    patience: int | None = parameters.patience()
    stop_by: str = param(
        "labels", one_of("labels", "votes"), "Accuracy by epoch, to stop by: of the nearest labels, or of votes."
    )
    route: str = param("both", one_of("both", "vote", "labels"), "Who votes: the nearest documents, labels, or both.")
    n_neighbors: int | None = param(None, integer(1), "Nearest documents that vote; none chooses by validation.")
    sharpness: float | None = param(None, real(at_least=0), "Decay of votes with distance; none chooses by validation.")
    label_weight: float | None = param(
        None, real(at_least=0), "Weight of the votes of labels, relative to documents; none chooses by validation."
    ).only_with(route="both")
    n_clusters: int | str | None = param(
        None, training.CLUSTERS, "Clusters of the document index; none searches all documents, auto chooses."
    )
    probes: int | None = param(
        None, integer(1), "Clusters that are searched; none is the square root of their number, rounded up."
    ).only_with(n_clusters=AllBut(None))
    random_state: int = parameters.random_state()

    presets = {
        "paper": {  # Gerald and Baskiotis (2019); what they do not say is as by default
            **PUBLISHED,
            "projection": "clip",  # section 2.3, p
            "optimizer": "adam",  # sections 2.5 and 3.1, with constant learning rates
            "init_std": 1e-4,  # section 3.1; label points have 1e-3 here too
            "n_negatives": 50,  # section 2.4; how many is not said
            "n_clusters": "auto",  # section 2.6: N / 3000 at random; how many are read is not said
            "probes": 1,
        },
        "annexml": {  # AnnexML (Tagami, 2017) without partitions: the Euclidean column of Table 4
            **PUBLISHED,
            "geometry": "cosine",
            "loss": "neighbors",  # section 2.4, the first loss
            "alpha": 10.0,  # AnnexML's gamma
            "feature_learning_rate": 0.1,  # AnnexML's eta0
            "schedule": "constant",
            "n_negatives": 10,  # as many as positives
        },
    }

    theta_: Int8s = learned(array("int8", "n_learners", "n_features", "dim"))
    theta_scales_: Floats = learned(array("float32", "n_learners", "n_features"))
    document_indexes_: list[index.PointIndex] = learned(parts(index.PointIndex, "n_learners"))  # ids are rows of Y_
    label_indexes_: list[index.PointIndex] = learned(parts(index.PointIndex, "n_learners"))  # labels seen in training
    Y_: Csr = learned(sparse("float32", "n_documents", "n_labels"))
    vote_weights_: VoteWeights = learned(part(VoteWeights))
    report_: dict[str, Any] = learned(plain(mapping(anything())))

    def check_state(self) -> None:
        """Check that the indexes contain points of the documents and of the labels."""
        must(len(self.theta_) > 0, "learners")
        n_documents, geometry = self.Y_.shape[0], self.manifold.geometry
        for points, n in ((self.document_indexes_, n_documents), (self.label_indexes_, self.n_labels_)):
            for at in points:
                must(at.geometry == geometry and at.dimension == self.theta_.shape[2], "indexes of its points")
                must(int(at.ids.max(initial=-1)) < n, f"indexes of ids below {n}")
                is_empty = self.loss == "neighbors" and points is self.label_indexes_
                must((len(at) == 0) == is_empty, "label points as its loss learns them, and all documents")

    @property
    def manifold(self) -> Manifold:
        """The space that points are learned in."""
        if self.geometry == "poincare":
            return PoincareBall(self.projection == "exponential")
        return Euclidean() if self.geometry == "euclidean" else Sphere()

    def scaled(self, X: Csr) -> Csr:
        """Return the documents as they are trained on."""
        return normalize_rows(X) if self.normalize else X

    def check_params(self) -> None:
        """Check every parameter, and that there is what loss=neighbors needs."""
        super().check_params()
        for key, needed in {"negatives": "per_document", "route": "vote", "stop_by": "votes"}.items():
            if self.loss == "neighbors" and getattr(self, key) != needed:
                raise ParameterError(
                    f"{key} of {self.name} must be {needed} with loss=neighbors, but is {getattr(self, key)}; set it so"
                )

    def _fit(self, X: Csr, Y: Csr, context: FitContext) -> None:
        X = self.scaled(X)
        train, held_out, held_out_rows = training.split_documents(X, Y, self, context)  # step 1
        data = training.TrainingData(X[train], Y[train], held_out, self)
        total = self.n_estimators * data.epochs * data.n_batches

        def progress(done: int) -> None:
            context.progress("batches", min(done, total), total)

        with threadpool_limits(1, user_api="blas"):
            shared = (data, self)  # steps 2 to 7
            learners = context.train_learners(training.train_learner, shared, self.n_estimators, progress)
        self.Y_ = Y.copy()  # the caller may change theirs
        thetas, scales, label_points, validation_scores = zip(*learners, strict=True)
        self.theta_, self.theta_scales_ = np.stack(thetas), np.stack(scales)
        label_ids, geometry = data.label_ids[: len(label_points[0])], self.manifold.geometry  # none, or all
        clusters = self.n_clusters if self.n_clusters in (None, "auto") else int(self.n_clusters)
        searched = (clusters, None if self.probes is None else int(self.probes), int(self.random_state))
        self.label_indexes_, self.document_indexes_ = [], []
        for number, points in enumerate(label_points):  # step 8
            queries = None if held_out is None else self._embed(held_out[0], number)  # what searches are chosen for
            embedded = self._embed(X[train], number)
            self.label_indexes_.append(index.PointIndex(points, label_ids, geometry, queries=queries))
            self.document_indexes_.append(index.PointIndex(embedded, train, geometry, *searched, queries=queries))
        self.vote_weights_ = self._choose_vote_weights(held_out, context.progress)
        if len(held_out_rows):
            for number, documents in enumerate(self.document_indexes_):
                documents.add(held_out_rows, self._embed(X[held_out_rows], number))
        self.report_ = self._training_report(validation_scores)

    def _embed(self, X: Csr, number: int) -> Floats:
        """Return the points of documents, scaled as in training, by one learner. Shape (n, embedding_dim)."""
        return training.embed_documents(X, self.theta_[number], self.theta_scales_[number], self.manifold)

    def _choose_vote_weights(self, held_out: tuple[Csr, Csr] | None, progress: Progress) -> VoteWeights:
        """Return the weights as given, or those of highest DCG on held-out documents, if any, or the defaults."""
        grid = vote_weight_grid(self)
        if held_out is None or len(grid) == 1:
            return grid[0]
        neighbors = self._nearest(held_out[0], max(weights.n_neighbors for weights in grid), VALIDATION_K)
        k = min(VALIDATION_K, self.n_labels_)
        gains = []
        for weights in grid:
            gains.append(total_dcg(self._rank(neighbors, weights, k), held_out[1]))
            progress("choosing vote weights", len(gains), len(grid))
        return grid[int(np.argmax(gains))]

    def _nearest(self, X: Csr, n_neighbors: int, k: int) -> list[Neighbors]:
        """Return the nearest documents and labels by each learner, as far as the route uses them."""
        neighbors = []
        for number, (documents, labels) in enumerate(zip(self.document_indexes_, self.label_indexes_, strict=True)):
            points = self._embed(X, number)
            nearest_documents = nearest_labels = TopK.empty(len(points), 0)
            if self.route != "labels":
                nearest_documents = documents.search(points, min(n_neighbors, self.Y_.shape[0]))
            if self.route != "vote":
                nearest_labels = labels.search(points, min(max(NEAREST_LABELS, k), len(labels)))
            neighbors.append((nearest_documents, nearest_labels))
        return neighbors

    def _rank(self, neighbors: list[Neighbors], weights: VoteWeights, k: int) -> TopK:
        return rank_by_votes(neighbors, weights, self.route, self.alpha, self.Y_, k)

    def _predict(self, X: Csr, k: int, allowed: Bools | None = None) -> TopK:
        if allowed is not None:
            return overfetch(self._predict, X, k, allowed)
        neighbors = self._nearest(self.scaled(X), self.vote_weights_.n_neighbors, k)
        return self._rank(neighbors, self.vote_weights_, k)

    def explain(self, X: Csr, labels: Ints) -> list[Evidence]:
        """Explain the scores of some labels by the documents that voted, and by the words that bring them near."""
        X = self.scaled(X)
        neighbors = self._nearest(X, self.vote_weights_.n_neighbors, NEAREST_LABELS)
        votes = VoteEvidence(self, X, neighbors, self.view.name)
        return [votes.evidence(label) for label in labels.tolist()]

    def label_points(self) -> Floats:
        """Return the label points in the ball by the first learner; NaN for a label without training documents."""
        self.check_fitted()
        for key, needed in (("geometry", "poincare"), ("loss", "labels")):
            if getattr(self, key) != needed:
                rule = f"a map needs a point in the Poincaré ball for each label, but {key} is {getattr(self, key)}"
                raise ParameterError(f"{rule}; train with {key}={needed}")
        index = self.label_indexes_[0]
        points = np.full((self.n_labels_, index.dimension), np.nan, np.float32)
        points[index.ids] = index.points
        return points

    def _training_report(self, validation_scores: Sequence[list[float]]) -> dict[str, Any]:
        counts, labels = np.bincount(self.Y_.indices, minlength=self.n_labels_), self.label_indexes_
        norms = [np.linalg.norm(points.points.astype(np.float64), axis=1) for points in labels]
        correlations = [spearman(norm, counts[points.ids]) for norm, points in zip(norms, labels, strict=True)]
        undefined = self.geometry == "cosine" or np.isnan(correlations[0])  # all norms are 1, but for rounding
        label_norms = np.linalg.norm(labels[0].points, axis=1)
        document_norms = np.linalg.norm(self.document_indexes_[0].points.astype(np.float64), axis=1)
        return {
            "norm_against_frequency": None if undefined else round(float(np.mean(correlations)), 4),
            "mean_norm_of_labels": round(float(label_norms.mean()), 4) if len(label_norms) else None,
            "mean_norm_of_documents": round(float(document_norms.mean()), 4),
            "accuracy_by_epoch": [[round(score, 5) for score in scores] for scores in validation_scores],
        }

    def report(self) -> dict[str, Any]:
        """Return Spearman's correlation of label norms with frequencies, mean norms, scores by epoch, vote weights."""
        self.check_fitted()
        n_neighbors, sharpness, label_weight = self.vote_weights_
        return {**self.report_, "neighbors": n_neighbors, "sharpness": sharpness, "label_weight": label_weight}
