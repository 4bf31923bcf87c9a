"""One small SKOS vocabulary in four syntaxes, each in an order of its own."""

import json
from pathlib import Path

import pytest

A = "http://example.org/animals/"
SKOS = "http://www.w3.org/2004/02/skos/core#"
TURTLE = f"""
@prefix skos: <{SKOS}> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix a: <{A}> .
a: a skos:ConceptScheme ; skos:prefLabel "Animals"@en .
a:pets a skos:Collection ; skos:prefLabel "Pets"@en ; skos:member a:p2 .
a:p1 a skos:Concept ; skos:prefLabel "animals"@en, "eläimet"@fi ; skos:notation "01" ; skos:narrower a:p2 ;
    skos:definition "Living beings\\n  that move."@en, "Eläviä olentoja."@fi ; skos:scopeNote "Not plants."@en .
a:p2 a skos:Concept ; skos:prefLabel "cats"@en, "kissat"@fi ; skos:altLabel "felines"@en, "kitties"@en, "mirrit"@fi ;
    skos:hiddenLabel "catz"@en ; skos:notation "007"^^xsd:integer ;
    skos:definition "Kissaeläimet."@fi ; skos:scopeNote "Domestic cats only."@en .
a:p3 a skos:Concept ; rdfs:label "birds \\"of\\" prey"@en ; skos:broader a:p1, a:p9 ;
    skos:definition a:d3 .
a:d3 rdf:value "Birds that hunt."@en .
a:p4 a skos:Concept ; skos:prefLabel "bank"@en ; skos:notation "B1" ; skos:broader a:p5 .
a:p5 a skos:Concept ; skos:prefLabel "bank"@en ; skos:broader a:p4 .
a:p6 a skos:Concept ; skos:prefLabel "hevoset"@fi ; skos:definition "Pferde."@de .
a:p7 a skos:Concept .
a:p9 a skos:Concept ; skos:prefLabel "dragons"@en ; owl:deprecated true .
"""
_TYPE, _XSD = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type", "http://www.w3.org/2001/XMLSchema#"
_STATEMENTS = [
    ("p9", "owl:deprecated", f'"true"^^<{_XSD}boolean>'),
    ("p9", "prefLabel", '"dragons"@en'),
    ("p7", "type", "Concept"),
    ("p6", "prefLabel", '"hevoset"@fi'),
    ("p6", "definition", '"Pferde."@de'),
    ("d3", "rdf:value", '"Birds that hunt."@en'),
    ("p3", "definition", "d3"),
    ("p2", "scopeNote", '"Domestic cats only."@en'),
    ("p2", "definition", '"Kissael\\u00e4imet."@fi'),
    ("p1", "scopeNote", '"Not plants."@en'),
    ("p1", "definition", '"El\\u00e4vi\\u00e4 olentoja."@fi'),
    ("p1", "definition", '"Living beings\\n  that move."@en'),
    ("p5", "broader", "p4"),
    ("p4", "broader", "p5"),
    ("p5", "prefLabel", '"bank"@en'),
    ("p4", "prefLabel", '"bank"@en'),
    ("p4", "notation", '"B1"'),
    ("p3", "broader", "p9"),
    ("p3", "broader", "p1"),
    ("p3", "rdfs:label", '"birds \\"of\\" prey"@EN'),
    ("p2", "notation", f'"007"^^<{_XSD}integer>'),
    ("p2", "hiddenLabel", '"catz"@en'),
    ("p2", "altLabel", '"mirrit"@fi'),
    ("p2", "altLabel", '"kitties"@en'),
    ("p2", "altLabel", '"felines"@en'),
    ("p2", "prefLabel", '"kissat"@fi'),
    ("p2", "prefLabel", '"cats"@en'),
    ("p1", "narrower", "p2"),
    ("p1", "notation", '"01"'),
    ("p1", "prefLabel", '"el\\u00e4imet"@fi'),
    ("p1", "prefLabel", '"animals"@en'),
    ("pets", "prefLabel", '"Pets"@en'),
    *((f"p{at}", "type", "Concept") for at in (1, 2, 3, 4, 5, 6, 9)),
    ("pets", "type", "Collection"),
]
_SPECIAL = {
    "type": _TYPE,
    "rdf:value": "http://www.w3.org/1999/02/22-rdf-syntax-ns#value",
    "rdfs:label": "http://www.w3.org/2000/01/rdf-schema#label",
    "owl:deprecated": "http://www.w3.org/2002/07/owl#deprecated",
}


def ntriples() -> str:
    """The same statements, the last first."""
    lines = ["# a comment", ""]
    for subject, relation, value in _STATEMENTS:
        if relation == "type":
            value = f"<{SKOS}{value}>"
        elif not value.startswith('"'):
            value = f"<{A}{value}>"
        lines.append(f"<{A}{subject}> <{_SPECIAL.get(relation, SKOS + relation)}> {value} .")
    return "\n".join(lines)


