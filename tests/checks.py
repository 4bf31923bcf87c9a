"""What many tests check in the same way."""

import hashlib
from html.parser import HTMLParser
from importlib.util import find_spec

import numpy as np
import pytest

from labelspace.data.synthetic import planted

needs_faiss = pytest.mark.skipif(find_spec("faiss") is None, reason="needs faiss, which the extra ann installs")


def same_topk(one, other) -> bool:
    """Whether two TopK are equal to the last bit."""
    return np.array_equal(one.labels, other.labels) and np.array_equal(one.scores, other.scores)


def precision_at_1(model, documents, X=None) -> float:
    """P@1 of a fitted model on documents, whose features are read unless X is given."""
    first = model.predict_topk(documents.X if X is None else X, k=1).labels[:, 0]
    return float(np.where(first >= 0, documents.Y[np.arange(len(documents)), first].A1, 0).mean())


def planted_split(n=600, test=100, **params):
    """Planted documents to train on, and others to test on."""
    data = planted(n=n, **params)
    return data.rows(range(n - test)), data.rows(range(n - test, n))


def digest(folder):
    """The names and hashes of all files of a model but ``model.json`` and ``README.md``, which tell versions too."""
    files = sorted(path for path in folder.iterdir() if path.suffix not in (".json", ".md"))
    return [(path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in files]


class Outline(HTMLParser):
    """Tags of a page that were opened and not closed, how often each was opened, and the names of attributes."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.attributes = [], {}, set()

    def handle_starttag(self, tag, attrs):
        self.attributes |= {name for name, _ in attrs}
        self.seen[tag] = self.seen.get(tag, 0) + 1
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen[tag] = self.seen.get(tag, 0) + 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def outline(page) -> dict[str, int]:
    """How often each tag of a page occurs; the page must be well-formed, and no attribute a script."""
    parser = Outline()
    parser.feed(page)
    assert parser.open == []
    assert not any(name.startswith("on") for name in parser.attributes)
    return parser.seen
