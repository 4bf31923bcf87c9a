"""text2text: a T5 reads a document and writes its labels, constrained to targets that exist.

After Pathak, "Hierarchical Label Embedding for Xtreme Multi-Label Classification" (IIT Kharagpur, 2024), who fine-tunes
T5 (Raffel et al., 2020) to write ``details_Brand: ... L0_category: ... L4_category: ...`` for a product.

1. Build the targets. Of a table, columns that the hierarchy links form a group, whose targets are paths such as
   ``L0_category: Beauty L1_category: Skin Care``; any other column is a group by itself, as in ``brand: Nivea``; a
   column without a value is ``NA``. Other data has one group, and each label of a document is a target.
2. Tokenize. With ``pretrained``, the T5's tokenizer reads the prompt: instruction and text. Else a subword tokenizer is
   trained, each label is one token, and the embeddings of subwords start near those of the labels they occur with.
3. Encode the document, with some tokens dropped (``token_dropout``), and decode the targets of each group by itself.
   Only tokens that lead to an existing target are scored; the loss is the negative log-probability.
4. Train by Adam with gradients clipped at ``clip_norm``; the embeddings of a batch's tokens by a row-wise Adam. The
   learning rate rises linearly in a short warmup and falls linearly to 0.
5. Predict: beam search over the prefix trie of each group (``beam_size``). The score of a label is the sum of the
   probabilities of the targets that carry it; an ancestor of a target gets that times the share of the target's
   training documents that carry both.

The preset ``paper`` is Pathak's: the T5 of transformers (``engine``) reads his ``prompt``, is trained on one sequence,
brand first (``one_sequence``), by the cross-entropy over the vocabulary, and what it generates freely (``decoding``) is
parsed by the ``output`` template; what cannot be parsed counts as nothing. Where we differ, and why: groups are decoded
independently, so that their probabilities are exact, and no output is malformed. Training from scratch has no
instruction: one that is always the same says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from labelspace import store
from labelspace.errors import ParameterError, require
from labelspace.estimator import learned, param
from labelspace.estimator.parameter_constraints import AllBut, boolean, integer, list_of, one_of, optional, real
from labelspace.estimator.state_constraints import array, must, part, plain
from labelspace.features.views import TEXT
from labelspace.kernels.threads import run_blocks
from labelspace.models import parameters
from labelspace.models.base import Model
from labelspace.models.batched_prediction import overfetch
from labelspace.models.fit_context import FitContext
from labelspace.models.text2text.config import FOLDER_OR_NAME, T5_CONFIG, USUAL_BATCH_SIZE, T5Config, own_config
from labelspace.models.text2text.targets import Targets, build_targets, target_names
from labelspace.models.text2text.templates import DEFAULT_OUTPUT, OUTPUT, PAPER_PROMPT, PROMPT
from labelspace.models.text2text.tokenization import EXTRA, SubwordTokenizer, Tokenization
from labelspace.types import Bools, Csr, LabelSpace, TopK

if TYPE_CHECKING:
    from labelspace.models.text2text.constrained_decoding import ConstrainedDecoder
    from labelspace.models.text2text.training import Network, Split, Trainer
    from labelspace.models.text2text.transformers_engine import Generator

EMBEDDING_STD = 0.3  # of random token embeddings
MAX_FLOAT64_WEIGHTS = 50_000_000  # up to here, predictions are in float64: the same for a document alone and in a batch
ROW_BLOCK = 64  # documents per task

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
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {  # pages of Pathak (2024) on "Transformer as a seq-to-seq model" and "Implementing T5"
            "pretrained": "google-t5/t5-base",  # a pretrained T5; its size is not stated
            "engine": "transformers",
            "one_sequence": True,  # details_Brand: ... L0_category: ... L4_category: ...
            "prompt": PAPER_PROMPT,
            "prior": False,
            "decoding": "free",
            "beam_size": None,  # not stated: the settings of the pretrained T5
            "dropout": 0.1,  # of T5 (Raffel et al., 2020)
            "token_dropout": 0.0,  # nosec B105 - a rate, no password
            "max_length": 512,  # of T5
        }
    }

    pretrained: str | None = param(
        None, FOLDER_OR_NAME, "Folder or hub name of a T5 to fine-tune; none trains from scratch."
    )
    engine: str = param("own", one_of("own", "transformers"), "Whose T5: our own, or T5ForConditionalGeneration.")
    one_sequence: bool = param(False, boolean(), "Write all columns of a table as one sequence, not by column groups.")
    prompt: str | None = param(
        None, PROMPT, "What a pretrained T5 reads: a template with {text} and {columns}."
    ).only_with(pretrained=AllBut(None))
    output: str = param(
        DEFAULT_OUTPUT, OUTPUT, "What a pretrained T5 writes: a template for the values of columns."
    ).only_with(pretrained=AllBut(None))
    prior: bool | None = param(
        None, boolean(), "Add the log share of a token among training targets to its logit; none: with engine own."
    )
    decoding: str = param(
        "constrained", one_of("constrained", "free"), "Write targets that exist, or any text, which is then parsed."
    )
    embedding_dim: int = param(128, integer(1), "Dimension of token embeddings.").only_with(pretrained=None)
    n_layers: int = param(1, integer(1), "Layers of encoder and of decoder.").only_with(pretrained=None)
    n_heads: int = param(8, integer(1), "Attention heads.").only_with(pretrained=None)
    hidden_dim: int = param(256, integer(1), "Units of the feed-forward layers.").only_with(pretrained=None)
    vocab_size: int = param(4_000, integer(1), "Maximum number of tokens of a tokenizer that is learned.").only_with(
        pretrained=None
    )
    max_length: int = param(128, integer(1), "Maximum number of tokens of a document.")
    epochs: int | None = parameters.epochs()
    batch_size: int | None = parameters.batch_size(USUAL_BATCH_SIZE)
    learning_rate: float | None = param(None, real(above=0), "Learning rate; none takes the default.")
    token_learning_rate: float | None = param(
        None, real(above=0), "Learning rate of token embeddings; none takes the default."
    ).only_with(engine="own")
    dropout: float = parameters.dropout(0.05)
    token_dropout: float = param(0.3, real(at_least=0, below=1), "Share of a document's tokens dropped in training.")
    clip_norm: float = parameters.clip_norm(1.0)
    patience: int | None = parameters.patience()
    beam_size: int | None = param(
        16, optional(integer(1, at_most=1000)), "Beam size of decoding; none takes that of the pretrained T5."
    )
    random_state: int = parameters.random_state()

    t5_config_: dict[str, Any] = learned(plain(T5_CONFIG))  # the fields of T5Config
    weights_: Halves = learned(array("float16", "n_weights"))
    token_embeddings_: Halves = learned(array("float16", "n_tokens", "embedding_dim"))
    # (n_tokens, embedding_dim); (0, 0) where tied to the token embeddings.
    output_embeddings_: Halves = learned(array("float16", "n_outputs", "output_dim"))
    tokenizer_: npt.NDArray[np.uint8] = learned(array("uint8", "n_bytes"))  # JSON
    targets_: Targets = learned(part(Targets, n_labels="n_labels"))
    validation_scores_: list[float] = learned(plain(list_of(real())))  # R-precision after each epoch, with ``patience``

    def sizes(self) -> dict[str, int]:
        """Return the sizes of the network."""
        config = own_config(self.t5_config_)
        return {**super().sizes(), "embedding_dim": config.embedding_dim, "n_weights": config.n_weights}

    def check_state(self) -> None:
        """Parameters go together, the configuration is that of the engine, and output embeddings are of the tokens."""
        for wrong, rule, _ in self._conflicts():
            must(not wrong, f"parameters that go together ({rule})")
        must(("generation" in self.t5_config_) == (self.engine == "transformers"), "a configuration of its engine")
        must(self.output_embeddings_.shape in ((0, 0), self.token_embeddings_.shape), "as many output embeddings")

    def check_params(self) -> None:
        """Check the parameters and that the packages are installed, before any data is read."""
        super().check_params()
        for wrong, rule, change in self._conflicts():
            if wrong:
                raise ParameterError(f"{rule}; {change}")
        for package in ("torch", "tokenizers", *(["transformers"] if self.pretrained else [])):
            require(package, EXTRA)

    def _conflicts(self) -> list[tuple[bool, str, str]]:
        """Whether parameters do not go together, by which rule, and what to change."""
        own = self.engine == "own"
        scratch = self.pretrained is None
        multiple = f"embedding_dim of text2text must be a multiple of n_heads, but is {self.embedding_dim} with "
        return [
            (self.embedding_dim % self.n_heads > 0, f"{multiple}n_heads={self.n_heads}", "change one of the two"),
            (not own and scratch, "engine=transformers needs a pretrained T5, but pretrained is none", "name one"),
            (own and self.decoding == "free", "decoding=free needs engine=transformers, but it is own", "set it so"),
            (own and self.beam_size is None, "beam_size=none needs engine=transformers, but it is own", "set a number"),
            (not own and self.prior is True, "prior=true needs engine=own, but it is transformers", "set prior=false"),
        ]

    def _fit(self, X: Sequence[str], Y: Csr, context: FitContext) -> None:
        from labelspace.training.torch_optimizer import single_thread

        X, Y, validation = context.early_stopping_split(X, Y, self.patience, self.random_state)
        self.targets_, Y_targets = build_targets(Y, self._label_space, self.one_sequence)  # step 1
        if self.decoding == "free" and self.targets_.n_groups > 1:
            raise ParameterError(
                f"decoding=free of text2text must write all columns of a table, but there are {self.targets_.n_groups} "
                "column groups; set one_sequence=true"
            )
        make_trainer = self._own_trainer if self.engine == "own" else self._transformers_trainer
        with single_thread(), threadpool_limits(1, user_api="blas"):
            trainer = make_trainer((X, Y_targets), validation, context)  # step 2
            self.validation_scores_ = trainer.train()  # steps 3 and 4
            weights = trainer.net.weights()
        self.weights_, self.token_embeddings_, self.output_embeddings_ = (part.astype(np.float16) for part in weights)

    def _own_trainer(self, train: Split, *data: Any) -> Trainer:  # noqa: ANN401 - the last arguments of a Trainer
        from labelspace.models.text2text.training import OwnTrainer

        if self.pretrained is None:
            tokenizer, net = self._random_network(train[0])
        else:
            from labelspace.models.text2text.pretrained import load_t5

            tokenizer, net = load_t5(self.pretrained)
        self.tokenizer_, self.t5_config_ = tokenizer.json, asdict(net.t5.config)
        trainer = OwnTrainer(self, net, train, *data)
        if self.pretrained is None:
            trainer.init_token_embeddings()
        return trainer

    def _transformers_trainer(self, *data: Any) -> Trainer:  # noqa: ANN401
        from labelspace.models.text2text.pretrained import load_generator
        from labelspace.models.text2text.transformers_engine import TransformersNetwork, TransformersTrainer

        assert self.pretrained is not None
        tokenizer, t5, self.t5_config_ = load_generator(self.pretrained, self.dropout)
        self.tokenizer_ = tokenizer.json
        trainer = TransformersTrainer(self, TransformersNetwork(t5), *data)
        trainer.generator = self._make_generator(t5, trainer.tokenization)
        return trainer

    def _random_network(self, texts: Sequence[str]) -> tuple[SubwordTokenizer, Network]:
        from labelspace.models.text2text.t5 import T5
        from labelspace.models.text2text.training import Network

        tokenizer, rng = SubwordTokenizer.train(texts, self.vocab_size), np.random.default_rng(self.random_state)
        head_dim = self.embedding_dim // self.n_heads
        config = T5Config(self.embedding_dim, self.n_heads, head_dim, self.hidden_dim, self.n_layers, self.n_layers)
        t5 = T5(config)
        t5.init_weights(rng)
        n_tokens = len(tokenizer) + len(target_names(self._label_space)) + self.targets_.n_groups
        embeddings = np.float32(EMBEDDING_STD) * rng.standard_normal((n_tokens, self.embedding_dim), np.float32)
        return tokenizer, Network(t5, embeddings, np.zeros((0, 0), np.float32))

    @property
    def _label_space(self) -> LabelSpace:
        return self.labels_ or LabelSpace.numbered(self.n_labels_)

    def tokenization(self) -> Tokenization:
        """Return the tokens of the targets, and what makes tokens of documents."""
        prior = self.engine == "own" if self.prior is None else self.prior
        given = (SubwordTokenizer(self.tokenizer_), self._label_space, self.targets_, self.max_length, prior)
        if self.pretrained is None:
            return Tokenization.with_label_tokens(*given)
        return Tokenization.with_label_texts(*given, self.prompt, self.output)

    def _make_generator(self, t5: Any, tokenization: Tokenization) -> Generator:  # noqa: ANN401 - transformers has no types
        from labelspace.models.text2text.transformers_engine import Generator, LabelReader

        reader = LabelReader(tokenization, self._label_space) if self.decoding == "free" else None
        settings = self.t5_config_["generation"]
        return Generator(t5, tokenization, reader, int(self.beam_size or settings.get("num_beams", 1)), settings)

    def _predict(self, X: Sequence[str], k: int, allowed: Bools | None = None) -> TopK:
        if allowed is not None:
            return overfetch(self._predict, X, k, allowed)
        require("torch", EXTRA)
        from labelspace.training.torch_optimizer import single_thread

        decoder = self._decoder if self.engine == "own" else self._generator
        documents = decoder.tokenization.encode(X)
        order = np.argsort([len(tokens) for tokens in documents], kind="stable")
        top = TopK.empty(len(documents), k)

        def predict(start: int, stop: int) -> None:
            rows = order[start:stop]
            block = decoder.predict_labels([documents[row] for row in rows], k)
            top.labels[rows], top.scores[rows] = block.labels, block.scores

        with single_thread():
            if self.engine == "own":
                run_blocks(predict, len(documents), ROW_BLOCK)
            else:  # its generation has no threads of ours
                for start in range(0, len(documents), ROW_BLOCK):
                    predict(start, start + ROW_BLOCK)
        return top

    def generate(self, texts: Sequence[str]) -> list[str]:
        """Return what the T5 of transformers writes for each text, unparsed."""
        from labelspace.training.torch_optimizer import single_thread

        self.check_fitted()
        if self.engine != "transformers":
            raise ParameterError("generate needs engine=transformers, but it is own; use predict_topk")
        documents = self._generator.tokenization.encode(texts)
        with single_thread():
            return [
                text
                for start in range(0, len(documents), ROW_BLOCK)
                for text in self._generator.generate(documents[start : start + ROW_BLOCK])
            ]

    @cached_property
    def _generator(self) -> Generator:
        """Return what ``_predict`` reads with the engine transformers, built on first use."""
        require("transformers", EXTRA)
        from labelspace.models.text2text.pretrained import build_t5

        tokenization = self._checked_tokenization()
        parts = (part.astype(np.float32) for part in (self.weights_, self.token_embeddings_, self.output_embeddings_))
        t5 = build_t5(self.t5_config_, *parts)
        return self._make_generator(t5.double() if self.weights_.size <= MAX_FLOAT64_WEIGHTS else t5, tokenization)

    def _checked_tokenization(self) -> Tokenization:
        """Return the tokenization of a model that may be damaged; its tokenizer and label names are checked here."""
        with store.refusing_damage("the saved text2text"):
            tokenization = self.tokenization()
            largest = max(tokenization.tokenizer.largest_id, int(tokenization.target_tokens[-1]))
            must(largest < len(self.token_embeddings_), f"embeddings of {largest + 1} tokens")
        return tokenization

    @cached_property
    def _decoder(self) -> ConstrainedDecoder:
        """Return what ``_predict`` reads with our own engine, built from the learned state on first use."""
        import torch

        from labelspace.models.text2text.constrained_decoding import ConstrainedDecoder, TokenEmbeddings
        from labelspace.models.text2text.t5 import T5

        tokenization = self._checked_tokenization()
        tables = [table for table in (self.token_embeddings_, self.output_embeddings_) if table.size]
        embeddings = TokenEmbeddings.of_all_tokens([torch.from_numpy(table.astype(np.float32)) for table in tables])
        t5 = T5.from_weights(own_config(self.t5_config_), self.weights_).requires_grad_(False)
        if self.weights_.size <= MAX_FLOAT64_WEIGHTS:
            t5, embeddings = t5.double(), embeddings.double()
        assert self.beam_size is not None
        return ConstrainedDecoder(t5, embeddings, tokenization, self.beam_size)

    def report(self) -> dict[str, Any]:
        """Report the number of weights, the targets of each column group, validation scores, and what was not parsed.

        ``generated`` counts the documents that were decoded freely since the model was fitted or loaded, the documents
        whose text lacks a column (``malformed``), and those with a value that is no label (``unknown_values``).
        """
        self.check_fitted()
        n_weights = int(self.weights_.size + self.token_embeddings_.size + self.output_embeddings_.size)
        report = {"parameters": n_weights, "answers": np.diff(self.targets_.group_starts).tolist()}
        if self.decoding == "free" and (reader := self._generator.reader) is not None:
            report["generated"] = dict(reader.counts)
        return {**report, "accuracies": self.validation_scores_} if self.validation_scores_ else report
