"""The search for labels as a user types: time to build it, memory that it keeps, milliseconds per query.

    python benchmarks/label_search.py [MODEL] [--labels 100000,1000000] [--n 300]

Synthetic labels have a code as their name and one synonym of four to fifteen words, drawn by Zipf's law from half as
many words as there are labels. With a MODEL, its labels are searched instead. Queries are made of random labels; each
kind shows the median and the worst in CPU time, which other processes change little, after a few that are not counted.
"""

from __future__ import annotations

import argparse
import string
import time
import tracemalloc
from collections.abc import Callable, Iterator

import numpy as np

import labelspace
from labelspace.server.label_search import LabelSearch
from labelspace.types import LabelSpace

LETTERS = string.ascii_lowercase
WARM_UP = 3


def synthetic(n: int, rng: np.random.Generator) -> LabelSpace:
    """Labels of made-up words."""
    syllables = [a + b for a in "bcdfghklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "is")]
    shapes = rng.integers(0, len(syllables), (n // 2, 5))
    words = ["".join(syllables[i] for i in row[: 2 + row[0] % 4]) for row in shapes]
    sizes = rng.integers(4, 16, n)
    drawn = (rng.zipf(1.2, int(sizes.sum())) - 1) % len(words)
    texts = [" ".join(words[i] for i in part) for part in np.split(drawn, np.cumsum(sizes)[:-1])]
    return LabelSpace([f"{LETTERS[i % 26]}{i:06d}" for i in range(n)], [[text] for text in texts], rng.zipf(1.5, n))


def mistyped(word: str, rng: np.random.Generator) -> str:
    """The word with one edit."""
    at, letter = int(rng.integers(0, len(word) - 1)), LETTERS[rng.integers(0, 26)]
    edits = (letter + word[at:], letter + word[at + 1 :], word[at + 1 :], word[at + 1] + word[at] + word[at + 2 :])
    return word[:at] + edits[rng.integers(0, 4)]


def queries(labels: LabelSpace, n: int, rng: np.random.Generator) -> Iterator[tuple[str, list[str]]]:
    """Kinds of queries, n of each."""
    drawn = rng.integers(0, len(labels), 4 * n).tolist()
    texts = [max((labels.names[i], *(labels.synonyms or {i: ()})[i]), key=len) for i in drawn]
    texts = [text for text in texts if max(map(len, text.split())) >= 4][:n]
    longest = [max(text.split(), key=len) for text in texts]
    yield "one letter", list(LETTERS + string.digits)
    yield "twelve letters", [" ".join(rng.permutation(list(LETTERS))[:12]) for _ in texts]
    yield "a word's first letters", [word[: 2 + i % 4] for i, word in enumerate(longest)]
    yield "whole names", texts
    yield "a word with a typo", [mistyped(word, rng) for word in longest]
    yield (
        "names with a typo",
        [text.replace(word, mistyped(word, rng)) for text, word in zip(texts, longest, strict=True)],
    )
    yield "nothing like it", ["".join(rng.permutation(list(LETTERS))[:8]) for _ in texts]


def timed(call: Callable[[], object]) -> float:
    """CPU milliseconds of a call."""
    start = time.process_time()
    call()
    return 1e3 * (time.process_time() - start)


def measure(title: str, labels: LabelSpace, n: int, rng: np.random.Generator) -> None:
    """Print the figures of some labels."""
    LabelSearch(LabelSpace(["a word", "another"])).find("anather word")  # compiles
    build = timed(lambda: LabelSearch(labels))
    tracemalloc.start()
    search = LabelSearch(labels)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(f"{title}: built in {build / 1e3:.1f} s, keeps {kept / 1e6:.1f} MB, peak {peak / 1e6:.0f} MB")
    for kind, typed in queries(labels, n, rng):
        for query in typed[:WARM_UP]:
            search.find(query)
        taken = [timed(lambda query=query: search.find(query)) for query in typed]  # type: ignore[misc]
        found = np.mean([len(search.find(query)) for query in typed])
        print(f"  {kind:24s} median {np.median(taken):6.2f} ms, worst {max(taken):6.2f} ms, {found:4.1f} labels found")


def main() -> None:
    """Measure the labels of a model, or synthetic ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?")
    parser.add_argument("--labels", default="100000,1000000", help="numbers of synthetic labels")
    parser.add_argument("--n", type=int, default=300, help="queries of each kind")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    if args.model:
        labels = labelspace.load(args.model).labels_
        measure(f"{args.model}, {len(labels):,} labels", labels, args.n, rng)
        return
    for size in map(int, args.labels.split(",")):
        measure(f"{size:,} synthetic labels", synthetic(size, rng), args.n, rng)


if __name__ == "__main__":
    main()
