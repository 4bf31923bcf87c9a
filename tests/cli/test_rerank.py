"""labelspace predict --shortlist, and --rerank of predict and evaluate."""

import json
import re
from itertools import product
from pathlib import Path

import pytest

from labelspace.data.label_mapping import ones_of_rows
from labelspace.data.source import write_dataset
from labelspace.tagger import Tagger
from labelspace.types import Concept, Dataset, LabelSpace
from tests.tagger.reranking.stub import completion, endpoint  # noqa: F401 - a fixture

BREAD, FISH, TEA = "food > bread", "food > fish", "drink > tea"
WORDS = {BREAD: "rye loaf crust", FISH: "salmon tuna fillet", TEA: "leaves cup lemon"}
LABELS = LabelSpace(
    list(WORDS),
    [["loaf"], [], ["chai", "an old name"]],
    concepts=[
        Concept("ex:1", "01", description="baked dough"),
        Concept("ex:2"),
        Concept("ex:3", hidden=("an old name",)),
    ],
)
TEXT = "a rye loaf"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of three labels, and a file that it tags."""
    base = tmp_path_factory.mktemp("rerank")
    pairs = [(label, word, way) for label in WORDS for word, way in product(WORDS[label].split(), ("old", "new"))] * 3
    rows = [[LABELS.index[label]] for label, _, _ in pairs]
    documents = Dataset(ones_of_rows(rows, 3), LABELS, texts=[f"{word} {way}" for _, word, way in pairs])
    Tagger(members="label_tree,lexical", boosting_rounds=5).fit_dataset(documents).save(base / "model")
    write_dataset(documents.rows(range(18)), base / "test.jsonl")
    return base


def numbers(handler):
    """The number of each candidate in a request, by the beginning of its line."""
    asked = handler.server.user_messages[-1]
    return {found[2]: found[1] for found in re.finditer(r"(?m)^(\d+)\. ([^:\n]*)", asked)}


def prefers_tea(handler):
    return completion({numbers(handler)[TEA]: 100}, prompt_tokens=50, completion_tokens=4)


def test_a_shortlist_has_what_is_known_of_a_label(run, folder):
    code, out, err = run("predict", folder / "model", TEXT, "--shortlist", 3, "--json")
    assert (code, err) == (0, "")
    by_name = {label["label"]: label for label in json.loads(out)["results"][0]["labels"]}
    assert len(by_name) == 3
    bread = by_name[BREAD]
    assert bread == {
        "label": BREAD,
        "score": bread["score"],
        "id": "ex:1",
        "notation": "01",
        "description": "baked dough",
        "synonyms": ["loaf"],
        "probability": bread["score"],
    }
    assert by_name[TEA]["synonyms"] == ["chai"]
    assert by_name[FISH].keys() == {"label", "score", "id", "probability"}
    assert "baked dough" in run("predict", folder / "model", TEXT, "--shortlist", 3)[1]


def test_a_shortlist_of_a_file(run, folder):
    _, printed, _ = run("predict", folder / "model", "--input", folder / "test.jsonl", "--shortlist", 2)
    first = json.loads(printed.splitlines()[0])
    assert ([label["label"] for label in first["labels"]][0], len(first["labels"])) == (BREAD, 2)
    assert first["labels"][0]["description"] == "baked dough"
    run("predict", folder / "model", "--input", folder / "test.jsonl", "--shortlist", 2, "--out", "out.jsonl")
    assert Path("out.jsonl").read_text() == printed


def test_texts_are_reranked(run, folder, endpoint, monkeypatch):  # noqa: F811
    monkeypatch.setenv("LABELSPACE_RERANK_KEY", "secret")
    stub = endpoint(prefers_tea)
    arguments = ("predict", folder / "model", TEXT, "--k", 2, "--rerank", stub.url, "--rerank-model", "tiny")
    code, out, err = run(*arguments, "--rerank-weight", "0.9", "--json")
    (found,) = json.loads(out)["results"]
    assert (code, found["reranked"]) == (0, True)
    assert [label["label"] for label in found["labels"]] == [TEA, BREAD]
    assert found["labels"][0]["score"] > found["labels"][0]["probability"]
    counts = r"\(1 requests, [\d,]+ characters sent, 50 tokens in and 4 out\)\n"
    assert re.fullmatch(f"note: reranked 1 of 1 documents by {stub.url} {counts}", err)
    assert "secret" not in out + err
    assert stub.requests[0][1]["Authorization"] == "Bearer secret"


def test_a_file_keeps_our_order_where_the_endpoint_fails(run, folder, endpoint):  # noqa: F811
    def every_other(handler):
        return completion({"1": 1e9}) if len(handler.server.requests) % 2 else prefers_tea(handler)

    stub = endpoint(every_other)
    given = ("predict", folder / "model", "--input", folder / "test.jsonl", "--k", 1, "--rerank", stub.url)
    _, ours, _ = run(*given[:-2])
    code, out, err = run(*given, "--rerank-model", "tiny", "--rerank-weight", 1, "--rerank-parallel", 1)
    rows = [json.loads(line) for line in out.splitlines()]
    before = [json.loads(line)["labels"][0] for line in ours.splitlines()]
    assert [row["reranked"] for row in rows] == [False, True] * 9
    assert [row["labels"][0]["label"] for row in rows[1::2]] == [TEA] * 9
    assert [row["labels"][0]["label"] for row in rows[::2]] == [label["label"] for label in before[::2]]
    assert (code, err.count("\n")) == (0, 1)
    assert "; 9 kept our order: 9 a score that is not between 0 and 100\n" in err


def test_evaluate_measures_the_gain(run, folder, endpoint):  # noqa: F811
    stub = endpoint(prefers_tea)
    given = ("evaluate", folder / "model", folder / "test.jsonl", "--k", "1,3")
    asked = (*given, "--rerank", stub.url, "--rerank-model", "tiny", "--rerank-weight", 1)
    figures = json.loads(run(*asked, "--json")[1])
    assert figures["P@1"] == json.loads(run(*given, "--json")[1])["P@1"] == 100
    assert figures["reranked"]["P@1"] == pytest.approx(100 / 3, abs=1e-3)
    assert figures["reranked"]["R@3"] == 100
    assert len(stub.requests) == figures["rerank"]["requests"] == 18  # once per document, though figures take several
    assert "the same with --rerank, which reordered 18 of 18" in run(*asked)[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--k", 3, "--shortlist", 3), "either --k or --shortlist is the number of labels"),
        (("--rerank-model", "tiny"), "--rerank-model is for --rerank, but there is none; add --rerank URL"),
        (("--rerank", "http://127.0.0.1:9"), "none is given; add --rerank-model NAME"),
        (("--rerank", "http://127.0.0.1:9", "--rerank-model", "tiny", "--consistent"), "but --rerank gives them"),
        (("--rerank", "ftp://a", "--rerank-model", "tiny"), "a rerank endpoint must be http://HOST"),
        (("--rerank", "http://a", "--rerank-model", "m", "--rerank-timeout", "soon"), "--rerank-timeout must be a"),
        (("--rerank-weight", 2), "2.0 is not in the range 0<=x<=1"),
        (("--shortlist", 3, "--cluster", "local", "--input", "in", "--out", "out"), "--shortlist is for this machine"),
    ],
)
def test_what_does_not_go_together(run, folder, arguments, message):
    texts = () if "--input" in arguments else (TEXT,)
    code, out, err = run("predict", folder / "model", *texts, *arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_a_table_has_no_place_for_descriptions(run, folder):
    given = ("predict", folder / "model", "--input", folder / "test.jsonl", "--out", "out.csv", "--shortlist", 3)
    assert "--shortlist is given with out.csv; use --k, or .jsonl" in run(*given)[2]
