"""Training of the T5: batches of documents of similar length, dropout of tokens, loss of all column groups, Adam."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from labelspace.data.label_mapping import ones_of_rows
from labelspace.models.fit_context import FitContext
from labelspace.models.text2text.config import USUAL_BATCH_SIZE
from labelspace.models.text2text.constrained_decoding import ConstrainedDecoder, TokenEmbeddings, sequence_loss
from labelspace.models.text2text.t5 import T5
from labelspace.models.text2text.targets import label_incidence
from labelspace.models.text2text.tokenization import Tokens, pad
from labelspace.store import Arrays
from labelspace.training.checkpoints import data_fingerprint
from labelspace.training.epochs import VALIDATION_K, batch_schedule, r_precision, run_epochs
from labelspace.training.optimizers import RowAdam
from labelspace.training.torch_optimizer import FlatAdam
from labelspace.types import Csr, Floats, Ints, Rng, TopK

if TYPE_CHECKING:
    from labelspace.models.text2text.model import Text2Text

STEPS = 3_000  # batches that suffice to train from scratch
EPOCHS = (10, 40)  # fewest and most, unless given
FINE_TUNING_EPOCHS = 3
LEARNING_RATES, FINE_TUNING_RATES = (0.001, 0.015), (0.0003, 0.0003)  # of the weights, of the token embeddings
WARMUP = 0.05  # share of all steps
SORTED_BATCHES = 20  # batches whose documents are sorted by length, for little padding
VALIDATION_BLOCK = 64  # documents decoded at once

Split = tuple[Sequence[str], Csr]  # texts, and their targets in training or labels in validation


class TrainedNetwork(ABC):
    """A T5 and its token embeddings, with their optimizers."""

    token_embeddings: Floats  # (n_tokens, embedding_dim) read by the encoder

    def __init__(self, t5: nn.Module, rate_names: str) -> None:
        self.n_steps, self.descent = 0, FlatAdam(t5, rate_names)

    def arrays(self) -> Arrays:
        """Return all arrays that a step changes."""
        w = self.descent.weights
        return {"weights": w.value, "means": w.mean, "squares": w.square}

    @abstractmethod
    def weights(self) -> tuple[Floats, Floats, Floats]:
        """Return what is saved: the weights, the token embeddings, and the output embeddings, (0, 0) if tied."""


class Network(TrainedNetwork):
    """Our own T5, whose token embeddings are tables outside of it."""

    def __init__(self, t5: T5, token_embeddings: Floats, output_embeddings: Floats) -> None:
        super().__init__(t5, "learning_rate or token_learning_rate")
        self.t5, self.token_embeddings, self.output_embeddings = t5, token_embeddings, output_embeddings
        self.tables = [table for table in (token_embeddings, output_embeddings) if table.size]
        self.adams = [RowAdam(*table.shape) for table in self.tables]

    def arrays(self) -> Arrays:
        """Return all arrays that a step changes."""
        arrays = super().arrays()
        for i, (table, adam) in enumerate(zip(self.tables, self.adams, strict=True)):
            of_table = {"table": table, "means": adam.mean, "squares": adam.square, "steps": adam.n_steps}
            arrays |= {f"{name}{i}": array for name, array in of_table.items()}
        return arrays

    def weights(self) -> tuple[Floats, Floats, Floats]:
        """Return the weights of the T5, the token embeddings, and the output embeddings, (0, 0) if tied."""
        return self.descent.weights.value, self.token_embeddings, self.output_embeddings

    def embeddings(self) -> TokenEmbeddings:
        """Return the embeddings of all tokens."""
        return TokenEmbeddings.of_all_tokens([torch.from_numpy(table) for table in self.tables])

    def trainable_embeddings(self, tokens: Ints) -> tuple[TokenEmbeddings, list[Tensor]]:
        """Return the embeddings of distinct tokens, and the tensors that get a gradient, one per table."""
        rows = [torch.from_numpy(table[tokens]).requires_grad_() for table in self.tables]
        return TokenEmbeddings(tokens, rows[0], rows[-1]), rows

    def step_embeddings(self, tokens: Ints, rows: list[Tensor], learning_rate: float) -> None:
        """Take one Adam step on the embeddings of tokens, by the gradients of their rows."""
        for table, adam, tensor in zip(self.tables, self.adams, rows, strict=True):
            assert tensor.grad is not None
            table[tokens] += adam.updates(tokens, tensor.grad.numpy(), learning_rate)


class Trainer(ABC):
    """Trains a network on documents and their targets (n, n_targets), with the parameters of the model."""

    def __init__(
        self, model: Text2Text, net: TrainedNetwork, train: Split, validation: Split | None, context: FitContext
    ) -> None:
        texts, Y_targets = train
        labeled = np.flatnonzero(np.diff(Y_targets.indptr))
        tokenization = model.tokenization()
        self.model, self.net, self.tokenization, self.context = model, net, tokenization, context
        self.Y_targets = Y_targets[labeled]
        self.documents = tokenization.encode([texts[row] for row in labeled.tolist()])
        self.validation = None if validation is None else (tokenization.encode(validation[0]), validation[1])
        self.lengths = np.array([len(tokens) for tokens in self.documents])
        fine_tuning = model.pretrained is not None
        bounds = (FINE_TUNING_EPOCHS, FINE_TUNING_EPOCHS) if fine_tuning else EPOCHS
        self.batch_size, self.epochs = batch_schedule(
            len(labeled), model.batch_size, model.epochs, STEPS, bounds, USUAL_BATCH_SIZE
        )
        lr, token_lr = FINE_TUNING_RATES if fine_tuning else LEARNING_RATES
        self.learning_rate, self.token_learning_rate = model.learning_rate or lr, model.token_learning_rate or token_lr
        self.epoch_tokens = int(self.lengths.sum()) + self.Y_targets.nnz
        data = [(self.documents, self.Y_targets), *([] if self.validation is None else [self.validation])]
        tables = [table for tokens, Y in data for table in (ones_of_rows(tokens, len(net.token_embeddings)), Y)]
        self.fingerprint = {"params": model.get_params(), "data": data_fingerprint(*tables)}

    def train(self) -> list[float]:
        """Run the epochs; returns the validation score after each, where there are validation documents."""
        validate = None if self.validation is None else self._validate
        options = (self.model.patience, self.fingerprint, self.context.checkpoint)
        scores = run_epochs(self.net, self.epochs, self._run_epoch, validate, *options)
        if 0 < len(scores) < self.epochs:  # stopped early
            self.context.progress("tokens", self.epochs * self.epoch_tokens, self.epochs * self.epoch_tokens)
        return scores

    def _run_epoch(self, epoch: int) -> None:
        """Train for one epoch; draws depend on the seed and the epoch's number only, so that training can resume."""
        rng = np.random.default_rng([self.model.random_state, epoch])
        batches = self._batches(rng)
        done, total = epoch * self.epoch_tokens, self.epochs * self.epoch_tokens
        for at, rows in enumerate(batches):
            fraction = (epoch * len(batches) + at) / (self.epochs * len(batches))
            self._step(rows, min((fraction + 1e-3) / WARMUP, 1.0 - fraction), rng)
            done += int(self.lengths[rows].sum() + np.diff(self.Y_targets.indptr)[rows].sum())
            self.context.progress("tokens", done, total)

    def _batches(self, rng: Rng) -> list[Ints]:
        """Return batches of documents at random, but of similar length within a batch."""
        order, batches = rng.permutation(len(self.documents)), []
        for start in range(0, len(order), SORTED_BATCHES * self.batch_size):
            rows = order[start : start + SORTED_BATCHES * self.batch_size]
            rows = rows[np.argsort(self.lengths[rows], kind="stable")]
            batches += [rows[i : i + self.batch_size] for i in range(0, len(rows), self.batch_size)]
        return [batches[i] for i in rng.permutation(len(batches))]

    @abstractmethod
    def _step(self, rows: Ints, lr_factor: float, rng: Rng) -> None:
        """Take one Adam step on a batch; learning rates are multiplied by ``lr_factor``."""

    @abstractmethod
    def _predict_labels(self, documents: Tokens, k: int) -> TopK:
        """Return the best labels of some documents, by the network in its current state."""

    def _validate(self) -> float:
        """Return the R-precision on the validation documents."""
        assert self.validation is not None
        documents, Y = self.validation
        starts = range(0, len(documents), VALIDATION_BLOCK)
        tops = [self._predict_labels(documents[start : start + VALIDATION_BLOCK], VALIDATION_K) for start in starts]
        labels, scores = (np.concatenate([getattr(top, part) for top in tops]) for part in ("labels", "scores"))
        return r_precision(TopK(labels, scores), Y)


