"""Texts and labels as tokens: a subword tokenizer, the prefix tries of the targets, and what the T5 reads and writes.

The package ``tokenizers`` comes with ``transformers``; it is imported on first use.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count, product
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from labelspace.data.texts import without_lone_surrogates
from labelspace.errors import ModelError, require
from labelspace.labels.codes import Codes, CodeTree
from labelspace.models.text2text.targets import Targets, table_columns, target_names
from labelspace.models.text2text.templates import DEFAULT_OUTPUT, OutputTemplate, split_prompt
from labelspace.types import Bools, Floats, Ints, LabelSpace, Longs

EXTRA: Final = "text2text"
START, END, UNKNOWN = 0, 1, 2  # tokens that every T5 has: start of decoding (and padding), end of sequence, unknown
SPECIAL_TOKENS: Final = ("<pad>", "</s>", "<unk>")  # the first tokens, in T5's order
_WORDS = r"\w+:(?=\s)|[^\W\d_]+|\d+"  # the name of a field, a word, a number; punctuation says nothing
Json = npt.NDArray[np.uint8]
Tokens = list[list[int]]  # the token ids of each text


class SubwordTokenizer:
    """A tokenizer of the package ``tokenizers``, trained here or pretrained.

    >>> tokenizer = SubwordTokenizer.train(["Brass lamp", "brass bell"], vocab_size=100)
    >>> first, second = tokenizer.encode(["Brass lamp", "brass"], max_length=10)
    >>> second == first[: len(second)], len(tokenizer) <= 100
    (True, True)
    """

    def __init__(self, json: Json) -> None:
        self.json = json
        tokenizers = require("tokenizers", EXTRA)
        try:
            self._tokenizer: Any = tokenizers.Tokenizer.from_str(bytes(json).decode("utf-8"))
        except Exception as error:  # the package raises nothing narrower
            raise ModelError(f"the saved tokenizer must be readable, but is not ({error}); train again") from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int) -> Self:
        """Train byte-pair encoding (BPE) on lower-cased words: the most frequent pair of tokens becomes one."""
        require("tokenizers", EXTRA)
        from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

        tokenizer: Any = Tokenizer(models.BPE(unk_token=SPECIAL_TOKENS[2]))
        tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
        words = pre_tokenizers.Split(Regex(_WORDS), "removed", invert=True)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, pre_tokenizers.Metaspace()])
        special = list(SPECIAL_TOKENS)
        trainer = trainers.BpeTrainer(
            vocab_size=max(vocab_size, len(special)), min_frequency=2, special_tokens=special, show_progress=False
        )
        tokenizer.train_from_iterator(map(without_lone_surrogates, texts), trainer)
        return cls(np.frombuffer(tokenizer.to_str().encode("utf-8"), np.uint8))

    def __len__(self) -> int:
        return int(self._tokenizer.get_vocab_size())

    @property
    def largest_id(self) -> int:
        """Return the largest token id."""
        return max(self._tokenizer.get_vocab().values(), default=0)

    def encode(self, texts: Sequence[str], max_length: int | None = None) -> Tokens:
        """Return the first ``max_length`` tokens of each text."""
        encodable = list(map(without_lone_surrogates, texts))
        encodings = self._tokenizer.encode_batch(encodable, add_special_tokens=False)
        return [encoding.ids[:max_length] for encoding in encodings]

    def decode(self, sequences: Tokens) -> list[str]:
        """Return the text of each sequence of tokens."""
        return list(self._tokenizer.decode_batch(sequences, skip_special_tokens=True))


class PrefixTrie:
    """The targets of one column group as a trie over tokens, which decoding starts with the token ``start``."""

    def __init__(self, sequences: Ints, start: int, counts: Floats | None) -> None:
        """Build a trie of token sequences (n_targets, longest); ``counts`` of documents give a prior, None no prior."""
        self.tree, self.start = CodeTree.from_codes(Codes(sequences, int(sequences.max()) + 1)), start
        # (n_nodes,) log share of each node among the training targets that pass its parent, or 0
        self.log_prior = np.zeros(self.tree.n_nodes, np.float32)
        if counts is not None:
            passing = np.bincount(self.paths.ravel(), np.repeat(counts, self.paths.shape[1]), self.tree.n_nodes)
            self.log_prior = np.log(passing / passing[np.maximum(self.tree.parent, 0)]).astype(np.float32)

    @cached_property
    def paths(self) -> Ints:
        """Return the nodes from the root to each target. Shape (n_targets, longest + 1)."""
        return self.tree.ancestors()

    @cached_property
    def n_children(self) -> Ints:
        """Return the number of tokens that may follow each node."""
        return self.tree.last_child - self.tree.first_child

    @cached_property
    def depth(self) -> int:
        """Return the maximum number of tokens until a single target remains."""
        last = np.flatnonzero(self.n_children > 1).max(initial=-1)
        return int(np.searchsorted(self.tree.level_starts, last, "right"))

    @cached_property
    def single_target(self) -> Ints:
        """Return the target of each node, or -1 for several targets. Shape (n_nodes,)."""
        target = np.empty(self.tree.n_nodes, np.int32)
        target[self.paths] = np.arange(len(self.paths))[:, None]
        target[np.bincount(self.paths.ravel(), minlength=self.tree.n_nodes) > 1] = -1
        return target

    def input_tokens(self, nodes: Ints | Longs) -> Ints:
        """Return the last token of each node's prefix; at the root, the start token."""
        return np.where(nodes == 0, np.int32(self.start), self.tree.digit[nodes])


