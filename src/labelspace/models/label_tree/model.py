"""Label trees: Parabel (Prabhu et al., WWW 2018), Bonsai (Khandagale et al., 2020) and PLT as settings of one trainer.

1. Where the labels will be one flat level, choose C, and single words or also pairs of words, if a user does not: see
   ``training/model_selection.py``.
2. Embed each label by the sum of its documents' features (PIFA), and where ``label_text`` is not 0 by its own text.
   Where labels are many, only the largest features of each count.
3. Arrange the labels in a tree: halve them by balanced 2-means until a part has at most ``max_leaf_size`` labels, and
   keep every depth that makes ``branching_factor`` children per node (Parabel); or split them by k-means, ``max_depth``
   times at most (Bonsai); or take the hierarchy of the labels. The labels are the leaves below the last nodes.
4. A document reaches a node if it has a label below it. For every node, train one linear classifier per child on the
   documents that reach the node: those that reach the child are positive, the others negative. With
   ``hard_negatives``, documents that a beam of that size brings to the node by mistake are negatives too; levels are
   then trained from the top down.
5. Set weights below ``threshold`` in size to zero, and round the others to 8 bits, with a scale per feature.
6. To tag a document, search from the root with a beam of ``beam_size`` nodes per level; a step multiplies the score by
   exp(-gap ** power), where the gap is max(0, 1 - margin), smoothed, or with the logistic loss (PLT) by
   1 / (1 + exp(-margin)). Several trees are averaged.

Where we differ, and why: all nodes are columns of one matrix, the children of a node adjacent, so that the search reads
one contiguous range per feature and needs no index of its own. The papers' max(0, 1 - margin) makes all margins above 1
equal; the smooth log(1 + exp(2 - 2 margin)) / 2 ranks them too. Up to ``FLAT_LABELS`` labels a single tree is one flat
level by default: it costs little there and no document takes a wrong branch. With ``partial_fit``, weights go on from
where they are (``training.warm_start``), and new labels become leaves (``growth``).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from labelspace.errors import DataError
from labelspace.estimator import learned, param
from labelspace.estimator.parameter_constraints import boolean, integer, mapping, one_of, real
from labelspace.estimator.state_constraints import IDS, are_sorted_spans, array, ids, must, offsets, plain
from labelspace.features.normalize import normalize_rows
from labelspace.features.sparse_matrix import scaled_values
from labelspace.features.views import BIGRAMS, GIVEN, WORDS, View, Views
from labelspace.kernels.beam_search import LinearTrees, Tree, advance_beams
from labelspace.kernels.csr_arrays import CsrArrays
from labelspace.kernels.dual_cd import SolverOptions
from labelspace.kernels.quantize import Int8s
from labelspace.kernels.threads import run_blocks
from labelspace.kernels.tree_classifiers import ClassifierOptions
from labelspace.labels.clustering import balanced_levels, kmeans_tree, pifa_embeddings
from labelspace.labels.tree import PartitionTree, TreeNodes, check_forest, frequent_first, hierarchy_tree
from labelspace.models import parameters
from labelspace.models.base import Model
from labelspace.models.evidence import Evidence
from labelspace.models.fit_context import FitContext
from labelspace.models.label_tree.growth import GrowingTrees
from labelspace.models.label_tree.node_training import NO_DOCUMENTS, NodeTraining, TrainedNodes, train_parts
from labelspace.models.label_tree.search import ROW_BLOCK, AllowedTrees, path_evidence, search_trees
from labelspace.models.label_tree.weight_parts import WeightParts
from labelspace.models.partial_fit import NewDocuments
from labelspace.training import model_selection
from labelspace.training.linear_weights import LinearWeights
from labelspace.training.warm_start import Halves, WarmOptions, continue_training, sums_of_squares
from labelspace.types import Bools, Csr, Dataset, Floats, Ints, Longs, TopK

FLAT_LABELS = 1000  # up to this number of labels one flat level is the default: no document takes a wrong branch
FLAT_C = 0.35  # C of a flat level, where the choice between it and ``TREE_C`` is possible
TREE_C = 1.0  # C of a tree
LEAF_SIZE = 100  # labels below a last node of a tree: more cost time, fewer cost accuracy
MANY_LABELS = 2**16  # above, trees are grown on fewer features and first centers, to save memory and time
CENTROID_FEATURES = 512  # features that a label keeps when labels are many
CLUSTER_SAMPLE = 2**12  # labels that the first centers are computed from when labels are many
NGRAMS = {WORDS.name: 1, BIGRAMS.name: 2}  # the views that there is a choice between
MAX_CHOICE_DOCUMENTS = 20_000  # above, a sample says too little of pairs of words, which need many documents
TRIAL_TOL = 1.0  # tolerance of trainings that are only compared: loose, since their order is all that counts
BIAS = 1.0  # value of the bias feature: with a larger one the biases are regularized less
CLUSTERED = {"tree": ("balanced", "kmeans")}

Task: TypeAlias = tuple[int, int, Ints]
"""A node to train: the number of its tree, its own, and hard negatives besides the documents that reach it."""


class LabelTree(Model):
    """Linear classifiers along a tree of labels, searched with a beam.

    >>> from labelspace.data.synthetic import planted
    >>> data = planted(n=600, d=400, l=50, seed=1)
    >>> train, test = data.rows(range(500)), data.rows(range(500, 600))
    >>> model = LabelTree(max_leaf_size=10).fit(train.X, train.Y)
    >>> first = model.predict_topk(test.X, k=1).labels[:, 0]
    >>> bool(test.Y[np.arange(100), first].mean() > 0.5)
    True
    """

    name = "label_tree"
    trains_from_cache = True
    weighs_documents = True
    title = "Parabel, Bonsai, PLT: linear classifiers along a tree of labels"
    choose_when = "labels are thousands to millions"
    trains_in_tasks = True
    view = BIGRAMS
    tree: str = param("balanced", one_of("balanced", "kmeans", "hierarchy"), "How labels are clustered.")
    branching_factor: int = param(16, integer(2), "Children per node.").only_with(**CLUSTERED)
    max_leaf_size: int | None = param(None, integer(2), "Maximum labels below a last node; none chooses.").only_with(
        **CLUSTERED
    )
    max_depth: int = param(3, integer(1), "Maximum depth of a k-means tree.").only_with(tree="kmeans")
    label_text: float = parameters.label_text(0.0).only_with(**CLUSTERED)
    n_estimators: int = param(1, integer(1), "Number of trees, averaged.")
    loss: str = param("squared_hinge", one_of("squared_hinge", "logistic"), "Loss of the linear classifiers.")
    C: float | None = param(None, real(above=0), "Inverse regularization strength; none chooses.")
    tune: bool = param(
        True, boolean(), "Choose C, and the n-grams of texts, on held-out documents where labels are one flat level."
    )
    hard_negatives: int = param(
        0, integer(0), "Beam size that brings hard negatives to a node in training; 0 uses none."
    )
    threshold: float = parameters.threshold(0.1)
    tol: float = parameters.tol()
    max_iter: int = parameters.max_iter(20)
    beam_size: int = parameters.beam_size(10)
    power: float = param(3.0, real(above=0), "Exponent of the margin gap in a step's score.").only_with(
        loss="squared_hinge"
    )
    normalize: bool = parameters.normalize()
    random_state: int = parameters.random_state()

    # The weights: feature f has scales_[f] * values_[starts_[f] : starts_[f + 1]] for those nodes_.
    values_: Int8s = learned(array("int8", "n_weights"))
    scales_: Floats = learned(array("float32", "n_features"))
    nodes_: Ints = learned(ids("n_weights", below="n_nodes", dtypes=IDS))
    starts_: Ints = learned(offsets("n_features", into="n_weights"))
    bias_: Floats = learned(array("float32", "n_nodes"))
    # The children of node i are first_child_[i] to last_child_[i] - 1.
    first_child_: Ints = learned(ids("n_nodes", below="n_nodes + 1"))
    last_child_: Ints = learned(ids("n_nodes", below="n_nodes + 1"))
    label_: Ints = learned(ids("n_nodes", below="n_labels", at_least=-1))  # of a leaf, -1 for an inner node
    roots_: Ints = learned(ids("n_trees", below="n_nodes"))
    chosen_: dict[str, float] = learned(plain(mapping(real())), default={})  # what was chosen on held-out documents
    # Of the documents, for ``partial_fit``; None for models that were saved before there was any.
    squares_: Halves | None = learned(array("float16", "n_features", at_least=0, optional=True), default=None)

    def sizes(self) -> dict[str, int]:
        """Return the number of labels, and of columns of the one view that was chosen."""
        return {"n_labels": self.n_labels_, "n_features": self.n_features_}

    def check_state(self) -> None:
        """Check that there is one view, that children form trees, and that the nodes of each feature are in order."""
        must(len(self.widths_) == 1 and self.widths_.keys() <= {*NGRAMS, GIVEN}, "one view, of words or bigrams")
        check_forest(self.first_child_, self.last_child_, self.roots_)
        must(are_sorted_spans(self.nodes_, self.starts_), "the nodes of each feature in order")

    def views(self, documents: Dataset) -> tuple[View, ...]:
        """Return words and bigrams if there is a choice between them, else bigrams."""
        few, many = model_selection.MIN_DOCUMENTS, MAX_CHOICE_DOCUMENTS
        is_choice = self.tune and not self.label_text and few <= documents.Y.shape[0] <= many
        return (WORDS, BIGRAMS) if is_choice and self._is_flat(documents.Y) else (self.view,)

    def read(self, views: Views) -> Views:
        """Return all views: the training chooses one of them."""
        return views

    def report(self) -> dict[str, Any]:
        """Return what was chosen on held-out documents, by the names that ``--set`` takes."""
        return dict(self.chosen_)

    def _fit(self, views: Views, Y: Csr, context: FitContext) -> None:
        view, C = self._choose(views, Y, context)  # step 1
        self.widths_ = {view: views.width(view)}
        X = normalize_rows(views[view]) if self.normalize else views[view]
        seen = np.flatnonzero(np.bincount(Y.indices, minlength=Y.shape[1])).astype(np.int32)
        documents = Y[:, seen].tocsc()
        Z = self._label_embeddings(X, documents, seen, context)  # step 2
        frequency = np.diff(documents.indptr)
        built = (self._build_tree(Z, seen, context, number) for number in range(self.n_estimators))
        forest = [PartitionTree(frequent_first(order, levels, frequency), levels) for order, levels in built]  # step 3
        columns = [documents[:, tree.order] for tree in forest]
        del Z, built, documents  # large, and not needed to train
        offsets = np.cumsum([0, *map(len, forest)]).astype(np.int32)
        self.roots_ = offsets[:-1]
        self.first_child_ = np.concatenate([tree.first_child + at for tree, at in zip(forest, offsets, strict=False)])
        self.last_child_ = np.concatenate([tree.last_child + at for tree, at in zip(forest, offsets, strict=False)])
        self.label_ = np.concatenate([np.where(tree.label < 0, -1, seen[tree.label]) for tree in forest])
        self.squares_ = sums_of_squares(X)
        with WeightParts() as parts:
            self._train_nodes(X, columns, forest, C, context, parts)  # steps 4 and 5

    def partial_fit(self, new: NewDocuments) -> Sequence[str]:
        """Go on learning from further documents, by a warm start: see ``growth`` and ``training.warm_start``."""
        X = self._documents(new.X)
        trees = GrowingTrees(self._linear_weights, Tree(self.first_child_, self.last_child_, self.label_), self.roots_)
        places = trees.places(X, new.Y)
        trees = trees.with_leaves(places)
        fresh = np.zeros(new.n_labels, bool)
        fresh[[place.label for place in places]] = True
        flat = bool((trees.parents[trees.tree.label >= 0] == trees.roots[0]).all())
        options = WarmOptions(self._solver(flat), float(self.threshold), logistic=self.loss == "logistic")
        examples = trees.examples(X, new, fresh)
        learning = (examples, self.squares_, trees.shares(), options, self.random_state)
        learned_weights = continue_training(trees.weights, trees.tree, *learning)
        self._take(learned_weights)
        self.squares_ = sums_of_squares(X, self.squares_)
        self.first_child_, self.last_child_, self.label_ = trees.tree
        self.roots_ = trees.roots
        return ()

    def growing_views(self) -> Collection[str]:
        """Return the view that was chosen, unless the features came ready-made."""
        return self.widths_.keys() & NGRAMS.keys()

    def insert_features(self, at: Mapping[str, Longs]) -> None:
        """Insert features without weights before these columns."""
        for columns in at.values():
            self._take(self._linear_weights.insert_features(columns))
            if self.squares_ is not None:
                self.squares_ = np.insert(self.squares_, columns, 0)

    @property
    def _linear_weights(self) -> LinearWeights:
        return LinearWeights(self.values_, self.nodes_, self.starts_, self.scales_, self.bias_)

    def _take(self, weights: LinearWeights) -> None:
        self.values_, self.scales_ = weights.values, weights.scales
        self.nodes_, self.starts_ = weights.labels, weights.starts
        self.bias_ = weights.bias

    def _solver(self, flat: bool, C: float | None = None) -> SolverOptions:
        """Return the options of the solver, where C is given, or was chosen, or depends on the shape of the trees."""
        C = C or self.C or self.chosen_.get("C") or (FLAT_C if flat else TREE_C)
        return SolverOptions(float(C), float(self.tol), self.max_iter)

    def _choose(self, views: Views, Y: Csr, context: FitContext) -> tuple[str, float | None]:
        """Return the view and C; None leaves C to the shape of the tree."""
        self.chosen_ = {}
        tables = self._candidates(views)
        view, C = list(tables)[-1], self.C
        Cs = [FLAT_C, TREE_C] if C is None and self.loss == "squared_hinge" else [C or FLAT_C]
        if not self.tune or not self._is_flat(Y) or len(tables) * len(Cs) == 1:
            return view, C
        choice = model_selection.choose(tables, Y, Cs, self._trial, self.random_state, context.progress)
        if choice is not None and len(tables) > 1:
            view = choice.view
            self.chosen_["features.ngrams"] = NGRAMS[view]
        if choice is not None and len(Cs) > 1:
            C = choice.C
            self.chosen_["C"] = C
        return view, C

    def _candidates(self, views: Views) -> dict[str, Csr]:
        """Return the views to choose from, the default last; only the default if all have the same features."""
        present = [name for name in (*NGRAMS, GIVEN) if name in views.tables] or [self.view.name]
        tables: dict[str, Csr] = {name: views[name] for name in present}
        alike = len({(table.shape, table.nnz) for table in tables.values()}) == 1  # as where a user set ngrams
        return {present[-1]: tables[present[-1]]} if alike or self.label_text else tables

    def _is_flat(self, Y: Csr) -> bool:
        """Return whether the labels of the documents will be one flat level."""
        n_labels = len(np.unique(Y.indices))
        return self.tree != "hierarchy" and n_labels <= self._max_leaf_size(n_labels)

    def _trial(self, X: Csr, Y: Csr, held_out: Csr, C: float, k: int) -> TopK:
        """Return the best labels of the held-out documents by a flat level that is trained on X."""
        flat = {"tree": "balanced", "max_leaf_size": None, "n_estimators": 1, "hard_negatives": 0, "label_text": 0.0}
        loose = {"C": C, "tol": max(self.tol, TRIAL_TOL), "tune": False}
        trial = LabelTree().set_params(**{**self.get_params(), **flat, **loose})
        trial.fit_checked(Views({GIVEN: X}), Y, FitContext())
        return trial._predict(Views({GIVEN: held_out}), k)

    def _label_embeddings(self, X: Csr, documents: sp.csc_matrix, seen: Ints, context: FitContext) -> Csr:
        if self.tree == "hierarchy":
            return sp.csr_matrix((len(seen), 0), dtype=np.float32)
        if context.sample_weight is not None:
            documents = documents.copy()
            documents.data *= context.sample_weight[documents.indices]
        Z = pifa_embeddings(X, documents, None if len(seen) <= MANY_LABELS else CENTROID_FEATURES)
        if not self.label_text:
            return Z
        if context.label_features is None:
            rule = f"label_text={self.label_text} needs features of the labels' texts, but there are none"
            remedy = "train on texts with named labels, give fit(..., label_features=...), or set label_text=0"
            raise DataError(f"{rule}; {remedy}")
        return normalize_rows((Z + self.label_text * normalize_rows(context.label_features[seen])).tocsr())

    def _build_tree(self, Z: Csr, seen: Ints, context: FitContext, number: int) -> tuple[Ints, list[Longs]]:
        """Return the labels in the order of the leaves, and where the parts of each depth start."""
        seed = self.random_state * 1009 + number
        max_leaf = self._max_leaf_size(len(seen))
        if self.tree == "kmeans":
            return kmeans_tree(Z, self.branching_factor, max_leaf, self.max_depth, seed)
        if self.tree == "hierarchy":
            if context.labels is None or context.labels.hierarchy is None:
                raise DataError(
                    "tree='hierarchy' needs a hierarchy of the labels, but there is none; put a hierarchy.tsv next to "
                    "the data, give labels=LabelSpace(..., hierarchy=...), or set tree='balanced'"
                )
            return hierarchy_tree(context.labels.hierarchy, seen)
        sample = None if len(seen) <= MANY_LABELS else CLUSTER_SAMPLE
        return balanced_levels(Z, self.branching_factor, max_leaf, seed, sample)

    def _max_leaf_size(self, n_labels: int) -> int:
        """Return the largest number of labels below a last node, if ``n_labels`` have documents."""
        flat = n_labels <= FLAT_LABELS and self.tree == "balanced" and self.n_estimators == 1
        return self.max_leaf_size or (FLAT_LABELS if flat else LEAF_SIZE)

    def _train_nodes(
        self,
        X: Csr,
        columns: list[sp.csc_matrix],
        forest: list[PartitionTree],
        C: float | None,
        context: FitContext,
        trained: WeightParts,
    ) -> None:
        """Train the classifiers of all nodes of all trees; ``columns`` are the documents of each tree's labels."""
        flat = all(tree.level[-1] == 1 for tree in forest)
        weights = context.document_weights(X.shape[0])
        solver = self._solver(flat, C)
        options = ClassifierOptions(self.loss == "logistic", BIAS, solver, float(self.threshold), weights)
        training = NodeTraining(X, columns, forest, self.roots_, options, self.random_state)
        nodes = TrainedNodes(len(self.label_), trained)
        done, total = 0, sum(len(training.parts_of(n, node)) for n, tree in enumerate(forest) for node in tree.inner)
        for tasks in self._stages(X, forest):
            parts = [part for task in tasks for part in training.parts_of(*task)]
            report = partial(lambda before, now, _: context.progress("nodes", before + now, total), done)
            train_parts(training, parts, nodes.add, context.executor, report)
            done += len(parts)
            if not self.hard_negatives:
                columns.clear()  # there is no other stage, and what comes now needs the most memory
            self.bias_ = nodes.biases
            self.values_, self.scales_, self.nodes_, self.starts_ = trained.feature_major(X.shape[1], nodes.sizes)

    @property
    def weights_(self) -> Csr:
        """The classifiers as a matrix (n_features, n_nodes), made at each call."""
        shape = (self.n_features_, len(self.label_))
        values = self.values_ * np.repeat(self.scales_, np.diff(self.starts_))
        return sp.csr_matrix((values, self.nodes_.astype(np.int32), self.starts_), shape=shape)

    def label_trees(self) -> list[TreeNodes]:
        """Return the trees, each by itself; a label without training documents is in none."""
        self.check_fitted()
        ends = [*self.roots_[1:].tolist(), len(self.label_)]
        return [self._nodes(root, end) for root, end in zip(self.roots_.tolist(), ends, strict=True)]

    def _nodes(self, root: int, end: int) -> TreeNodes:
        own = slice(root, end)
        return TreeNodes(self.first_child_[own] - root, self.last_child_[own] - root, self.label_[own])

    def explain(self, views: Views, labels: Ints) -> list[Evidence]:
        """Explain the scores of labels by integrated gradients along their paths."""
        document = (self.scales_, self.parents_, self._documents(views))
        return [path_evidence(self._trees, *document, label, next(iter(self.widths_))) for label in labels.tolist()]

    @cached_property
    def parents_(self) -> Ints:
        """The parent of each node; -1 for a root."""
        parents = np.full(len(self.label_), -1, np.int32)
        width = self.last_child_ - self.first_child_
        inner = np.flatnonzero(width > 0)
        children = np.concatenate([np.arange(self.first_child_[i], self.last_child_[i]) for i in inner.tolist()])
        parents[children] = np.repeat(inner, width[inner])
        return parents

    def _stages(self, X: Csr, forest: list[PartitionTree]) -> Iterator[list[Task]]:
        """Yield the nodes to train at one time: all, or with hard negatives a level, which the levels above search."""
        if not self.hard_negatives:
            tasks = [(number, node, NO_DOCUMENTS) for number, tree in enumerate(forest) for node in tree.inner]
            yield sorted(tasks, key=lambda task: forest[task[0]].largest_first(task[1]))
            return
        beams = [np.full((X.shape[0], self.hard_negatives), -1, np.int32) for _ in forest]
        scores = [np.full(beam.shape, -np.inf, np.float32) for beam in beams]
        for beam, score, root in zip(beams, scores, self.roots_, strict=True):
            beam[:, 0], score[:, 0] = root, 0.0
        for level in range(max(int(tree.level[-1]) for tree in forest)):
            tasks = []
            for number, tree in enumerate(forest):
                hard = _documents_of(beams[number] - self.roots_[number], len(tree))
                inner = [node for node in tree.inner if tree.level[node] == level]
                tasks += [(number, node, hard[node]) for node in sorted(inner, key=tree.largest_first)]
            yield tasks
            scaled = CsrArrays(scaled_values(X, self.scales_), X.indices, X.indptr)
            for beam, score in zip(beams, scores, strict=True):
                self._advance(scaled, beam, score)

    def _advance(self, X: CsrArrays, beams: Ints, scores: Floats) -> None:
        """Move the beams of all documents one level down."""
        trees = self._trees

        def move(start: int, stop: int) -> None:
            advance_beams(X, start, stop, trees, beams, scores)

        run_blocks(move, len(beams), ROW_BLOCK)

    @property
    def power_of_gap(self) -> float:
        """The kernels' argument for ``power``: 0 is the logistic step."""
        return float(self.power) if self.loss == "squared_hinge" else 0.0

    def _predict(self, views: Views, k: int, allowed: Bools | None = None) -> TopK:
        if allowed is None:
            return search_trees(self._trees, self._documents(views), self.scales_, k)  # step 6
        trees: AllowedTrees = self.mask_cache.get(allowed, lambda: AllowedTrees.of(self._trees, allowed))
        return trees.search(self._documents(views), self.scales_, k)

    def _documents(self, views: Views) -> Csr:
        X: Csr = views[next(iter(self.widths_))]
        return normalize_rows(X) if self.normalize else X

    @property
    def _trees(self) -> LinearTrees:
        weights = (self.values_, self.nodes_, self.starts_, self.bias_)
        tree = (self.first_child_, self.last_child_, self.label_, self.roots_)
        return LinearTrees(*weights, *tree, min(self.beam_size, len(self.label_)), self.power_of_gap)


def _documents_of(beams: Ints, n_nodes: int) -> list[Ints]:
    """Return for each node the rows of ``beams`` (n, beam size) that hold the node; -1 is no node.

    >>> [rows.tolist() for rows in _documents_of(np.array([[1, 0], [1, -1]]), n_nodes=2)]
    [[0], [0, 1]]
    """
    rows = np.argsort(beams.ravel(), kind="stable") // beams.shape[1]
    starts = np.searchsorted(np.sort(beams.ravel()), np.arange(n_nodes + 1))
    return [rows[start:stop].astype(np.int32) for start, stop in zip(starts, starts[1:], strict=False)]
