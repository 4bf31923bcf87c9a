"""Data sets of hard texts and names, and damaged files, for the tests of the text formats."""

import numpy as np
import scipy.sparse as sp
from hypothesis import settings
from hypothesis import strategies as st

from labelspace.data.read_options import ReadOptions
from labelspace.errors import DataError
from labelspace.types import Dataset, LabelSpace

few = settings(max_examples=50)
UTF_8 = ReadOptions(encoding="utf-8")
PIECES = [
    *(" ", "  ", "\t", "\n", "\r\n", "\r", "\v", "\f", "\0", "\x1c", "\x85", "\u00a0", "\u2028", "\ufeff", "_"),
    *("__label__", "__label__x", "#", "<", ">", "<http://a/b>", "http://a/b", ",", ":", "3:1", "0", "-1"),
    *('"', "\\", "\\u", "{", "[", "é", "日本", "😀"),
]
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=6).map("".join)
names = texts.map(str.strip).filter(bool) | st.text("abc", min_size=1, max_size=3)


@st.composite
def text_datasets(draw, with_ids=False):
    """Texts with labels, of which some documents have none."""
    space = LabelSpace(draw(st.lists(names, min_size=1, max_size=4, unique=True)))
    documents = draw(st.lists(texts, min_size=1, max_size=4))
    rows = [draw(st.lists(st.booleans(), min_size=len(space), max_size=len(space))) for _ in documents]
    ids = None
    if with_ids and draw(st.booleans()):
        ids = draw(st.lists(texts, min_size=len(documents), max_size=len(documents), unique=True))
    return Dataset(sp.csr_matrix(np.array(rows, np.float32)), space, texts=documents, ids=ids)


def labels_of(dataset, row):
    """The names of the labels of a document."""
    return [dataset.labels.names[label] for label in np.flatnonzero(dataset.Y[[row]].toarray()[0])]


@st.composite
def damaged(draw, content):
    """A file cut short, or with some bytes replaced, inserted or removed."""
    data = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        stop = draw(st.integers(start, min(len(data), start + 8)))
        data[start:stop] = draw(
            st.binary(max_size=6)
            | st.sampled_from([b"\n", b"\t", b"[", b"]", b"{", b"}", b'"', b",", b":", b"null", b"\xff"])
        )
    return bytes(data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data)


def labeled(names, *documents):
    """Texts that have all labels."""
    Y = sp.csr_matrix(np.ones((len(documents), len(names)), np.float32))
    return Dataset(Y, LabelSpace(names), texts=documents)


def refusal(call, *given):
    """The message of the DataError that a call ends with; None where there is none. Others are not caught."""
    try:
        call(*given)
    except DataError as error:
        return str(error)
    return None
