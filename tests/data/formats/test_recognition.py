"""Formats that are told by their first lines: no file is of two."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelspace.data.formats import annif, bioasq, fasttext, json_documents, libmultilabel, libsvm
from tests.data.formats.text_cases import PIECES, few

FORMATS = {module.__name__.split(".")[-1]: module for module in (
    annif, bioasq, fasttext, json_documents, libmultilabel, libsvm
)}  # fmt: skip


def recognized(head):
    return [name for name, module in FORMATS.items() if module.recognizes(head)]


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (["__label__a red apple", "__label__b green tea"], ["fasttext"]),
        (["1,5 3:0.5 7:1", "2 1:1"], ["libsvm"]),
        (["d1\ta b\tred apple pie with cream", "d2\tb\tgreen tea"], ["libmultilabel"]),
        (["http://a/1\ta red apple\t<http://a/1>", "http://a/1\ta\t<http://a/1>"], []),
        (["red apple\t<http://a/1>", "green tea\t<http://a/1> <http://a/2>"], ["annif"]),
        (["http://a/1\tred apple pie crust", "http://a/1\tgreen tea pot"], ["libmultilabel"]),
        (['{"articles": [', '{"pmid": "1", "abstractText": "a"},'], ["bioasq"]),
        (['[{"text": "a", "labels": []}]'], ["json_documents"]),
        (["2 10 5", "1,5 3:0.5 7:1", "2 1:1"], []),
        (["id\ttext\tlabels", "1\tred apple\ta"], []),
        (['{"text": "a", "labels": ["b"]}', '{"text": "c", "labels": []}'], []),
        (["A plain text.", "", "Of some lines: 3:1."], []),
        ([], []),
    ],
)
def test_each_file_is_of_one_format(head, expected):
    assert recognized(head) == expected


words = ["a", "b", "1", "1,2", "3:1", "{", "[{", '"pmid":', '"abstract":', '{"data": [{', "<http://a/b>", *PIECES]
line = st.lists(st.sampled_from(words), max_size=6).map(" ".join) | st.lists(st.sampled_from(words)).map("\t".join)


@few
@given(head=st.lists(line.map(lambda text: text.replace("\n", "").replace("\r", "")), max_size=4))
def test_none_is_of_two(head):
    assert len(recognized(head)) <= 1