@dataclass(frozen=True)
class Tokenization:
    """The tokens of documents with their instruction, and of targets; shared by all documents."""

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
        """Tokenize for training from scratch: a token per label, a start token per group, and no instruction."""
        first_label = len(tokenizer)
        first_start = first_label + len(target_names(labels))
        tries = [
            PrefixTrie((ids + first_label).astype(np.int32), first_start + i, targets.counts[span] if prior else None)
            for i, (ids, span) in enumerate(targets.by_group())
        ]
        return cls(tokenizer, targets, tries, [], [], max_length)

    @classmethod
    def with_label_texts(
        cls,
        tokenizer: SubwordTokenizer,
        labels: LabelSpace,
        targets: Targets,
        max_length: int,
        prior: bool = True,
        prompt: str | None = None,
        output: str = DEFAULT_OUTPUT,
    ) -> Self:
        """Tokenize for a pretrained T5: label names are tokenized like any text, and there is an instruction."""
        names, columns, tries = target_names(labels), table_columns(labels), []
        written = [names[i].partition(": ")[0] for ids, _ in targets.by_group() for i in ids[0].tolist()]
        template = OutputTemplate.of_columns(output, written if columns else [])
        for ids, span in targets.by_group():
            texts = [_written([names[i] for i in row], template) for row in ids.tolist()]
            tokens = disambiguate(tokenizer.encode(texts), len(tokenizer))
            padded, is_token = pad([[*given, END] for given in tokens])
            sequences = np.where(is_token, padded, np.int32(END))
            tries.append(PrefixTrie(sequences, START, targets.counts[span] if prior else None))
        prefix, suffix = tokenizer.encode(list(split_prompt(prompt, columns)))
        return cls(tokenizer, targets, tries, prefix, [*suffix, END], max_length, template)

    @cached_property
    def target_sequences(self) -> Tokens:
        """Return the tokens of each target, with the end token."""
        return [until_end(row) for trie in self.tries for row in trie.tree.digit[trie.paths[:, 1:]].tolist()]

    @cached_property
    def target_tokens(self) -> Ints:
        """Return all tokens that the decoder reads or scores, sorted."""
        return np.unique(np.concatenate([np.append(trie.tree.digit[1:], trie.start) for trie in self.tries]))

    def encode(self, texts: Sequence[str]) -> Tokens:
        """Return the encoder's input tokens for each text."""
        return [[*self.prefix, *ids, *self.suffix] for ids in self.tokenizer.encode(texts, self.max_length)]

    def drop_tokens(self, tokens: Ints, is_token: Bools, p: float, rng: np.random.Generator) -> Ints:
        """Replace tokens of the texts, drawn at random, by the unknown token."""
        ends = is_token.sum(axis=1, keepdims=True) - len(self.suffix)
        positions = np.arange(tokens.shape[1])
        in_text = (positions >= len(self.prefix)) & (positions < ends)
        return np.where(in_text & (rng.random(tokens.shape, np.float32) < p), np.int32(UNKNOWN), tokens)


def _written(names: Sequence[str], template: OutputTemplate) -> str:
    """Write labels ``column: value`` by the template, other labels by their name."""
    return template.write(dict(name.split(": ", 1) for name in names)) if template.markers else " ".join(names)


def until_end(tokens: list[int]) -> list[int]:
    """Return the tokens up to the first end token, including it.

    >>> until_end([5, 1, 0]), until_end([5, 6])
    ([5, 1], [5, 6])
    """
    return tokens[: tokens.index(END) + 1] if END in tokens else tokens


def pad(documents: Tokens) -> tuple[Ints, Bools]:
    """Return tokens (n, longest), and a mask that is False for padding; a document without tokens gets one token 0."""
    lengths = np.array([max(len(tokens), 1) for tokens in documents])
    is_token = np.arange(lengths.max()) < lengths[:, None]
    padded = np.full(is_token.shape, START, np.int32)
    padded[is_token] = np.concatenate([tokens or [START] for tokens in documents])
    return padded, is_token


def disambiguate(sequences: Tokens, n_tokens: int) -> Tokens:
    """Make token sequences distinct: sequences equal to an earlier one get additional tokens at the end.

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
    """Yield all tokens except start and end, then all pairs of these, and so on."""
    return (ending for length in count(1) for ending in product(range(END + 1, n_tokens), repeat=length))
