"""Are explanations true? Delete the words with the largest shares, tag again, and see the probability drop.

    python benchmarks/explanations.py MODEL DATA --n 100 --samples 5000

For the best label of each test document: the words are ranked by ``Tagger.explain``, by LIME (`pip install lime`; left
out where it is not there) and at random; as many words as an eighth of the document's different words are deleted, all
their occurrences, and the drop in the label's probability is noted. CPU seconds are those of the explanations alone.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import labelspace
from labelspace import Tagger
from labelspace.data.source import read_dataset, split_file
from labelspace.explain import Explanation
from labelspace.types import Doubles

WORD = re.compile(r"\w+")
MIN_PROBABILITY = 0.3  # of the label: what is not there cannot drop
MIN_WORDS = 8  # different ones
RANDOM_DRAWS = 5
Ranking = Callable[[str, int], list[str]]


def different_words(text: str) -> list[str]:
    """The words of a text in lower case, each once, in order."""
    return list(dict.fromkeys(word.lower() for word in WORD.findall(text)))


def without(text: str, words: Sequence[str]) -> str:
    """The text without all occurrences of some words."""
    gone = set(words)
    return WORD.sub(lambda match: "" if match[0].lower() in gone else match[0], text)


def by_share(explanation: Explanation) -> list[str]:
    """The words of an explanation, that with the largest share first."""
    totals: defaultdict[str, float] = defaultdict(float)
    for word in explanation.words:
        totals[word.text.lower()] += word.share
    return sorted(totals, key=lambda word: -totals[word])


def rankings(tagger: Tagger, samples: int, seed: int) -> dict[str, Ranking]:
    """The ways to rank the words of a text for a label."""

    def ours(text: str, label: int) -> list[str]:
        return by_share(tagger.explain(text, labels=[tagger.labels_.names[label]])[0])

    if not samples:
        return {"explain": ours}
    try:
        from lime.lime_text import LimeTextExplainer  # type: ignore[import-not-found]
    except ImportError:
        print("lime is not installed, and is left out: pip install lime")
        return {"explain": ours}
    explainer: Any = LimeTextExplainer(random_state=seed)

    def lime(text: str, label: int) -> list[str]:
        def probabilities(texts: Sequence[str]) -> Doubles:
            top = tagger.predict_topk(list(texts), k=20, calibrated=True)
            found = np.where(top.labels == label, top.scores, 0).max(axis=1)
            return np.column_stack([1 - found, found])

        n = len(different_words(text))
        found = explainer.explain_instance(text, probabilities, labels=(1,), num_features=n, num_samples=samples)
        return [word.lower() for word, _ in sorted(found.as_list(label=1), key=lambda pair: -pair[1])]

    return {"explain": ours, "lime": lime}


def main() -> None:
    """Print the mean drops, and the cost of each kind of explanation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("data", type=Path)
    parser.add_argument("--n", type=int, default=100, help="documents")
    parser.add_argument("--samples", type=int, default=5000, help="of LIME; 5000 is its default, 0 leaves it out")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    tagger, file = labelspace.load(args.model), split_file(args.data, "test")
    assert file is not None
    texts = read_dataset(file, tagger.labels_, tagger.columns_).texts or []
    top = tagger.predict_topk(texts, k=1, calibrated=True)
    enough = np.array([len(different_words(text)) >= MIN_WORDS for text in texts])
    rng = np.random.default_rng(args.seed)
    rows = rng.permutation(np.flatnonzero((top.scores[:, 0] >= MIN_PROBABILITY) & enough))[: args.n].tolist()
    ranked_by = rankings(tagger, args.samples, args.seed)
    drops: defaultdict[str, list[float]] = defaultdict(list)
    seconds: defaultdict[str, list[float]] = defaultdict(list)
    tagger.explain(texts[rows[0]], k=1)  # compiles
    for row in rows:
        text, label, before = texts[row], int(top.labels[row, 0]), float(top.scores[row, 0])
        words, name = different_words(text), tagger.labels_.names[label]
        n = max(1, len(words) // 8)
        deleted = {"random": [rng.choice(words, n, replace=False).tolist() for _ in range(RANDOM_DRAWS)]}
        for kind, ranking in ranked_by.items():
            start = time.process_time()
            deleted[kind] = [ranking(text, label)[:n]]
            seconds[kind].append(time.process_time() - start)
        for kind, sets in deleted.items():
            left = [tagger.explain(without(text, gone), labels=[name])[0].score for gone in sets]
            drops[kind].append(before - float(np.mean(left)))
    report(drops, seconds)


def report(drops: dict[str, list[float]], seconds: dict[str, list[float]]) -> None:
    """Print a line for each kind."""
    ours = float(np.mean(drops["explain"]))
    for kind, values in drops.items():
        mean, error = float(np.mean(values)), float(np.std(values)) / len(values) ** 0.5
        line = f"{kind:8} drop {mean:.4f} +- {error:.4f}, that of explain is {ours / mean:.3f} times this"
        if kind in seconds:
            ms, ratio = 1000 * np.array(seconds[kind]), sum(seconds[kind]) / sum(seconds["explain"])
            line += f"; {ms.mean():.2f} CPU ms a label (median {np.median(ms):.2f}), {ratio:.0f} x"
        print(line)


if __name__ == "__main__":
    main()
