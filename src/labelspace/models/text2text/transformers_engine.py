"""The engine ``transformers``: its T5ForConditionalGeneration, trained on its own loss, decoded by its ``generate``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from scipy.special import softmax
from torch import Tensor
from transformers import GenerationConfig
from transformers.modeling_outputs import BaseModelOutput

from labelspace.models.text2text.constrained_decoding import labels_of_targets
from labelspace.models.text2text.pretrained import silent, weight_arrays
from labelspace.models.text2text.targets import MISSING
from labelspace.models.text2text.tokenization import END, START, Tokenization, Tokens, pad, until_end
from labelspace.models.text2text.training import TrainedNetwork, Trainer
from labelspace.types import Csr, Doubles, Floats, Ints, LabelSpace, Rng, TopK

IGNORED = -100  # the label of padding in the loss of transformers
MAX_LOGITS = 2**24  # computed at once, which bounds memory

_T5: TypeAlias = Any  # transformers has no types


class TransformersNetwork(TrainedNetwork):
    """A T5 of transformers."""

    def __init__(self, t5: _T5) -> None:
        super().__init__(t5, "learning_rate")
        self.t5, self.token_embeddings = t5, t5.shared.weight.detach().numpy()

    def weights(self) -> tuple[Floats, Floats, Floats]:
        """Return the weights of the T5, the token embeddings, and the output embeddings, (0, 0) if tied."""
        return weight_arrays(self.t5)


class TransformersTrainer(Trainer):
    """Trains a T5 of transformers on its own loss: cross-entropy of the targets' tokens over the whole vocabulary."""

    net: TransformersNetwork
    generator: Generator

    def _run_epoch(self, epoch: int) -> None:
        seed = np.random.SeedSequence([self.model.random_state, epoch]).generate_state(1)[0]
        with torch.random.fork_rng(devices=[]):  # dropout is drawn from torch's own generator
            torch.manual_seed(int(seed))
            self.net.t5.train()
            super()._run_epoch(epoch)

    def _step(self, rows: Ints, lr_factor: float, rng: Rng) -> None:
        self.net.n_steps += 1
        tokens, is_token = pad([self.documents[row] for row in rows])
        tokens = self.tokenization.drop_tokens(tokens, is_token, self.model.token_dropout, rng)
        Y_targets = self.Y_targets[rows]
        repeated = np.repeat(np.arange(len(rows)), np.diff(Y_targets.indptr))  # once per target
        targets = [self.tokenization.target_sequences[target] for target in Y_targets.indices]
        loss = sequence_loss(self.net.t5, tokens[repeated], is_token[repeated], targets)
        self.net.descent.step(loss, self.model.clip_norm, self.learning_rate * lr_factor, self.net.n_steps)

    def _predict_labels(self, documents: Tokens, k: int) -> TopK:
        self.net.t5.eval()
        return self.generator.predict_labels(documents, k)


def sequence_loss(t5: _T5, tokens: Ints, is_token: npt.NDArray[np.bool_], targets: Tokens) -> Tensor:
    """Return the mean cross-entropy of the tokens of targets, one target per document (teacher forcing)."""
    labels, has_label = pad(targets)
    labels = np.where(has_label, labels, IGNORED)
    inputs, mask, expected = (torch.from_numpy(part.astype(np.int64)) for part in (tokens, is_token, labels))
    loss: Tensor = t5(input_ids=inputs, attention_mask=mask, labels=expected).loss
    return loss


