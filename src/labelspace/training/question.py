"""What a writer of text is asked, as tokens: documents with their instruction, and the answers that it may give.

This module needs torch: import it only where ``errors.require`` has been asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
import torch

from labelspace.features.pieces import Pieces
from labelspace.labels.answers import Answers, columns_of, written_names
from labelspace.training.answering import Part, Vectors, best_answers
from labelspace.training.decoding import best_of_rows
from labelspace.training.t5 import END, START, T5, UNKNOWN
from labelspace.types import Bools, Floats, Ints, LabelSpace, TopK

Tokens = list[list[int]]


@dataclass(frozen=True)
class Question:
    """One question, asked of every document."""

    pieces: Pieces
    parts: list[Part]
    carries: sp.csr_matrix  # of Answers
    head: list[int]  # tokens before a text
    tail: list[int]  # and after it
    length: int  # tokens of a text that are read

    @classmethod
    def in_names(cls, pieces: Pieces, labels: LabelSpace, answers: Answers, counts: Floats, length: int) -> Question:
        """For a net that learns from nothing: each name is a token of its own, and the start of each part."""
        first = len(pieces)
        starts = first + len(written_names(labels))
        parts = [
            Part.of((names + first).astype(np.int32), starts + i, counts[span])
            for i, (names, span) in enumerate(answers.by_part())
        ]
        return cls(pieces, parts, answers.carries, [], [], length)

    @classmethod
    def in_words(cls, pieces: Pieces, labels: LabelSpace, answers: Answers, counts: Floats, length: int) -> Question:
        """For a pretrained net: names are texts like others, and the document's instruction says what is asked."""
        written, parts = written_names(labels), []
        for names, span in answers.by_part():
            spelled = pieces.of([" ".join(written[name] for name in row) for row in names.tolist()])
            sequences = np.full((len(names), max(map(len, spelled)) + 1), END, np.int32)
            for row, tokens in zip(sequences, spelled, strict=True):
                row[: len(tokens)] = tokens
            parts.append(Part.of(sequences, START, counts[span]))
        head, tail = pieces.of(list(prompt(columns_of(labels))))
        return cls(pieces, parts, answers.carries, head, [*tail, END], length)

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
        first = np.cumsum([0, *(len(part.paths) for part in self.parts)])
        rows = np.concatenate([document for document, _, _ in found])
        columns = np.concatenate([answer + start for (_, answer, _), start in zip(found, first[:-1], strict=True)])
        chances = np.concatenate([chance for _, _, chance in found])
        given = sp.csr_matrix((chances, (rows, columns)), shape=(len(documents), first[-1]))
        return best_of_rows((given @ self.carries).tocsr().astype(np.float32), listed)


def padded(documents: Tokens) -> tuple[Ints, Bools]:
    """Tokens as a table as wide as the longest, and where there are any; a document without has one, which is 0."""
    lengths = np.array([max(len(tokens), 1) for tokens in documents])
    there = np.arange(lengths.max()) < lengths[:, None]
    table = np.full(there.shape, START, np.int32)
    table[there] = np.concatenate([tokens or [START] for tokens in documents])
    return table, there


def prompt(columns: Sequence[str]) -> tuple[str, str]:
    """What stands before and after a text that a pretrained net is to read.

    >>> print("Tea, 50 bags".join(prompt(["brand"])))
    Your task is to extract specific details from the given information.
    You need to identify and extract the following categories from the text:
    - brand
    Input: Tea, 50 bags
    Output:
    """
    if not columns:
        return "Your task is to label the given text.\nInput: ", "\nOutput:"
    listed = "".join(f"- {column}\n" for column in columns)
    return (
        "Your task is to extract specific details from the given information.\n"
        f"You need to identify and extract the following categories from the text:\n{listed}Input: ",
        "\nOutput:",
    )
