"""text2text: a T5 that reads a document and writes its labels, held to those that exist.

After Pathak, "Hierarchical Label Embedding for Xtreme Multi-Label Classification" (IIT Kharagpur, 2024), who fine-tunes
T5 (Raffel et al., 2020) to write ``details_Brand: ... L0_category: ... L4_category: ...`` of a row of products.

1. Part the question: of a table, columns that the hierarchy links are one part, answered by a path such as
   ``L0_category: Beauty L1_category: Skin Care``; any other column is a part, as in ``brand: Nivea``; a level without a
   value is ``NA``. Of other data there is one part, and every label of a document is an answer.
2. Cut texts into tokens: with ``pretrained`` by the tokenizer of that model, after the document's instruction; else by
   one that is learned on the spot, where the name of a label is one token, and the vector of a piece of a word begins
   near those of the labels that it stands with.
3. Read the tokens, some left out by chance (``token_dropout``), and write the answers of each part, apart from the
   others'. Only what goes on to an existing answer is scored.
4. Weights move by Adam, gradients cut at ``clip_norm``; vectors of tokens that a step touches by their own Adam. Rates rise
   over the first steps and fall to 0 in a straight line.
5. Answer: the most probable answers of each part by a ``beam_size``. A label gets the sum of the chances of the answers that
   carry it; a label above one that is written, that times the share of its documents that carry both.

Where we differ, and why: the document writes one sequence, brand first, and whatever comes; here the parts are written
apart, so that the chances of each are exact, and no answer is wrong in form. The name of the column is its marker
(``brand:`` for the document's ``details_Brand:``). Trained from nothing, an instruction that is always the same says
nothing, so it is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from labelspace.constraints import Constraint, integer, optional, real
from labelspace.errors import ParameterError, require
from labelspace.estimator import learned, param
from labelspace.features.views import TEXT
from labelspace.kernels.threads import run_blocks
from labelspace.models.base import Model
from labelspace.models.fit_context import FitContext
from labelspace.models.text2text.embedding_init import cooccurrence_init
from labelspace.models.text2text.subwords import EXTRA, Pieces, table_of
from labelspace.models.text2text.targets import Answers, build_targets, target_names
from labelspace.training.checkpoints import fingerprint
from labelspace.training.early_stopping import VALIDATION_K, r_precision
from labelspace.training.epochs import batch_schedule, run_epochs
from labelspace.training.optimizers import RowAdam
from labelspace.types import Csr, Floats, Ints, LabelSpace, Longs, TopK

if TYPE_CHECKING:
    from torch import Tensor

    from labelspace.models.text2text.constrained_decoding import Vectors
    from labelspace.models.text2text.prompt import Prompt
    from labelspace.models.text2text.t5 import T5

STEPS = 3_000  # batches that suffice to learn from nothing
EPOCHS = (10, 40)  # fewest and most that are chosen
TUNING = 3  # epochs that suffice where weights are pretrained
RATE, TOKEN_RATE, TUNED_RATE = 0.001, 0.015, 0.0003  # from nothing, of the vectors of tokens; of what is pretrained
SPREAD = 0.3  # of the numbers of a token's vector, before it has learned
WARMING = 0.05  # of all steps, over which rates rise
SMALL = 50_000_000  # weights: with no more, answers are computed in float64, so that one alone is as in a batch
ROW_BLOCK = 64  # documents a task
SORTED = 20  # batches whose documents are sorted by length, so that few places are empty

Halves = npt.NDArray[np.float16]


class Text2Text(Model):
    """Labels written as text, along the paths that exist.

    >>> texts = [f"title: {thing} {i}" for i in range(40) for thing in ("tea", "soap")]
    >>> Y = np.tile(np.array([[1, 0, 1, 0], [0, 1, 0, 1]]), (40, 1))
    >>> labels = LabelSpace(["kind: Drinks", "kind: Care", "brand: Leaf", "brand: Foam"])
    >>> model = Text2Text(embedding_dim=16, n_heads=2, hidden_dim=32, epochs=8).fit(texts, Y, labels=labels)
    >>> sorted(labels.names[label] for label in model.predict_topk(["title: soap 3"], k=2).labels[0])
    ['brand: Foam', 'kind: Care']
    """

    name = "text2text"
    title = "text-to-text: a T5 that writes labels, along paths that exist (Pathak, 2024; Raffel et al., 2020)"
    choose_when = "rows of a table are to be filled in, or there is a pretrained T5 to fine-tune"
    view = TEXT
    probabilities_by_column = True
    resumes_training = True
    pretrained: str | None = param(
        None,
        optional(Constraint("a folder or the name of a T5", lambda value: isinstance(value, str) and value != "")),
        "Folder or hub name of a T5 to fine-tune; none trains from nothing.",
    )
    embedding_dim: int = param(128, integer(1), "Dimension of token embeddings.")
    n_layers: int = param(1, integer(1), "Layers of encoder and of decoder.")
    n_heads: int = param(8, integer(1), "Attention heads.")
    hidden_dim: int = param(256, integer(1), "Units of the feed-forward layers.")
    vocab_size: int = param(4_000, integer(1), "Maximum number of tokens of a tokenizer that is learned.")
    max_length: int = param(128, integer(1), "Tokens of a document that are read.")
    epochs: int | None = param(
        None, optional(integer(1)), "Number of epochs; none chooses it by the number of documents."
    )
    batch_size: int = param(64, integer(1), "Maximum batch size.")
    learning_rate: float | None = param(
        None, optional(real(above=0)), "Learning rate; none takes the default for training or fine-tuning."
    )
    token_learning_rate: float | None = param(
        None, optional(real(above=0)), "Learning rate of token embeddings; none takes the default."
    )
    dropout: float = param(0.05, real(at_least=0, below=1), "Share of hidden units dropped in training.")
    token_dropout: float = param(0.3, real(at_least=0, below=1), "Share of a document's tokens dropped in training.")
    clip_norm: float = param(1.0, real(above=0), "Gradients are clipped to this norm.")
    patience: int | None = param(
        None,
        optional(integer(1)),
        "Stop after this many epochs without improvement on validation documents; none runs all epochs.",
    )
    beam_size: int = param(16, integer(1), "Beam size of constrained decoding.")
    random_state: int = param(0, integer(0), "Seed of everything drawn at random.")

    shape_: dict[str, Any] = learned()  # of the T5
    weights_: Halves = learned()  # (n_weights,)
    vectors_: Halves = learned()  # (n_tokens, dimension)
    outputs_: Halves = (
        learned()
    )  # (n_tokens, dimension) the vectors that score tokens, where they are others; else (0, 0)
    pieces_: npt.NDArray[np.uint8] = learned()  # the tokenizer's JSON
    names_: Ints = learned()  # of Answers
    starts_: Longs = learned()
    carries_: Csr = learned()
    counts_: Floats = learned()  # (n_answers,) documents that gave each
    course_: list[float] = learned()  # the accuracy after each epoch, where documents were held out

    def check_params(self) -> None:
        """Hold every parameter against its rule, and see that the packages are there: no data is needed for that."""
        super().check_params()
        if self.embedding_dim % self.n_heads:
            raise ParameterError(
                f"dimension of text2text must be a multiple of heads, but is {self.embedding_dim} with {self.n_heads} heads; "
                "change one of the two"
            )
        for package in ("torch", "tokenizers", *(["transformers"] if self.pretrained else [])):
            require(package, EXTRA)

    def _fit(self, X: Any, Y: Csr, context: FitContext) -> None:  # noqa: ANN401 - texts
        from labelspace.training.torch_optimizer import single_thread

        X, Y, held = context.early_stopping_split(X, Y, self.patience, self.random_state)
        answers, given = build_targets(Y, self._labels())
        self.names_, self.starts_, self.carries_ = answers.names, answers.starts, answers.carries
        self.counts_ = np.asarray(given.sum(axis=0), np.float32).ravel()
        self.course_ = []
        with single_thread(), threadpool_limits(1, user_api="blas"):
            net = self._begin(X)
            task = _Task(self, net, self._question(), X, given, held, context)
            if self.pretrained is None:
                task.begin_by_company()
            self.course_ = task.learn()
        self.weights_, self.vectors_ = net.descent.weights.value.astype(np.float16), net.vectors.astype(np.float16)
        self.outputs_ = net.outputs.astype(np.float16)

    def _begin(self, texts: Sequence[str]) -> _Net:
        """The tokenizer of step 2, and the net before it has learned."""
        from labelspace.models.text2text.t5 import T5, Shape

        if self.pretrained is not None:
            from labelspace.models.text2text.pretrained import load_t5

            found = load_t5(self.pretrained)
            self.pieces_, self.shape_ = found.pieces.json, asdict(found.shape)
            return _Net(t5_of(self.shape_, found.weights), found.vectors, found.outputs)
        pieces, rng = Pieces.learned(texts, self.vocab_size), np.random.default_rng(self.random_state)
        head = self.embedding_dim // self.n_heads
        shape = Shape(self.embedding_dim, self.n_heads, head, self.hidden_dim, self.n_layers, self.n_layers)
        self.pieces_, self.shape_ = pieces.json, asdict(shape)
        t5 = T5(shape)
        t5.begin(rng)
        n_tokens = len(pieces) + len(target_names(self._labels())) + len(self.starts_) - 1
        vectors = np.float32(SPREAD) * rng.standard_normal((n_tokens, self.embedding_dim), np.float32)
        return _Net(t5, vectors, np.zeros((0, 0), np.float32))

    def _labels(self) -> LabelSpace:
        return self.labels_ or LabelSpace.numbered(self.n_labels_)

    def _question(self) -> Prompt:
        """Steps 1 and 2, once there are answers and a tokenizer."""
        from labelspace.models.text2text.prompt import Prompt

        make = Prompt.in_names if self.pretrained is None else Prompt.quantize_int16
        answers = Answers(self.names_, self.starts_, self.carries_)
        return make(Pieces(self.pieces_), self._labels(), answers, self.counts_, self.max_length)

    def report(self) -> dict[str, Any]:
        """The number of parameters, the parts of the question with their answers, and how the training went."""
        self.check_fitted()
        told = {
            "parameters": int(self.weights_.size + self.vectors_.size + self.outputs_.size),
            "answers": np.diff(self.starts_).tolist(),
        }
        return {**told, "accuracies": self.course_} if self.course_ else told

    def _predict(self, X: Any, k: int) -> TopK:  # noqa: ANN401 - texts
        for package in ("torch", "tokenizers"):
            require(package, EXTRA)
        from labelspace.training.torch_optimizer import single_thread

        question, net, vectors = self._answerer
        documents = question.documents(X)
        order = np.argsort([len(tokens) for tokens in documents], kind="stable")
        top = TopK.empty(len(documents), k)

        def answer(start: int, stop: int) -> None:
            rows = order[start:stop]
            found = question.answer(net, vectors, [documents[row] for row in rows], self.beam_size, k)
            top.labels[rows], top.scores[rows] = found.labels, found.scores

        with single_thread():
            run_blocks(answer, len(documents), ROW_BLOCK)
        return top

    @cached_property
    def _answerer(self) -> tuple[Prompt, T5, Vectors]:
        """What is derived from the state, on first use."""
        import torch

        from labelspace.models.text2text.constrained_decoding import Vectors

        tables = [torch.from_numpy(self.vectors_.astype(np.float32))]
        if self.outputs_.size:
            tables.append(torch.from_numpy(self.outputs_.astype(np.float32)))
        t5, vectors = t5_of(self.shape_, self.weights_).requires_grad_(False), Vectors.of_all(tables)
        if self.weights_.size <= SMALL:
            t5, vectors = t5.double(), vectors.double()
        return self._question(), t5, vectors


class _Net:
    """A T5 with the vectors of its tokens, while it learns."""

    def __init__(self, t5: T5, vectors: Floats, outputs: Floats) -> None:
        from labelspace.training.torch_optimizer import Descent

        self.t5, self.vectors, self.outputs, self.n_steps = t5, vectors, outputs, 0
        self.descent = Descent(t5, "rate or token_rate")
        self.tables = [table for table in (vectors, outputs) if table.size]
        self.adams = [RowAdam(*table.shape) for table in self.tables]

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All that changes with a step."""
        weights = self.descent.weights
        found: dict[str, npt.NDArray[Any]] = {
            "weights": weights.value,
            "means": weights.mean,
            "squares": weights.square,
        }
        for i, (table, adam) in enumerate(zip(self.tables, self.adams, strict=True)):
            found |= {f"table{i}": table, f"means{i}": adam.mean, f"squares{i}": adam.square, f"steps{i}": adam.n_steps}
        return found

    def some_vectors(self, tokens: Ints) -> tuple[Vectors, list[Tensor]]:
        """The vectors of some tokens, each named once, and the tensors that will have a gradient."""
        import torch

        from labelspace.models.text2text.constrained_decoding import Vectors

        rows = [torch.from_numpy(table[tokens]).requires_grad_() for table in self.tables]
        return Vectors(tokens, rows[0], rows[-1]), rows

    def all_vectors(self) -> Vectors:
        """The vectors of all tokens."""
        import torch

        from labelspace.models.text2text.constrained_decoding import Vectors

        return Vectors.of_all([torch.from_numpy(table) for table in self.tables])


