"""HierarchicalXC: a binary tree of labels that share documents, with a classifier for each node.

Srinivasan, Rao and Agarwal, "Extreme Classification using Autoencoders" (section 4).

1. The similarity of two labels is the number of documents they share, or with ``similarity="iou"`` the intersection of
   their documents over the union. Complete-link clustering makes a binary tree of the labels (dendrogram.py); ``ties``
   says how clusters that share nothing are joined, and ``balance`` whether a chain-like tree is rebalanced.
2. The root and every ancestor of a document's labels are on its paths. The classifier of a child is trained on the
   documents whose paths include its parent: positive if the paths include the child too. Documents are also followed
   ``off_path`` steps off their paths, where every child is negative.
3. ``input="code"``: a document is the code of an autoencoder, with the loss alpha |psi(phi(x)) - x|^2, and all
   classifiers are trained at once on the targets of a batch: a sparse matrix (batch, nodes) with few entries, whatever
   the height of the tree (classifiers.py). ``training="staged"``: the autoencoder first, then the classifiers on its
   codes; ``"pretrained"``: the same first phase, then all together; ``"joint"``: all from the start.
4. ``input="features"``: linear classifiers on the document's features by dual coordinate descent (classifiers.py).
5. Prediction is a beam search from the root that keeps the ``beam_size`` best nodes of each level. None, one or both
   children are followed, if their probability is at least ``follow_threshold``. The score of a label is the product of
   the probabilities on its path. With ``ranking="none"`` the labels that are reached are the answer, without an order:
   all have score 1.

Where we differ, and why: the authors predict the set of labels that the classifiers accept, without an order; the
product of probabilities ranks labels. ``follow_threshold=0.5`` is their rule, but a right label behind one doubtful
step is lost with it. A document at a node always has a label below it, so without off-path documents no classifier
would see that neither of two children is right. Complete link leaves most clusters tied, and joining them in the order
of their ids gives a chain: see ``ties``. In joint training the code learns what the classifiers need; a code that only
reconstructs words is worse (docs/methods/hierarchicalxc.md). The preset ``paper`` has none of this; ``authors`` has the
layers of their autoencoder for Bibtex too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from labelspace.errors import ParameterError
from labelspace.estimator import learned, param
from labelspace.estimator.parameter_constraints import boolean, integer, layer_sizes, one_of, parse_layer_sizes, real
from labelspace.estimator.state_constraints import array, must, part
from labelspace.features.normalize import normalize_rows
from labelspace.kernels.beam_search import LinearTrees, NodeVectors, Search, Tree, beam_search, dense_beam_search
from labelspace.kernels.csr_arrays import CsrArrays
from labelspace.kernels.quantize import Int8s, quantize_int8
from labelspace.kernels.threads import search_in_blocks
from labelspace.labels.masks import FEW_LABELS
from labelspace.labels.tree import PRUNED_BIAS, PRUNED_LOG, TreeNodes, widen_beam
from labelspace.models import parameters
from labelspace.models.base import Model
from labelspace.models.fit_context import FitContext
from labelspace.models.hierarchicalxc import classifiers
from labelspace.models.hierarchicalxc.classifiers import CodeNet, LinearClassifiers, NodeTargets
from labelspace.models.hierarchicalxc.dendrogram import MEASURES, TIES, cluster_labels
from labelspace.training import autoencoder
from labelspace.training.autoencoder import QuantizedEncoder, TrainingPhase
from labelspace.training.dense_layers import ACTIVATIONS, flatten_layers, layer_specs
from labelspace.training.epochs import batch_schedule, run_phases
from labelspace.training.losses import seen_labels
from labelspace.training.sparse_layers import batch_rows
from labelspace.types import Bools, Csr, Floats, Ints, Longs, Rng, TopK

ROW_BLOCK = 64  # documents per task
RANKINGS = ("probability", "none")
LOGISTIC = 0.0  # selects the logistic link in the beam search
ROOT: Ints = np.zeros(1, np.int32)
# Section 4; if it is silent, what the authors' programs do for every data set.
PAPER: Mapping[str, Any] = {
    "similarity": "counts",  # section 4.1: the distance of two classes
    "ties": "order",  # programs
    "balance": "never",  # section 4.1.2: imbalanced trees are expected
    "training": "staged",  # programs: the autoencoder first
    "batch_size": 64,  # programs
    "dropout": 0.0,
    "n_sampled_features": None,  # as eq. 1: the norm over all features
    "off_path": 0,  # section 4.1.1: a classifier gets only the documents that are sent to it
    "prior_bias": False,
    "beam_size": parameters.MAX_BEAM_SIZE,  # section 4: all branches that are accepted are traversed
    "follow_threshold": 0.5,  # section 4: none, one or both
    "ranking": "none",  # section 4.1: on reaching a leaf, the document has its label
    "normalize": False,  # section 5.1: features as given
}
# Section 4: the autoencoder of NeuralXC. The layers are those of the authors' program for Bibtex.
AUTHORS: Mapping[str, Any] = {**PAPER, "input_layers": "1152,600,256"}


def code_param(*declaration: Any) -> Any:  # noqa: ANN401 - the arguments of ``param``
    """Declare a parameter that has an effect with ``input="code"``."""
    return param(*declaration).only_with(input="code")


class CodeClassifiers(NamedTuple):
    """The node classifiers on codes, in 8 bits."""

    weights: Annotated[Int8s, array("int8", "n_nodes", "code")]
    scales: Annotated[Floats, array("float32", "n_nodes")]
    bias: Annotated[Floats, array("float32", "n_nodes")]


@dataclass(frozen=True)
class Beam:
    """The number of nodes of a level that are searched, and the nodes that may be."""

    size: int
    kept: Bools | None = None  # (n_nodes,); None for all
    n_labels: int = 0  # of the nodes that are kept

    def pruned(self, bias: Floats) -> Floats:
        """Return the biases of the nodes, so low for nodes that are left out that the search prunes them."""
        return bias if self.kept is None else np.where(self.kept, bias, PRUNED_BIAS)


class HierarchicalXC(Model):
    """Node classifiers on a binary tree of labels that share documents.

    >>> from labelspace.data.synthetic import planted
    >>> data = planted(n=600, d=400, l=50, seed=1)
    >>> train, test = data.rows(range(500)), data.rows(range(500, 600))
    >>> model = HierarchicalXC().fit(train.X, train.Y)
    >>> first = model.predict_topk(test.X, k=1).labels[:, 0]
    >>> bool(test.Y[np.arange(100), first].mean() > 0.5)
    True
    """

    name = "hierarchicalxc"
    title = "HierarchicalXC: a binary tree of co-occurring labels (Srinivasan et al.)"
    choose_when = "you compare with the paper, or want to see and use a tree of your labels"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"paper": PAPER, "authors": AUTHORS}

    similarity: str = param("iou", one_of(*MEASURES), "Label similarity: shared documents, or intersection over union.")
    ties: str = param("average", one_of(*TIES), "How clusters that share no documents are joined.")
    balance: str = param("auto", one_of("auto", "always", "never"), "Whether a chain-like tree is rebalanced.")
    input: str = param("code", one_of("code", "features"), "What node classifiers read: the code, or the features.")
    input_layers: int | str = code_param(
        512, layer_sizes(), "Units from the features to the code, the last being the code."
    )
    activation: str = code_param("relu", one_of(*ACTIVATIONS), "Activation function of hidden layers.")
    input_code: str = code_param("linear", one_of(*ACTIVATIONS), "Activation function of the document code.")
    alpha: float = code_param(1.0, real(at_least=0), "Weight of the reconstruction of documents.")
    training: str = parameters.training().only_with(input="code")
    epochs: int | None = parameters.epochs().only_with(input="code")
    batch_size: int | None = parameters.batch_size().only_with(input="code")
    learning_rate: float = parameters.learning_rate(0.003).only_with(input="code")
    feature_learning_rate: float = parameters.feature_learning_rate(0.1).only_with(input="code")
    node_learning_rate: float = code_param(0.03, real(above=0), "Learning rate of the node classifiers.")
    dropout: float = parameters.dropout(0.1).only_with(input="code")
    input_dropout: float = parameters.input_dropout(0.0).only_with(input="code")
    n_sampled_features: int | None = parameters.n_sampled_features().only_with(input="code")
    off_path: int = code_param(
        1, integer(0), "Steps that training documents are followed off their paths, as negatives."
    )
    prior_bias: bool = code_param(True, boolean(), "Start the bias of a node at the log-odds of its frequency.")
    C: float = parameters.C(10.0).only_with(input="features")
    threshold: float = parameters.threshold(0.1).only_with(input="features")
    beam_size: int = parameters.beam_size(20)
    follow_threshold: float = param(0.0, real(at_least=0, below=1), "Minimum probability of a child that is followed.")
    ranking: str = param("probability", one_of(*RANKINGS), "How the labels that are reached are ranked.")
    normalize: bool = parameters.normalize()
    random_state: int = parameters.random_state()

    # Over the labels with training documents.
    tree_: TreeNodes = learned(part(TreeNodes, n_nodes="n_nodes", n_labels="n_labels"))
    # The encoder and the code classifiers with ``input="code"``, the linear ones with ``input="features"``.
    encoder_: QuantizedEncoder | None = learned(part(QuantizedEncoder, optional=True, n_features="n_features"))
    code_classifiers_: CodeClassifiers | None = learned(part(CodeClassifiers, optional=True, n_nodes="n_nodes"))
    linear_classifiers_: LinearClassifiers | None = learned(
        part(LinearClassifiers, optional=True, n_nodes="n_nodes", n_features="n_features")
    )
    # Of a document, which has length 1 if normalized; None without an autoencoder.
    reconstruction_error_: float | None = learned(autoencoder.RECONSTRUCTION_ERROR)

    def check_state(self) -> None:
        """Check that there are classifiers of one kind, on codes of the encoder's length."""
        codes = self.encoder_ is not None and self.code_classifiers_ is not None
        must(codes != (self.linear_classifiers_ is not None), "classifiers of codes or of features")
        if self.encoder_ is not None and self.code_classifiers_ is not None:
            must(self.code_classifiers_.weights.shape[1] == self.encoder_.code_dim, "classifiers of its codes")

    def _fit(self, X: Csr, Y: Csr, context: FitContext) -> None:
        if self.ranking == "none" and not self.follow_threshold:
            raise ParameterError(
                "ranking='none' answers with the labels that are reached, but with follow_threshold=0 these are all; "
                "set follow_threshold, as to 0.5"
            )
        X = normalize_rows(X) if self.normalize else X
        seen = seen_labels(Y)
        context.progress("tree", 0, 1)
        tree = cluster_labels(Y[:, seen], self.similarity, self.ties, self.balance)  # step 1
        context.progress("tree", 1, 1)
        self.tree_ = replace(tree, label=np.where(tree.label < 0, -1, seen[tree.label]).astype(np.int32))
        self.encoder_ = self.code_classifiers_ = self.linear_classifiers_ = self.reconstruction_error_ = None
        if self.input == "code":
            self._fit_code(X, Y, context)  # step 3
        else:  # step 4
            settings = (float(self.C), float(self.threshold), self.random_state, partial(context.progress, "nodes"))
            self.linear_classifiers_ = classifiers.train_linear_classifiers(X, Y[:, seen], tree, *settings)

    def _fit_code(self, X: Csr, Y: Csr, context: FitContext) -> None:
        rng = np.random.default_rng(self.random_state)
        sizes = parse_layer_sizes(self.input_layers)
        targets = NodeTargets(self.tree_, Y, self.off_path)
        n_sampled = X.shape[1] if self.n_sampled_features is None else self.n_sampled_features
        encoder = autoencoder.SparseEncoder.random(X, sizes, self.activation, self.input_code, rng)
        decoder = autoencoder.SparseDecoder.random(X, sizes[::-1], self.activation, n_sampled, rng)
        of_nodes = classifiers.init_classifiers(targets, sizes[-1], self.prior_bias, rng)
        net = CodeNet(encoder, decoder, of_nodes, targets)
        schedule = batch_schedule(X.shape[0], self.batch_size, self.epochs)
        step = partial(self._train_step, net, X, rng)
        run_phases(step, autoencoder.phases(self.training, self.alpha), X.shape[0], schedule, rng, context.progress)
        chain = layer_specs(sizes, self.activation, self.input_code)
        layers = flatten_layers(net.encoder.mlp.layers)
        embeddings = quantize_int8(net.encoder.features.vectors)
        self.encoder_ = QuantizedEncoder(*embeddings, net.encoder.bias.value, layers, chain)
        weights = net.classifiers.vectors
        self.code_classifiers_ = CodeClassifiers(*quantize_int8(weights[:, :-1]), weights[:, -1].copy())
        self.reconstruction_error_ = net.decoder.error()

    def _train_step(self, net: CodeNet, X: Csr, rng: Rng, phase: TrainingPhase, rows: Ints, lr_decay: float) -> None:
        """Make one step of the autoencoder and the classifiers, or of the one that is trained in the phase."""
        net.n_steps += 1
        rates = phase.rates(self.learning_rate, self.feature_learning_rate, lr_decay, net.n_steps)
        encoded = net.encoder.forward(batch_rows(X, rows, self.input_dropout, rng), self.dropout, rng)
        by_code = np.zeros_like(encoded.code)
        if phase.classify:
            by_code += net.descend_classifiers(encoded.code, rows, self.node_learning_rate * lr_decay)
        if phase.alpha:
            target = batch_rows(X, rows, 0.0, rng)
            by_code += net.decoder.backward(encoded.code, target, phase.alpha / len(rows), rates, rng)
        if not phase.freeze_codes:
            net.encoder.backward(encoded, by_code, rates)

    def label_trees(self) -> list[TreeNodes]:
        """Return the tree, which has no label without training documents."""
        self.check_fitted()
        return [self.tree_]

    def report(self) -> dict[str, Any]:
        """Report the shape of the tree, and how well documents are reconstructed from their codes."""
        self.check_fitted()
        tree = self.tree_
        depth = float(tree.level[tree.label >= 0].mean())
        shape = {"tree_height": tree.height, "tree_balance": round(tree.balance, 4), "tree_mean_depth": round(depth, 2)}
        return {**shape, "tree_is_a_chain": tree.is_degenerate, "reconstruction_error": self.reconstruction_error_}

    def _predict(self, X: Csr, k: int, allowed: Bools | None = None) -> TopK:  # step 5
        X = normalize_rows(X) if self.normalize else X
        if allowed is None:
            return self._search(X, k, Beam(min(self.beam_size, len(self.tree_))))
        beam = self.mask_cache.get(allowed, lambda: self._beam_among(allowed))

        def find(rows: Longs, size: int) -> TopK:
            return self._search(X if len(rows) == X.shape[0] else X[rows], k, replace(beam, size=size))

        return widen_beam(find, X.shape[0], k, min(k, beam.n_labels), beam.size, len(self.tree_))

    def _beam_among(self, allowed: Bools) -> Beam:
        """Keep nodes with an allowed label below; the beam holds all of them if the labels are few."""
        kept = self.tree_.above(allowed)
        size = min(self.beam_size, len(self.tree_))
        n_labels = int((kept & (self.tree_.label >= 0)).sum())
        if n_labels <= FEW_LABELS:
            size = max(size, int(kept.sum()))
        return Beam(size, kept, n_labels)

    def _search(self, X: Csr, k: int, beam: Beam) -> TopK:
        def search(rows: slice, labels: Ints, scores: Floats) -> None:
            if self.ranking == "none":
                top = without_order(self._reached(X, rows, self.tree_.n_labels, beam), k)
            else:
                top = self._reached(X, rows, k, beam)
            labels[:], scores[:] = top.labels, top.scores

        return search_in_blocks(search, X.shape[0], k, ROW_BLOCK)

    def _reached(self, X: Csr, rows: slice, k: int, beam: Beam) -> TopK:
        """Find the k most probable labels that some rows of X reach."""
        start, stop = rows.start, rows.stop
        out = TopK.empty(stop - start, k)
        threshold = self.follow_threshold
        min_log = float(np.float32(np.log(threshold))) if threshold else -np.inf  # rounded as the search does
        min_log = min_log if beam.kept is None else max(min_log, PRUNED_LOG)
        tree = Tree(self.tree_.first_child, self.tree_.last_child, self.tree_.label)
        settings = Search(beam.size, LOGISTIC, min_log)
        if self.linear_classifiers_ is not None:
            documents = CsrArrays(X.data, X.indices, X.indptr[start : stop + 1])
            values, nodes, starts, bias = self.linear_classifiers_
            trees = LinearTrees(values, nodes, starts, beam.pruned(bias), *tree, ROOT, *settings)
            beam_search(documents, 0, stop - start, trees, out.labels, out.scores)
        else:
            assert self.encoder_ is not None
            assert self.code_classifiers_ is not None
            by_code = self.code_classifiers_
            vectors = NodeVectors(by_code.weights, by_code.scales, beam.pruned(by_code.bias))
            dense_beam_search(self.encoder_(X, start, stop), vectors, tree, settings, out.labels, out.scores)
        return out


def without_order(top: TopK, k: int) -> TopK:
    """Return the first k of the listed labels by their ids, all with score 1.

    >>> without_order(TopK(np.array([[7, 2, 5, -1]], np.int32), np.array([[3, 2, 1, -np.inf]], np.float32)), k=2).labels
    array([[2, 5]], dtype=int32)
    """
    last = np.iinfo(np.int32).max
    labels = np.sort(np.where(top.labels < 0, last, top.labels), axis=1)[:, :k]
    listed = labels < last
    scores = np.where(listed, 1.0, -np.inf).astype(np.float32)
    return TopK(np.where(listed, labels, -1).astype(np.int32), scores).padded(k)
