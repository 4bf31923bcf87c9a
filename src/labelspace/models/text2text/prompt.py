"""What a writer of text is asked, as tokens: documents with their instruction, and the answers that it may give.

This module needs torch: import it only where ``errors.require`` has been asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count, product

import numpy as np
import scipy.sparse as sp
import torch

from labelspace.models.secseq.decoding import best_of_rows
from labelspace.models.text2text.constrained_decoding import Part, Vectors, best_answers
from labelspace.models.text2text.subwords import Pieces, Tokens
from labelspace.models.text2text.t5 import END, START, T5, UNKNOWN
from labelspace.models.text2text.targets import Answers, columns_of, target_names
from labelspace.types import Bools, Csr, Doubles, Floats, Ints, LabelSpace, TopK


@dataclass(frozen=True)
class Prompt:
    """One question, asked of every document."""

    pieces: Pieces
    parts: list[Part]
    answers: Answers
    head: list[int]  # tokens before a text
    tail: list[int]  # and after it
    length: int  # tokens of a text that are read

    @classmethod
    def in_names(cls, pieces: Pieces, labels: LabelSpace, answers: Answers, counts: Floats, length: int) -> Prompt:
        """For a net that learns from nothing: each name is a token of its own, and the start of each part."""
        first = len(pieces)
        starts = first + len(target_names(labels))
        parts = [
            Part.of((names + first).astype(np.int32), starts + i, counts[span])
            for i, (names, span) in enumerate(answers.by_part())
        ]
        return cls(pieces, parts, answers, [], [], length)

    @classmethod
    def quantize_int16(
        cls, pieces: Pieces, labels: LabelSpace, answers: Answers, counts: Floats, length: int
    ) -> Prompt:
        """For a pretrained net: names are texts like others, and the document's instruction says what is asked."""
        written, parts = target_names(labels), []
        for names, span in answers.by_part():
            spelled = disambiguated(
                pieces.of([" ".join(written[name] for name in row) for row in names.tolist()]), len(pieces)
            )
            sequences = np.full((len(names), max(map(len, spelled)) + 1), END, np.int32)
            for row, tokens in zip(sequences, spelled, strict=True):
                row[: len(tokens)] = tokens
            parts.append(Part.of(sequences, START, counts[span]))
        head, tail = pieces.of(list(prompt(columns_of(labels))))
        return cls(pieces, parts, answers, head, [*tail, END], length)

    @cached_property
    def tokens(self) -> Ints:
        """Those of all answers, sorted."""
        return np.unique(np.concatenate([part.tokens for part in self.parts]))

    def documents(self, texts: Sequence[str]) -> Tokens:
        """The tokens of documents to be read."""
        return [[*self.head, *found, *self.tail] for found in self.pieces.of(texts, self.length)]

    def dropped(self, tokens: Ints, there: Bools, share: float, rng: np.random.Generator) -> Ints:
        """Documents with some tokens of their texts, drawn by chance, unknown."""
        ends = there.sum(axis=1, keepdims=True) - len(self.tail)
        places = np.arange(tokens.shape[1])
        lost = (places >= len(self.head)) & (places < ends) & (rng.random(tokens.shape, np.float32) < share)
        return np.where(lost, np.int32(UNKNOWN), tokens)

    def answer(self, net: T5, vectors: Vectors, documents: Tokens, beam: int, listed: int) -> TopK:
        """The best labels of documents."""
        tokens, there = padded(documents)
        with torch.no_grad():
            memory = net.read(vectors.of(tokens), torch.from_numpy(there))
            found = [best_answers(net, vectors, memory, part, beam) for part in self.parts]
        rows = np.concatenate([document for document, _, _ in found])
        columns = np.concatenate([answer + self.answers.starts[i] for i, (_, answer, _) in enumerate(found)])
        chances = np.concatenate([chance for _, _, chance in found])
        given = sp.csr_matrix((chances, (rows, columns)), shape=(len(documents), len(self.answers.names)))
        scores = (given @ self.answers.carries).tocsr().astype(np.float32)
        return best_of_rows(led_by_paths(scores, given, self.answers), listed)