def t5_of(shape: dict[str, Any], weights: npt.NDArray[Any]) -> T5:
    """A T5 with these weights, in the order of its parameters."""
    import torch
    from torch.nn.utils import vector_to_parameters

    from labelspace.models.text2text.t5 import T5, Shape

    net = T5(Shape(**shape))
    vector_to_parameters(torch.from_numpy(weights.astype(np.float32)), net.parameters())
    return net


class _Task:
    """What a net learns from."""

    def __init__(
        self, model: Text2Text, net: _Net, question: Prompt, texts: Sequence[str], given: Csr,
        held: tuple[Sequence[str], Csr] | None, context: FitContext,
    ) -> None:  # fmt: skip
        labeled = np.flatnonzero(np.diff(given.indptr))
        self.model, self.net, self.question, self.context = model, net, question, context
        self.given = given[labeled]
        self.documents = question.documents([texts[row] for row in labeled.tolist()])
        self.held = None if held is None else (question.documents(held[0]), held[1])
        self.lengths = np.array([len(tokens) for tokens in self.documents])
        tuned = model.pretrained is not None
        bounds = (TUNING, TUNING) if tuned else EPOCHS
        self.batch_size, self.epochs = batch_schedule(len(labeled), model.batch_size, model.epochs, STEPS, bounds)
        self.learning_rate = model.learning_rate or (TUNED_RATE if tuned else RATE)
        self.token_learning_rate = model.token_learning_rate or (TUNED_RATE if tuned else TOKEN_RATE)
        self.tokens = int(self.lengths.sum()) + self.given.nnz  # of one epoch
        parts = [(self.documents, self.given), *([] if self.held is None else [self.held])]
        tables = [table for tokens, truth in parts for table in (table_of(tokens, len(net.vectors)), truth)]
        self.what = {"params": model.get_params(), "data": fingerprint(*tables)}

    def begin_by_company(self) -> None:
        """Bring the vectors of the pieces of words near to those of the names that they stand with."""
        answers, vectors, n_pieces = self.question.answers, self.net.vectors, len(self.question.pieces)
        names = self.given @ answers.incidence(len(vectors) - n_pieces - answers.n_parts)
        by_chance, of_names = vectors[:n_pieces], vectors[n_pieces : n_pieces + names.shape[1]]
        tokens = table_of(self.documents, n_pieces)
        vectors[:n_pieces] = cooccurrence_init(tokens, names, of_names, by_chance)

    def learn(self) -> list[float]:
        """Steps 3 and 4; the accuracies after each epoch come back, where there are documents to stop by."""
        course = run_epochs(
            self.net, self.epochs, self._epoch, None if self.held is None else self._accuracy, self.model.patience,
            self.what, self.context.checkpoint,
        )  # fmt: skip
        if 0 < len(course) < self.epochs:  # it has stopped early
            self.context.progress("tokens", self.epochs * self.tokens, self.epochs * self.tokens)
        return course

    def _epoch(self, epoch: int) -> None:
        """One pass over the documents; what is drawn depends on the seed and the epoch's number alone."""
        rng = np.random.default_rng([self.model.random_state, epoch])
        batches = self._batches(rng)
        done, all_tokens = epoch * self.tokens, self.epochs * self.tokens
        for at, rows in enumerate(batches):
            now = (epoch * len(batches) + at) / (self.epochs * len(batches))
            self._step(rows, min((now + 1e-3) / WARMING, 1.0 - now), rng)
            done += int(self.lengths[rows].sum() + np.diff(self.given.indptr)[rows].sum())
            self.context.progress("tokens", done, all_tokens)

    def _batches(self, rng: np.random.Generator) -> list[Ints]:
        """All documents by chance, but those of a batch of about one length."""
        order, found = rng.permutation(len(self.documents)), []
        for start in range(0, len(order), SORTED * self.batch_size):
            rows = order[start : start + SORTED * self.batch_size]
            rows = rows[np.argsort(self.lengths[rows], kind="stable")]
            found += [rows[i : i + self.batch_size] for i in range(0, len(rows), self.batch_size)]
        return [found[i] for i in rng.permutation(len(found))]

    def _step(self, rows: Ints, left: float, rng: np.random.Generator) -> None:
        """Learn from some documents; ``left`` is the share of the rates that holds now."""
        import torch

        from labelspace.models.text2text.constrained_decoding import lost
        from labelspace.models.text2text.prompt import padded

        net, model, question = self.net, self.model, self.question
        net.n_steps += 1
        tokens, there = padded([self.documents[row] for row in rows])
        tokens = question.dropped(tokens, there, model.token_dropout, rng)
        known = np.unique(np.append(question.tokens, tokens))
        vectors, touched = net.some_vectors(known)
        net.t5.drop.share, net.t5.drop.rng = model.dropout, rng
        memory = net.t5.read(vectors.of(tokens), torch.from_numpy(there))
        given, total, first = self.given[rows], torch.zeros(()), 0
        for part in question.parts:
            mine = given[:, first : first + len(part.paths)]
            first += len(part.paths)
            owner = np.repeat(np.arange(len(rows)), np.diff(mine.indptr))
            read = memory if len(owner) == len(rows) else memory.rows(torch.from_numpy(owner))  # one answer each
            total = total + lost(net.t5, vectors, read, part, mine.indices)
        net.t5.drop.rng = None
        if not total.requires_grad:  # there is one answer alone to each part
            return
        net.descent.descend(total / len(rows), model.clip_norm, self.learning_rate * left, net.n_steps)
        for table, adam, tensor in zip(net.tables, net.adams, touched, strict=True):
            assert tensor.grad is not None
            table[known] += adam.steps(known, tensor.grad.numpy(), self.token_learning_rate * left)

    def _accuracy(self) -> float:
        """How right the answers to the documents are that were held out."""
        assert self.held is not None
        documents, truth = self.held
        vectors, tops = self.net.all_vectors(), []
        for start in range(0, len(documents), ROW_BLOCK):
            block = documents[start : start + ROW_BLOCK]
            tops.append(self.question.answer(self.net.t5, vectors, block, self.model.beam_size, VALIDATION_K))
        labels, scores = (np.concatenate([getattr(top, what) for top in tops]) for what in ("labels", "scores"))
        return r_precision(TopK(labels, scores), truth)