RDF_XML = f"""<?xml version="1.0"?>
<!DOCTYPE rdf:RDF [<!ENTITY skos "{SKOS}"> <!ENTITY xsd "{_XSD}">]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:skos="{SKOS}" xml:base="{A}"
    xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#" xmlns:owl="http://www.w3.org/2002/07/owl#">
<skos:Concept rdf:about="p1"><skos:prefLabel xml:lang="fi">eläimet</skos:prefLabel>
  <skos:prefLabel xml:lang="en">animals</skos:prefLabel><skos:notation>01</skos:notation>
  <skos:scopeNote xml:lang="en">Not plants.</skos:scopeNote>
  <skos:definition xml:lang="fi">Eläviä olentoja.</skos:definition>
  <skos:definition xml:lang="en">Living beings that
    move.</skos:definition>
  <skos:narrower><skos:Concept rdf:about="p2"><skos:prefLabel xml:lang="en">cats</skos:prefLabel>
    <skos:prefLabel xml:lang="fi">kissat</skos:prefLabel><skos:altLabel xml:lang="en">kitties</skos:altLabel>
    <skos:altLabel xml:lang="en">felines</skos:altLabel><skos:altLabel xml:lang="fi">mirrit</skos:altLabel>
    <skos:hiddenLabel xml:lang="en">catz</skos:hiddenLabel>
    <skos:scopeNote xml:lang="en">Domestic cats only.</skos:scopeNote>
    <skos:definition xml:lang="fi">Kissaeläimet.</skos:definition>
    <skos:notation rdf:datatype="&xsd;integer">007</skos:notation></skos:Concept></skos:narrower></skos:Concept>
<rdf:Description rdf:about="p3"><rdf:type rdf:resource="&skos;Concept"/>
  <rdfs:label xml:lang="en">birds "of" prey</rdfs:label><skos:broader rdf:resource="p9"/>
  <skos:definition rdf:parseType="Resource"><rdf:value xml:lang="en">Birds that hunt.</rdf:value></skos:definition>
  <skos:broader rdf:resource="p1"/></rdf:Description>
<skos:Concept rdf:about="p4"><skos:prefLabel xml:lang="en">bank</skos:prefLabel><skos:notation>B1</skos:notation>
  <skos:broader rdf:resource="p5"/></skos:Concept>
<skos:Concept rdf:about="p5"><skos:prefLabel xml:lang="en">bank</skos:prefLabel>
  <skos:broader rdf:resource="p4"/></skos:Concept>
<skos:Concept rdf:about="p6"><skos:prefLabel xml:lang="fi">hevoset</skos:prefLabel>
  <skos:definition xml:lang="de">Pferde.</skos:definition></skos:Concept>
<skos:Concept rdf:about="p7"/>
<skos:Concept rdf:about="p9"><skos:prefLabel xml:lang="en">dragons</skos:prefLabel>
  <owl:deprecated rdf:datatype="&xsd;boolean">true</owl:deprecated></skos:Concept>
</rdf:RDF>"""
_CONTEXT = {
    "@base": A, "skos": SKOS, "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#", "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "uri": "@id", "type": "@type",
    "name": {"@id": "skos:prefLabel", "@container": "@language"},
    "alt": {"@id": "skos:altLabel", "@container": "@language"},
    "definition": {"@id": "skos:definition", "@container": "@language"},
    "note": {"@id": "skos:scopeNote", "@container": "@language"},
    "broader": {"@id": "skos:broader", "@type": "@id"}, "narrower": {"@id": "skos:narrower", "@type": "@id"},
}  # fmt: skip
JSON_LD = {
    "@context": _CONTEXT,
    "@graph": [
        {"uri": "p9", "type": "skos:Concept", "name": {"en": "dragons"}, "owl:deprecated": True},
        {"uri": "p1", "type": "skos:Concept", "name": {"en": "animals", "fi": "eläimet"}, "skos:notation": "01",
         "definition": {"en": "Living beings that move.", "fi": "Eläviä olentoja."}, "note": {"en": "Not plants."},
         "narrower": "p2"},
        {"uri": "p2", "type": "skos:Concept", "name": {"en": "cats", "fi": "kissat"},
         "alt": {"en": ["felines", "kitties"], "fi": "mirrit"},
         "definition": {"fi": "Kissaeläimet."}, "note": {"en": "Domestic cats only."},
         "skos:hiddenLabel": {"@value": "catz", "@language": "en"},
         "skos:notation": {"@value": "007", "@type": f"{_XSD}integer"}},
        {"uri": "p3", "type": "skos:Concept", "rdfs:label": {"@value": 'birds "of" prey', "@language": "en"},
         "skos:definition": {"rdf:value": {"@value": "Birds that hunt.", "@language": "en"}},
         "broader": ["p1", "p9"]},
        {"uri": "p4", "type": "skos:Concept", "name": {"en": "bank"}, "skos:notation": "B1", "broader": "p5"},
        {"uri": "p5", "type": "skos:Concept", "name": {"en": "bank"}, "broader": "p4"},
        {"uri": "p6", "type": "skos:Concept", "name": {"fi": "hevoset"}, "definition": {"de": "Pferde."}},
        {"uri": "p7", "type": "skos:Concept"},
        {"uri": "pets", "type": "skos:Collection", "name": {"en": "Pets"}},
    ],
}  # fmt: skip


@pytest.fixture
def animals(tmp_path: Path) -> dict[str, Path]:
    """The vocabulary in four files, by their endings."""
    contents = {".ttl": TURTLE, ".nt": ntriples(), ".rdf": RDF_XML, ".jsonld": json.dumps(JSON_LD)}
    files = {ending: tmp_path / f"animals{ending}" for ending in contents}
    for ending, path in files.items():
        path.write_text(contents[ending], encoding="utf-8")
    return files