class Generator:
    """Decoding by ``generate``: free, or constrained to the targets that exist."""

    def __init__(
        self, t5: _T5, tokenization: Tokenization, reader: LabelReader | None, n_beams: int, settings: dict[str, Any]
    ) -> None:
        self.t5, self.tokenization, self.reader = t5, tokenization, reader  # a reader decodes freely
        self.n_beams = n_beams
        self.config = GenerationConfig(  # type: ignore[no-untyped-call]
            **{**settings, "num_beams": self.n_beams},
            num_return_sequences=self.n_beams,
            do_sample=False,
            max_new_tokens=max(map(len, tokenization.target_sequences)),
            decoder_start_token_id=START,
            pad_token_id=START,
            eos_token_id=END,
        )
        self.groups = [
            TargetGroup(tokenization.target_sequences[span], span.start) for span in tokenization.targets.group_spans
        ]

    def predict_labels(self, documents: Tokens, k: int) -> TopK:
        """Return the best labels of documents, by the probabilities of the sequences that are generated."""
        with torch.no_grad(), silent():
            if self.reader is not None:
                sequences, log_p = self._generate(documents, None)
                texts = self.tokenization.tokenizer.decode(sequences)
                return TopK.from_sparse(self.reader.label_scores(texts, softmax(log_p, axis=1)), k)
            return labels_of_targets(self._target_probabilities(documents), self.tokenization.targets, k)

    def generate(self, documents: Tokens) -> list[str]:
        """Return the best text for each document."""
        groups = [None] if self.reader is not None else self.groups
        with torch.no_grad(), silent():
            by_group = [self._generate(documents, group)[0][:: self.n_beams] for group in groups]
        return [" ".join(texts) for texts in zip(*map(self.tokenization.tokenizer.decode, by_group), strict=True)]

    def _target_probabilities(self, documents: Tokens) -> Csr:
        """Return the probability of each generated target (n, n_targets), 0 of others; a group adds up to 1 at most."""
        P = np.zeros((len(documents), len(self.tokenization.target_sequences)))
        for group in self.groups:
            sequences, log_p = self._generate(documents, group)
            found = np.array([group.target_of.get(tuple(tokens), -1) for tokens in sequences])
            documents_of = np.arange(len(sequences)) // self.n_beams
            known = found >= 0  # there may be fewer targets than beams
            P[documents_of[known], found[known]] = np.exp(log_p.ravel()[known])
        return sp.csr_matrix(P)

    def _generate(self, documents: Tokens, group: TargetGroup | None) -> tuple[Tokens, Doubles]:
        """Return the sequences of all documents, ``n_beams`` for each, and their log-probabilities (n, n_beams)."""
        tokens, is_token = (torch.from_numpy(part.astype(np.int64)) for part in pad(documents))
        encoded = self.t5.get_encoder()(input_ids=tokens, attention_mask=is_token).last_hidden_state
        allowed = None if group is None else (lambda _, ids: group.allowed(ids.tolist()[1:]))
        generated = self.t5.generate(
            encoder_outputs=BaseModelOutput(encoded),
            attention_mask=is_token,
            generation_config=self.config,
            prefix_allowed_tokens_fn=allowed,
        )
        sequences = [until_end(row) for row in generated[:, 1:].tolist()]
        log_p = np.empty(len(sequences))
        longest = max(map(len, sequences))
        step = max(1, MAX_LOGITS // (longest * self.t5.config.vocab_size))
        for start in range(0, len(sequences), step):
            part = slice(start, start + step)
            rows = torch.arange(len(sequences))[part] // self.n_beams
            log_p[part] = self._log_p(encoded[rows], is_token[rows], sequences[part], group)
        return sequences, log_p.reshape(len(documents), self.n_beams)

    def _log_p(self, encoded: Tensor, is_token: Tensor, sequences: Tokens, group: TargetGroup | None) -> Doubles:
        """Return the log-probability of each document's sequence, over the vocabulary or the tokens that may follow."""
        given, exists = (torch.from_numpy(part) for part in pad(sequences))
        shifted = torch.nn.functional.pad(given, (1, 0), value=START)[:, :-1].long()
        outputs: Any = BaseModelOutput(encoded)  # type: ignore[arg-type]
        logits = self.t5(encoder_outputs=outputs, attention_mask=is_token, decoder_input_ids=shifted).logits.double()
        if group is not None:
            may_follow = torch.zeros(logits.shape, dtype=torch.bool)
            for row, tokens in enumerate(sequences):
                for at in range(len(tokens)):
                    may_follow[row, at, group.allowed(tokens[:at])] = True
            logits = logits.masked_fill(~may_follow, -torch.inf)
        log_p = logits.log_softmax(2).gather(2, given.long()[:, :, None])[:, :, 0]
        return np.asarray(log_p.masked_fill(~exists, 0.0).sum(1).numpy())


class TargetGroup:
    """The token sequences of the targets of one column group."""

    def __init__(self, sequences: Tokens, first: int) -> None:
        self.target_of = {tuple(tokens): first + i for i, tokens in enumerate(sequences)}
        self.following: dict[tuple[int, ...], set[int]] = {}  # by prefix, the tokens that may follow it
        for tokens in self.target_of:
            for at, token in enumerate(tokens):
                self.following.setdefault(tokens[:at], set()).add(token)

    def allowed(self, prefix: Sequence[int]) -> list[int]:
        """Return the tokens that may follow a prefix; the end token after a prefix that no target has."""
        return list(self.following.get(tuple(prefix), [END]))


WHOLE = ""  # the only "column" of labels that are not those of a table


class LabelReader:
    """Reads the labels in freely generated texts by the output template, and counts texts that cannot be read.

    Texts are compared as the tokenizer returns them after encoding and decoding, which for instance folds spaces.
    """

    def __init__(self, tokenization: Tokenization, labels: LabelSpace) -> None:
        assert tokenization.output is not None
        self.tokenizer, self.template, self.n_labels = tokenization.tokenizer, tokenization.output, len(labels)
        self.normalize = cache(lambda text: self._normalized([text])[0])
        self.counts = Counter({"documents": 0, "malformed": 0, "unknown_values": 0})
        is_table = bool(self.template.markers)
        names = [name.split(": ", 1) if is_table else [WHOLE, name] for name in labels.names]
        self.ids: dict[str, dict[str, int]] = {column: {} for column in (self.template.markers or [WHOLE])}
        for i, value in enumerate(self._normalized([value for _, value in names])):
            if value:  # not all of unknown characters
                self.ids[names[i][0]].setdefault(value, i)
        self.missing = self.normalize(MISSING) if is_table else None
        self.implied = identity = sp.identity(self.n_labels, np.float32, format="csr")
        if not is_table:  # a label of a hierarchy brings its ancestors along
            targets = tokenization.targets.label_ids[:, 0]
            unseen = sp.diags(1.0 - np.isin(np.arange(self.n_labels), targets))
            implied = identity[:, targets] @ tokenization.targets.label_shares + unseen
            self.implied = implied.tocsr().astype(np.float32)

    def read(self, text: str) -> tuple[list[int], bool, bool]:
        """Return the labels of a text; whether it has all markers, and whether all its values are known."""
        values = {WHOLE: " ".join(text.split())}
        if self.missing is not None:
            values = self.template.read(text, self.normalize)
        known = [(column, value) for column, value in values.items() if value in self.ids[column]]
        absent = sum(value == self.missing for column, value in values.items() if value not in self.ids[column])
        labels = [self.ids[column][value] for column, value in known]
        return labels, len(values) == len(self.ids), len(known) + absent == len(values)

    def label_scores(self, texts: Sequence[str], probabilities: Doubles) -> Csr:
        """Return scores (n, n_labels): the probabilities (n, n_beams) of the texts with a label; best text first."""
        n, n_beams = probabilities.shape
        rows, columns, values = [], [], []
        for i, text in enumerate(texts):
            labels, is_whole, is_known = self.read(text)
            rows += [i // n_beams] * len(labels)
            columns += labels
            values += [float(probabilities[i // n_beams, i % n_beams])] * len(labels)
            if i % n_beams == 0:
                self.counts.update(documents=1, malformed=int(not is_whole), unknown_values=int(not is_known))
        scores = sp.csr_matrix((np.array(values, np.float32), (rows, columns)), shape=(n, self.n_labels))
        return (scores @ self.implied).tocsr()

    def _normalized(self, texts: Sequence[str]) -> list[str]:
        """Return the texts as the tokenizer gives them back."""
        return [" ".join(text.split()) for text in self.tokenizer.decode(self.tokenizer.encode(texts))]
