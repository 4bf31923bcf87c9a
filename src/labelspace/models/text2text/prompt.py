"""The prompt: documents with their instruction as encoder tokens, and targets as the decoder's token sequences."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count, product
from typing import Self

import numpy as np

from labelspace.models.text2text.constrained_decoding import PrefixTrie
from labelspace.models.text2text.subwords import SubwordTokenizer, Tokens
from labelspace.models.text2text.t5 import END, START, UNKNOWN
from labelspace.models.text2text.targets import Targets, table_columns, target_names
from labelspace.models.text2text.templates import DEFAULT_OUTPUT, OutputTemplate, split_prompt
from labelspace.types import Bools, Ints, LabelSpace


@dataclass(frozen=True)
class Prompt:
    """The same for all documents."""

    tokenizer: SubwordTokenizer
    targets: Targets
    tries: list[PrefixTrie]  # the token sequences of the targets of each column group
    prefix: list[int]  # tokens of the instruction before the text
    suffix: list[int]  # and after it
    max_length: int  # tokens of a text
    output: OutputTemplate | None = None  # how targets are written; None where each label is a token

    @classmethod
    def with_label_tokens(
        cls, tokenizer: SubwordTokenizer, labels: LabelSpace, targets: Targets, max_length: int, prior: bool = True
    ) -> Self:
        """For training from scratch: each label is one token, each group has its start token; no instruction."""
        first_label = len(tokenizer)
        first_start = first_label + len(target_names(labels))
        tries = [
            PrefixTrie.from_sequences(
                (ids + first_label).astype(np.int32), first_start + i, targets.counts[span] if prior else None
            )
            for i, (ids, span) in enumerate(targets.by_group())
        ]
        return cls(tokenizer, targets, tries, [], [], max_length)

    @classmethod
    def with_label_texts(
        cls, tokenizer: SubwordTokenizer, labels: LabelSpace, targets: Targets, max_length: int, prior: bool = True,
        prompt: str | None = None, output: str = DEFAULT_OUTPUT,
    ) -> Self:  # fmt: skip
        """For a pretrained T5: label names are tokenized like any text, and there is an instruction."""
        names, columns, tries = target_names(labels), table_columns(labels), []
        written = [names[i].partition(": ")[0] for ids, _ in targets.by_group() for i in ids[0].tolist()]
        template = OutputTemplate.of_columns(output, written if columns else [])
        for ids, span in targets.by_group():
            texts = [_written([names[i] for i in row], template) for row in ids.tolist()]
            tokens = disambiguate(tokenizer.encode(texts), len(tokenizer))
            sequences = np.full((len(ids), max(map(len, tokens)) + 1), END, np.int32)
            for sequence, given in zip(sequences, tokens, strict=True):
                sequence[: len(given)] = given
            tries.append(PrefixTrie.from_sequences(sequences, START, targets.counts[span] if prior else None))
        prefix, suffix = tokenizer.encode(list(split_prompt(prompt, columns)))
        return cls(tokenizer, targets, tries, prefix, [*suffix, END], max_length, template)

    @cached_property
    def target_sequences(self) -> Tokens:
        """The tokens of each target, with the end token."""
        sequences = [row for trie in self.tries for row in trie.tree.digit[trie.paths[:, 1:]].tolist()]
        return [row[: row.index(END) + 1] if END in row else row for row in sequences]

    @cached_property
    def target_tokens(self) -> Ints:
        """The tokens of all targets, sorted."""
        return np.unique(np.concatenate([trie.tokens for trie in self.tries]))

    def encode(self, texts: Sequence[str]) -> Tokens:
        """The encoder's input tokens for each text."""
        return [[*self.prefix, *ids, *self.suffix] for ids in self.tokenizer.encode(texts, self.max_length)]

    def drop_tokens(self, tokens: Ints, is_token: Bools, p: float, rng: np.random.Generator) -> Ints:
        """Replace tokens of the texts, drawn at random, by the unknown token."""
        ends = is_token.sum(axis=1, keepdims=True) - len(self.suffix)
        positions = np.arange(tokens.shape[1])
        in_text = (positions >= len(self.prefix)) & (positions < ends)
        return np.where(in_text & (rng.random(tokens.shape, np.float32) < p), np.int32(UNKNOWN), tokens)


def _written(names: Sequence[str], template: OutputTemplate) -> str:
    """Labels ``column: value`` by the template; other labels by their name."""
    return template.write(dict(name.split(": ", 1) for name in names)) if template.markers else " ".join(names)


def pad(documents: Tokens) -> tuple[Ints, Bools]:
    """Tokens (n, longest), and where they are not padding; a document without tokens gets one that is 0."""
    lengths = np.array([max(len(tokens), 1) for tokens in documents])
    is_token = np.arange(lengths.max()) < lengths[:, None]
    padded = np.full(is_token.shape, START, np.int32)
    padded[is_token] = np.concatenate([tokens or [START] for tokens in documents])
    return padded, is_token


def disambiguate(sequences: Tokens, n_tokens: int) -> Tokens:
    """Distinct token sequences: those that are equal to an earlier one get additional tokens at the end.

    A tokenizer encodes all words of an unknown script as unknown, and some encode ``m²`` and ``m2`` alike.

    >>> disambiguate([[2], [2], [2, 3], [2]], n_tokens=9)
    [[2], [2, 2], [2, 3], [2, 4]]
    """
    taken, seen, distinct = set(map(tuple, sequences)), set(), []
    endings: dict[tuple[int, ...], Iterator[tuple[int, ...]]] = {}
    for sequence in map(tuple, sequences):
        if sequence in seen:
            more = endings.setdefault(sequence, _endings(n_tokens))
            distinct.append(next((*sequence, *ending) for ending in more if (*sequence, *ending) not in taken))
            taken.add(distinct[-1])
        else:
            seen.add(sequence)
            distinct.append(sequence)
    return [list(sequence) for sequence in distinct]


def _endings(n_tokens: int) -> Iterator[tuple[int, ...]]:
    """All tokens but start and end, then all pairs of them, and so on."""
    return (ending for length in count(1) for ending in product(range(END + 1, n_tokens), repeat=length))