def led_by_paths(scores: Csr, given: Csr, answers: Answers) -> Csr:
    """Scores of labels (n, n_labels) where the best of each column of a part, taken together, are one path that exists.

    That path is found from its root down: of the answers that ``given`` (n, n_answers) holds the chances of, those with
    the best label of the first column stay, then those with the best of the second; one that goes on without a label
    is left out as long as there are others. In each column, a label with a better score than the one on the path gets
    a score that is just below, and 0 where there is none.
    """
    rows = np.repeat(np.arange(len(scores.indptr) - 1), np.diff(scores.indptr))
    for names, span in answers.by_part():
        if names.shape[1] == 1:
            continue
        found = given[:, span].tocoo()
        document, answer, chance = found.row, found.col, found.data
        for column in names.T:
            values = column[answer]
            known = values < scores.shape[1]  # not NA
            best = _best_name(document[known], values[known], chance[known], *scores.shape)
            stay = (values == best[document]) | (best[document] < 0)
            document, answer, chance = document[stay], answer[stay], chance[stay]
            inside = np.isin(scores.indices, column)
            path = inside & (scores.indices == best[rows])
            most = np.zeros(scores.shape[0], np.float32)
            most[rows[path]] = np.nextafter(scores.data[path], np.float32(0))
            other = inside & ~path
            scores.data[other] = np.minimum(scores.data[other], most[rows[other]])
    return scores


def _best_name(document: Ints, name: Ints, chance: Doubles, n: int, n_names: int) -> Ints:
    """The name (of so many) with the largest sum of chances in each of n documents, -1 where there is none."""
    keys, which = np.unique(document.astype(np.int64) * n_names + name, return_inverse=True)
    sums = np.bincount(which, chance).astype(np.float32)
    order = np.lexsort((-keys, sums))  # the best is last, and of equals the first name
    best = np.full(n, -1, np.int32)
    best[keys[order] // n_names] = keys[order] % n_names
    return best


def padded(documents: Tokens) -> tuple[Ints, Bools]:
    """Tokens as a table as wide as the longest, and where there are any; a document without has one, which is 0."""
    lengths = np.array([max(len(tokens), 1) for tokens in documents])
    there = np.arange(lengths.max()) < lengths[:, None]
    table = np.full(there.shape, START, np.int32)
    table[there] = np.concatenate([tokens or [START] for tokens in documents])
    return table, there


def disambiguated(spelled: Tokens, n_tokens: int) -> Tokens:
    """Answers as tokens, no two alike: one that a tokenizer spells like another before it ends with more tokens.

    A tokenizer that has never seen a script spells all its words as unknown, and some write ``m²`` and ``m2`` alike.

    >>> disambiguated([[2], [2], [2, 3], [2]], n_tokens=9)
    [[2], [2, 2], [2, 3], [2, 4]]
    """
    taken, seen, found = set(map(tuple, spelled)), set(), []
    endings: dict[tuple[int, ...], Iterator[tuple[int, ...]]] = {}
    for own in map(tuple, spelled):
        if own in seen:
            longer = endings.setdefault(own, _endless(n_tokens))
            found.append(next((*own, *more) for more in longer if (*own, *more) not in taken))
            taken.add(found[-1])
        else:
            seen.add(own)
            found.append(own)
    return [list(tokens) for tokens in found]


def _endless(n_tokens: int) -> Iterator[tuple[int, ...]]:
    """All tokens but those that begin and end, then all pairs of them, and so on."""
    return (more for length in count(1) for more in product(range(END + 1, n_tokens), repeat=length))


def prompt(columns: Sequence[str]) -> tuple[str, str]:
    """What stands before and after a text that a pretrained net is to read.

    >>> print("Tea, 50 bags".join(prompt(["brand"])))
    Fill in these fields from the description below.
    Fields:
    - brand
    Input: Tea, 50 bags
    Output:
    """
    if not columns:
        return "Label the text below.\nInput: ", "\nOutput:"
    listed = "".join(f"- {column}\n" for column in columns)
    return (
        f"Fill in these fields from the description below.\nFields:\n{listed}Input: ",
        "\nOutput:",
    )
