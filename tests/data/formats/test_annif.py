"""Annif's document corpus."""

import gzip
import re

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from labelspace.data.dataset_builder import assemble
from labelspace.data.formats import annif
from labelspace.data.formats.base import on_one_line
from labelspace.errors import DataError
from labelspace.types import Concept, Dataset, LabelSpace
from tests.data.formats.text_cases import UTF_8, damaged, few, labeled, labels_of, refusal, texts

FILE = "red apple\t<http://a/p1> <http://a/p2>\nbare\thttp://a/p1\tmore\nnone\t\n"


def read(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(annif.records(path, UTF_8))


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz"])
def test_a_file_by_hand(tmp_path, name):
    content = gzip.compress(FILE.encode()) if name.endswith(".gz") else FILE
    assert [(record.id, record.text, record.labels) for record in read(tmp_path / name, content)] == [
        ("0", "red apple", ("http://a/p1", "http://a/p2")),
        ("1", "bare", ("http://a/p1", "more")),
        ("2", "none", ()),
    ]


def test_uris_are_found_in_a_vocabulary(tmp_path):
    space = LabelSpace(["cats", "dogs"], concepts=[Concept("http://a/p1"), Concept("http://a/p2")])
    dataset = assemble(read(tmp_path / "a.tsv", "it purrs\t<http://a/p1>\nit barks\t<http://a/p2>\n"), "a.tsv", space)
    assert dataset.Y.toarray().tolist() == [[1, 0], [0, 1]]
    annif.write(tmp_path / "b.tsv", dataset)
    assert (tmp_path / "b.tsv").read_text() == "it purrs\t<http://a/p1>\nit barks\t<http://a/p2>\n"


def test_malformed_files(tmp_path):
    with pytest.raises(
        DataError, match=r"a\.tsv:2: expected text<TAB><uri> <uri>, but there is no tab; end the text with"
    ):
        read(tmp_path / "a.tsv", "a\t\nb\n")
    with pytest.raises(DataError, match=r"a\.tsv:1: expected label names, but one is empty"):
        read(tmp_path / "a.tsv", "a\t<>\n")


@few
@given(content=damaged(FILE.encode()))
def test_damaged_files_are_read_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "damaged_annif.tsv"
    message = refusal(read, path, content)
    assert message is None or re.search(r"damaged_annif\.tsv:\d+: expected ", message)


uris = st.from_regex(annif._URI, fullmatch=True)
more_texts = st.lists(texts, min_size=2, max_size=2)


@few
@given(documents=more_texts, names=st.lists(uris | texts.filter(bool), min_size=1, max_size=3, unique=True), uri=uris)
def test_round_trip(tmp_path_factory, documents, names, uri):
    """The last label has a name and a URI, the others a name, which may be a URI."""
    path = tmp_path_factory.getbasetemp() / "round_trip_annif.tsv"
    path.unlink(missing_ok=True)
    concepts = [Concept()] * len(names) + [Concept(uri)]
    Y = sp.csr_matrix(np.triu(np.ones((2, len(names) + 1), np.float32), k=len(names) - 1))
    dataset = Dataset(Y, LabelSpace([*names, "the last one"], concepts=concepts), texts=documents)
    if refusal(annif.write, path, dataset):
        assert not path.exists()
        return
    found = list(annif.records(path, UTF_8))
    assert [record.text for record in found] == [on_one_line(text).replace("\t", " ") for text in documents]
    expected = [{uri if name == "the last one" else name for name in labels_of(dataset, row)} for row in range(2)]
    assert [set(record.labels) for record in found] == expected


def test_labels_without_a_uri_are_not_written(tmp_path):
    with pytest.raises(DataError, match=r"labels in .*a\.tsv must have URIs, but 'red apple' has none; import the voc"):
        annif.write(tmp_path / "a.tsv", labeled(["red apple"], "text"))
    annif.write(tmp_path / "a.tsv", labeled(["urn:isbn:1"], "a\ttab\nand line"))
    assert (tmp_path / "a.tsv").read_text() == "a tab and line\t<urn:isbn:1>\n"


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (["a b\t<http://a/b>", "c\t", "d\thttp://a/b <http://a/c>"], True),
        (["text\tsubjects", "a b\t<http://a/b>"], False),
        (["a\t", "b\t"], False),
        (["a", "b\t<http://a/b>"], False),
        ([], False),
    ],
)
def test_recognized_by_its_uris(head, expected):
    assert annif.recognizes(head) is expected