class OwnTrainer(Trainer):
    """Trains our own T5 on the probabilities of constrained decoding."""

    net: Network

    def init_token_embeddings(self) -> None:
        """Move the embeddings of subwords near those of the labels that they occur with."""
        targets, n_subwords = self.tokenization.targets, len(self.tokenization.tokenizer)
        embeddings = self.net.token_embeddings
        labels = self.Y_targets @ label_incidence(targets.label_ids, len(embeddings) - n_subwords - targets.n_groups)
        of_subwords, of_labels = embeddings[:n_subwords], embeddings[n_subwords : n_subwords + labels.shape[1]]
        tokens = ones_of_rows(self.documents, n_subwords)
        embeddings[:n_subwords] = cooccurrence_init(tokens, labels, of_labels, of_subwords)

    def _step(self, rows: Ints, lr_factor: float, rng: Rng) -> None:
        """Take one Adam step on a batch; learning rates are multiplied by ``lr_factor``."""
        net, model, tokenization = self.net, self.model, self.tokenization
        net.n_steps += 1
        tokens, is_token = pad([self.documents[row] for row in rows])
        tokens = tokenization.drop_tokens(tokens, is_token, model.token_dropout, rng)
        distinct = np.unique(np.append(tokenization.target_tokens, tokens))
        embeddings, tensors = net.trainable_embeddings(distinct)
        net.t5.dropout.p, net.t5.dropout.rng = model.dropout, rng
        encoded = net.t5.encode(embeddings.embed(tokens), torch.from_numpy(is_token))
        Y_targets, loss = self.Y_targets[rows], torch.zeros(())
        for trie, span in zip(tokenization.tries, tokenization.targets.group_spans, strict=True):
            of_group = Y_targets[:, span]
            repeated = np.repeat(np.arange(len(rows)), np.diff(of_group.indptr))  # once per target
            documents = encoded if len(repeated) == len(rows) else encoded.take(torch.from_numpy(repeated))
            loss = loss + sequence_loss(net.t5, embeddings, documents, trie, of_group.indices)
        net.t5.dropout.rng = None
        if loss.requires_grad:  # not so where every group has a single target
            net.descent.step(loss / len(rows), model.clip_norm, self.learning_rate * lr_factor, net.n_steps)
            net.step_embeddings(distinct, tensors, self.token_learning_rate * lr_factor)

    def _predict_labels(self, documents: Tokens, k: int) -> TopK:
        assert self.model.beam_size is not None
        decoder = ConstrainedDecoder(self.net.t5, self.net.embeddings(), self.tokenization, self.model.beam_size)
        return decoder.predict_labels(documents, k)


