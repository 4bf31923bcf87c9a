import gzip

import pytest

from labelspace.data.vocabularies.rdf import read_ntriples
from labelspace.errors import DataError

P = "http://example.org/p"


def triples(tmp_path, text, properties=(P,)):
    path = tmp_path / "a.nt"
    path.write_bytes(text.encode())
    return list(read_ntriples(path, properties))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("<http://example.org/o>", ("http://example.org/o", None)),
        ("_:b.1", ("_:b.1", None)),
        ('"plain"', ("plain", "")),
        ('"Katze"@de', ("Katze", "de")),
        ('"colour"@en-GB', ("colour", "en-gb")),
        ('"007"^^<http://www.w3.org/2001/XMLSchema#integer>', ("007", "")),
        (r'"\"a\" \\ b\tc\nd"', ('"a" \\ b\tc\nd', "")),
        (r'"\u00e4\U0001F408"', ("ä🐈", "")),
        ('"a # b . <c>"', ("a # b . <c>", "")),
        ('""', ("", "")),
        (r"<http://example.org/\u00e4>", ("http://example.org/ä", None)),
    ],
)
@pytest.mark.parametrize("end", [" .", ".", " . # a comment", " .\r"])
def test_values(tmp_path, value, expected, end):
    assert triples(tmp_path, f"<http://example.org/s> <{P}> {value}{end}\n") == [("http://example.org/s", P, *expected)]


def test_blank_subjects_comments_and_other_properties(tmp_path):
    text = f'# a comment\n\n   \n_:x<{P}>"a".\n<s> <other> "b" .\n'
    assert triples(tmp_path, text) == [("_:x", P, "a", "")]


@pytest.mark.parametrize(
    "line",
    [
        f'<s> <{P}> "a"',  # no dot
        f"<s> <{P}> a .",
        f'<s> <{P}> "a" "b" .',
        f'<s> <{P}> "a"@ .',
        f'<s> <{P}> "a .',
        '<s> _:p "a" .',
        f'"s" <{P}> "a" .',
        f"<s s> <{P}> <o> .",
        f'<s> <{P}> <o> <graph> .',
        rf'<s> <{P}> "\x" .',
        rf'<s> <{P}> "\uD83D" .',
        rf'<s> <{P}> "\U00110000" .',
        r'<s> <other> "\u12" .',
    ],
)  # fmt: skip
def test_what_is_no_statement_is_refused_with_its_line(tmp_path, line):
    with pytest.raises(DataError, match=r"a\.nt:2: expected (a statement|escapes)"):
        triples(tmp_path, f"# first\n{line}\n")


def test_compressed_and_no_utf8(tmp_path):
    path = tmp_path / "a.nt.gz"
    path.write_bytes(gzip.compress(f'<s> <{P}> "a" .\n'.encode()))
    assert list(read_ntriples(path, [P])) == [("s", P, "a", "")]
    plain = tmp_path / "b.nt"
    plain.write_bytes(b'<s> <p> "\xff" .\n')
    with pytest.raises(DataError, match=r"b\.nt:1: expected UTF-8"):
        list(read_ntriples(plain, [P]))
