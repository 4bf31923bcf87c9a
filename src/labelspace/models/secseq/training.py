"""Training of the networks, one per code tree: epochs, steps, early stopping and checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
import torch  # so import this module only after ``errors.require``
from threadpoolctl import threadpool_limits

from labelspace.kernels.quantize import Int8s, quantize_int8
from labelspace.labels.codes import Codes, CodeTree
from labelspace.models.fit_context import FitContext
from labelspace.models.secseq.config import EncoderInputs
from labelspace.models.secseq.decoding import LabelDecoder, leaf_counts, predict_topk
from labelspace.models.secseq.network import SequenceDecoder, build_decoder
from labelspace.models.secseq.objectives import Objective, PrefixObjective, SequenceObjective
from labelspace.store import Arrays
from labelspace.training.checkpoints import data_fingerprint
from labelspace.training.epochs import VALIDATION_K, batch_schedule, epoch_batches, r_precision, run_epochs
from labelspace.training.sparse_layers import SparseLayer
from labelspace.training.torch_optimizer import FlatAdam, single_thread
from labelspace.types import Csr, Floats, Ints, Rng

if TYPE_CHECKING:
    from labelspace.models.secseq.model import SequenceModel

STEPS = 300  # batches that suffice; epochs are chosen so that there are about this many, within bounds
EPOCHS = (8, 15)  # bounds of the chosen number of epochs

Split = tuple[EncoderInputs, Csr]  # documents, and their labels

Tick = Callable[[int], None]
"""Reports how many more target digits were trained on."""

TrainedTree = tuple[Int8s, Floats, Floats, Floats, list[float]]
"""Embeddings in 8 bits, their scales, the weights of the decoder, the label shares, and the validation scores."""


class TreeNetwork:
    """Embeddings and decoder of one code tree while they are trained."""

    def __init__(self, layer: SparseLayer, decoder: SequenceDecoder) -> None:
        self.layer, self.decoder, self.n_steps = layer, decoder, 0
        self.optimizer = FlatAdam(decoder, "learning_rate or feature_learning_rate")
        self.n_reported = 0  # target digits that the progress counts

    def arrays(self) -> Arrays:
        """Return all arrays that a step changes."""
        weights = self.optimizer.weights
        return {
            "vectors": self.layer.vectors,
            "squares": self.layer.squares,
            "weights": weights.value,
            "means": weights.mean,
            "weight_squares": weights.square,
        }


class TreeTrainer:
    """Trains a network for each code tree on the same documents."""

    def __init__(
        self, train: Split, validation: Split | None, codes: list[Codes], model: SequenceModel, context: FitContext
    ) -> None:
        self.inputs, self.Y = train
        self.validation, self.codes, self.model, self.checkpoint = validation, codes, model, context.checkpoint
        self.batch_size, self.epochs = batch_schedule(self.inputs.n, model.batch_size, model.epochs, STEPS, EPOCHS)
        splits = [train] if validation is None else [train, validation]
        tables = [table for X, labels in splits for table in (X.table, sp.csr_matrix(X.starts), labels)]
        tables += [sp.csr_matrix(code.digits) for code in codes]  # they may be made of label names, which are not in Y
        self.fingerprint = {"params": model.get_params(), "data": data_fingerprint(*tables)}
        self.objectives = [self._objective(code, tree) for tree, code in enumerate(codes)]
        self.n_tokens = self.epochs * sum(objective.n_tokens for objective in self.objectives)

    def _objective(self, codes: Codes, tree: int) -> Objective:
        model = self.model
        if model.target != "sequence":
            return PrefixObjective(codes, self.Y, softmax=model.target == "label")
        rng = np.random.default_rng([model.random_state, tree, 1])
        options = (model.max_sequence, model.masked_softmax, model.repeated_codes)
        return SequenceObjective(codes, self.Y, model.label_order, rng, *options)

    def train(self, context: FitContext) -> list[TrainedTree]:
        """Train all trees, in parallel."""
        n, total = len(self.codes), self.n_tokens
        with single_thread(), threadpool_limits(1, user_api="blas"):
            return context.train_learners(
                TreeTrainer.train_tree, (self,), n, lambda done: context.progress("tokens", min(done, total), total)
            )

    def train_tree(self, tree: int, tick: Tick) -> TrainedTree:
        """Train one tree; draws depend only on the seed and the tree's number."""
        model, objective = self.model, self.objectives[tree]
        rng = np.random.default_rng([model.random_state, tree])
        config = model.decoder_config(self.codes[tree].code_size)
        net = TreeNetwork(SparseLayer.random(self.inputs.table, config.word_dim, rng), build_decoder(config, rng))
        if model.init_biases:
            objective.init_biases(net.decoder)
        histogram = model.leaf_histogram if model.target == "sequence" else "shares"
        shares = leaf_counts(histogram, objective.tree, self.Y, of_documents=model.target != "label")
        run_epoch = partial(self._run_epoch, net, objective, tree, tick)
        validate = None if self.validation is None else partial(self._validate, net, objective.tree, shares)
        options = (self.fingerprint, self.checkpoint, "checkpoint" if len(self.codes) == 1 else f"tree-{tree}")
        scores = run_epochs(net, self.epochs, run_epoch, validate, model.patience, *options)
        tick(self.epochs * objective.n_tokens - net.n_reported)  # epochs that early stopping skipped
        return *quantize_int8(net.layer.vectors), net.optimizer.weights.value, shares, scores

    def _run_epoch(self, net: TreeNetwork, objective: Objective, tree: int, tick: Tick, epoch: int) -> None:
        """Pass over the documents once; draws depend only on the seed, the tree and the epoch's number."""
        rng = np.random.default_rng([self.model.random_state, tree, 2, epoch])
        tick(epoch * objective.n_tokens - net.n_reported)  # above 0 where a training resumes
        net.n_reported = (epoch + 1) * objective.n_tokens
        for rows, lr_decay in epoch_batches(self.inputs.n, self.batch_size, epoch, self.epochs, rng):
            tick(self._step(net, objective, rows, lr_decay, rng))

    def _step(self, net: TreeNetwork, objective: Objective, rows: Ints, lr_decay: float, rng: Rng) -> int:
        """Train on one batch: encode, loss, gradient step (steps 3 to 5); return the number of target digits."""
        model, zeros = self.model, np.zeros(net.layer.vectors.shape[1], np.float32)
        net.n_steps += 1
        batch, lengths = self.inputs.batch(rows, model.input_dropout, rng)
        embedded = torch.from_numpy(net.layer.embed(batch, zeros)).requires_grad_()
        encoder_states = net.decoder.encode(embedded, lengths)
        kept = rng.random((len(rows), 1, model.hidden_dim), np.float32) >= model.dropout
        gate = torch.from_numpy(kept / np.float32(1 - model.dropout))
        encoder_states = encoder_states._replace(states=encoder_states.states * gate)
        loss, n_tokens = objective.loss(net.decoder, encoder_states, rows)
        if n_tokens:
            net.optimizer.step(loss, model.clip_norm, model.learning_rate * lr_decay, net.n_steps)
            assert embedded.grad is not None
            net.layer.backward(batch, embedded.grad.numpy(), model.feature_learning_rate * lr_decay)
        return n_tokens

    def _validate(self, net: TreeNetwork, tree: CodeTree, shares: Floats) -> float:
        """Return the R-precision on the validation documents."""
        assert self.validation is not None
        inputs, Y = self.validation
        scales = np.ones(len(net.layer.vectors), np.float32)
        decoder = LabelDecoder(net.decoder, tree, shares, net.layer.vectors, scales)
        return r_precision(predict_topk([decoder], inputs, VALIDATION_K, self.model), Y)