PSEUDO_COUNT = 4.0  # with this number of documents, the embedding of a token is half co-occurrence, half random
MAX_TRUST = 0.9  # largest weight of co-occurrence; the rest is random, so that tokens of the same labels differ


def cooccurrence_init(tokens: Csr, labels: Csr, label_embeddings: Floats, random_embeddings: Floats) -> Floats:
    """Place the embeddings of tokens near those of the labels of their documents.

    The network then knows from the first step which labels a word speaks for; from random embeddings, on few documents,
    it takes several times as many epochs to learn that. ``tokens`` (n, n_tokens) and ``labels`` (n, n_labels) are those
    of the same documents.

    A label's weight grows with its share among a token's documents relative to its share among all (positive pointwise
    mutual information). The rarer a token, the nearer it stays to its random embedding.

    >>> tokens, labels = sp.csr_matrix(np.eye(2)), sp.csr_matrix([[1.0, 0.0], [0.0, 1.0]])
    >>> label_embeddings = np.array([[5.0, 0.0], [0.0, -5.0]], np.float32)
    >>> np.sign(cooccurrence_init(tokens, labels, label_embeddings, np.array([[0.0, 1.0], [1.0, 0.0]]))).tolist()
    [[1.0, 1.0], [1.0, -1.0]]
    """
    tokens, labels = ((table > 0).astype(np.float32) for table in (tokens, labels))
    prior = np.asarray(labels.mean(axis=0)).ravel()
    documents = np.asarray(tokens.sum(axis=0)).ravel()
    pairs = (tokens.T @ labels).tocoo()
    share = (pairs.data + PSEUDO_COUNT * prior[pairs.col]) / (documents[pairs.row] + PSEUDO_COUNT)
    weight = np.sqrt(share) * np.maximum(np.log(share / prior[pairs.col]), 0.0)
    mean = sp.csr_matrix((weight.astype(np.float32), (pairs.row, pairs.col)), shape=pairs.shape) @ label_embeddings
    norm = np.sqrt((mean * mean).mean(axis=1, keepdims=True))
    trust = np.where(norm > 0, MAX_TRUST * (documents / (documents + PSEUDO_COUNT))[:, None], 0.0)
    scale = np.sqrt((random_embeddings * random_embeddings).mean()) / np.where(norm > 0, norm, 1.0)
    mixed = trust * scale * mean + np.sqrt(1.0 - trust * trust) * random_embeddings
    return np.asarray(mixed, np.float32)
