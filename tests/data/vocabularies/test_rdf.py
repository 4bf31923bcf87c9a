"""Hostile and malformed Turtle, RDF/XML and JSON-LD; what they say is tested in ``test_skos``."""

import json

import pytest

from labelspace.data.vocabularies import rdf
from labelspace.errors import DataError, MissingExtraError

pytest.importorskip("rdflib", reason="the extra skos is not installed")

HEAD = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://example.org/">'


def statements(tmp_path, kind, content):
    path, found = tmp_path / "file", []
    path.write_text(content)
    rdf.read_rdf(path, kind, lambda *triple: found.append(triple))
    return found


def xml(declarations, text):
    body = f'<rdf:Description rdf:about="http://example.org/s"><e:p>{text}</e:p></rdf:Description></rdf:RDF>'
    return f'<?xml version="1.0"?>\n<!DOCTYPE rdf:RDF {declarations}>\n{HEAD}{body}'


@pytest.mark.parametrize(
    "declarations",
    [
        '[<!ENTITY x SYSTEM "file:///etc/hostname">]',
        '[<!ENTITY y "ha"><!ENTITY x "&y;&y;">]',
        '[<!ENTITY y "ha"><!ENTITY x "&#38;y;">]',
        f'[<!ENTITY x "{"ha" * 600}">]',
        '[<!ENTITY % y "ha"><!ENTITY x "ha">]',
    ],
)
def test_entities_that_are_files_or_grow_are_refused(tmp_path, declarations):
    with pytest.raises(DataError, match="an entity of RDF/XML must stand for"):
        statements(tmp_path, "xml", xml(declarations, "&x;"))


def test_short_entities_are_read_and_declarations_elsewhere_are_not_fetched(tmp_path):
    expected = [("http://example.org/s", "http://example.org/p", "ha!", "")]
    assert statements(tmp_path, "xml", xml('[<!ENTITY x "ha">]', "&x;!")) == expected
    assert statements(tmp_path, "xml", xml('SYSTEM "http://127.0.0.1:9/a.dtd"', "ha!")) == expected


@pytest.mark.parametrize(
    "context",
    [
        "http://127.0.0.1:9/context.jsonld",
        "context.jsonld",
        [{"e": "http://example.org/"}, "http://127.0.0.1:9/c"],
        [["http://127.0.0.1:9/c"]],
        {"@import": "http://127.0.0.1:9/c"},
        {"t": {"@id": "http://example.org/t", "@context": "http://127.0.0.1:9/c"}},
    ],
)
def test_a_context_elsewhere_is_not_fetched(tmp_path, monkeypatch, context):
    def refuse(*_, **__):
        raise AssertionError("fetched")

    monkeypatch.setattr("rdflib.plugins.shared.jsonld.context.source_to_json", refuse)
    for document in ({"@context": context}, {"http://example.org/p": [{"@id": "x", "@context": context}]}):
        with pytest.raises(DataError, match="a context of JSON-LD must be in the file"):
            statements(tmp_path, "json-ld", json.dumps(document))


@pytest.mark.parametrize(
    ("kind", "content"), [("turtle", "<s> <p> oops"), ("xml", f"{HEAD}<e:"), ("json-ld", '{"@id": '), ("xml", "")]
)
def test_a_malformed_file_is_one_line(tmp_path, kind, content):
    with pytest.raises(DataError, match=rf"file must be {rdf.FORMATS[kind]}, but cannot be read \(.+\); correct it"):
        statements(tmp_path, kind, content)


def test_relative_names_do_not_have_the_folder(tmp_path):
    assert statements(tmp_path, "turtle", '<#s> <p> "a"@en .') == [("file:///file#s", "file:///p", "a", "en")]


def test_literals_are_read_as_written_without_a_word(tmp_path, caplog):
    text = '<s> <p> "1a"^^<http://www.w3.org/2001/XMLSchema#integer>, <http://example.org/a b> .'
    values = {value for _, _, value, _ in statements(tmp_path, "turtle", text)}
    assert values == {"1a", "http://example.org/a b"}
    assert caplog.records == []


def test_limits_and_the_extra(tmp_path, monkeypatch):
    monkeypatch.setenv("LABELSPACE_MAX_RDF_BYTES", "10")
    with pytest.raises(DataError, match="at most 10 bytes.*; convert it to N-Triples"):
        statements(tmp_path, "turtle", "# a longer comment")
    monkeypatch.setitem(__import__("sys").modules, "rdflib", None)
    with pytest.raises(MissingExtraError, match=r"reading Turtle needs .*labelspace\[skos\]"):
        statements(tmp_path, "turtle", "")
