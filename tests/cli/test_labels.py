"""The commands labels list, add, retire, rename, merge, split and edit."""

import json
from pathlib import Path

import pytest

import labelspace
from labelspace import Tagger
from labelspace.tagger.versions import history
from tests.checks import digest

TEXTS = ["rye dough loaf", "salmon river net", "leaf cup kettle"] * 10
NAMES = [["bread"], ["fish"], ["tea"]] * 10


@pytest.fixture
def model(run, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    Tagger("neighbors", features="tfidf", feature_params={"min_df": 1}).fit(TEXTS, NAMES).save("m")
    return "m"


def listed(run, *more):
    code, out, _ = run("labels", "list", "m", "--json", *more)
    assert code == 0
    return json.loads(out)


def names(run, *more):
    return [row["label"] for row in listed(run, *more)["labels"]]


def test_each_edit_makes_a_version_and_says_what_changed(run, model):
    code, out, err = run("labels", "add", model, "soup", "--alt", "broth", "--alt", "stew")
    assert (code, out, err) == (0, "added 'soup' with 2 synonyms: 4 labels in use; m is version 2\n", "")
    assert run("labels", "rename", model, "tea", "hot drink")[1] == (
        "renamed 'tea' to 'hot drink': 4 labels in use; m is version 3\n"
    )
    assert run("labels", "merge", model, "fish", "soup")[1] == (
        "merged 'fish' into 'soup': 3 labels in use; m is version 4\n"
    )
    code, out, _ = run("labels", "retire", model, "bread", "hot drink")
    assert out.splitlines() == ["retired 'bread'", "retired 'hot drink'", "2 edits: 1 labels in use; m is version 5"]
    tagger = labelspace.load(model)
    assert tagger.tag("salmon river net") == [("soup", pytest.approx(1))]
    assert [each.made_by for each in tagger.lineage_] == ["train", "labels", "labels", "labels", "labels"]
    code, out, err = run("labels", "list", model)
    assert out.splitlines() == [
        "        0  bread  (retired)",
        "        0  fish  -> soup",
        "        0  hot drink  (retired)  (tea)",
        "       10  soup  (broth, stew, fish)",
    ]
    assert err == "note: 1 of 4 labels are in use\n"
    assert run("rollback", model, "--to", "1")[0] == 0
    assert names(run) == ["bread", "fish", "tea"]
    assert run("labels", "retire", model, "tea", "--keep", "2")[0] == 0
    assert [each.version.number for each in history(model) if each.is_kept] == [5, 6]


def test_list_searches_and_sorts(run, model):
    run("labels", "add", model, "Apple", "--alt", "pomme")
    assert names(run) == ["bread", "fish", "tea", "Apple"]
    assert names(run, "--sort", "name") == ["Apple", "bread", "fish", "tea"]
    assert names(run, "--sort", "documents")[-1] == "Apple"
    assert names(run, "--search", "POM") == ["Apple"]
    found = listed(run, "--search", "b")
    assert (found["n_labels"], found["n_in_use"]) == (4, 4)
    assert found["labels"] == [
        {
            "id": 0,
            "label": "bread",
            "documents": 10,
            "alt": [],
            "uri": None,
            "description": None,
            "state": "in use",
            "into": None,
        }
    ]
    assert run("labels", "list", model, "--search", "zzz")[1:] == ("", "note: 0 found; 4 of 4 labels are in use\n")


def test_descriptions_are_given_listed_searched_explained_and_removed(run, model):
    code, out, _ = run("labels", "add", model, "bread", "--alt", "loaf", "--description", "Baked  from dough.")
    assert (code, out) == (0, "described 'bread' with 1 synonym and a description: 3 labels in use; m is version 2\n")
    assert names(run, "--search", "FROM DOUGH") == ["bread"]
    assert run("explain", model, "rye dough loaf", "--k", "1")[1].splitlines()[1].strip() == "Baked from dough."
    assert json.loads(run("explain", model, "rye dough", "--json")[1])["explanations"][0]["description"]
    Path("about.csv").write_text("action,label,description\nadd,tea,A hot drink.\nadd,bread,\n")
    assert (
        run("labels", "edit", model, "--from", "about.csv")[1].splitlines()[0] == "described 'tea' with a description"
    )
    found = {row["label"]: row["description"] for row in listed(run)["labels"]}
    assert found == {"bread": "Baked from dough.", "fish": None, "tea": "A hot drink."}
    assert "described 'tea' with no description:" in run("labels", "add", model, "tea", "--description", "")[1]
    assert [each.description for each in labelspace.load(model).labels_.described()] == [
        "Baked from dough.",
        None,
        None,
    ]


def test_examples_and_split(run, model):
    Path("toast.txt").write_text("dough cup\ndough kettle\n")
    code, out, _ = run("labels", "add", model, "toast", "--examples", "toast.txt")
    assert (code, out) == (0, "added 'toast' with 2 documents: 4 labels in use; m is version 2\n")
    assert "toast" in dict(labelspace.load(model).tag("dough cup", k=3))
    made = labelspace.load(model).lineage_[-1]
    assert (made.data, made.n_new_documents, made.new_labels) == ("toast.txt", 2, ("toast",))
    rows = [
        ("rye dough", "rye bread"),
        ("rye loaf", "rye bread"),
        ("loaf", "white bread"),
        ("dough loaf", "white bread"),
    ]
    Path("split.jsonl").write_text("".join(json.dumps({"text": t, "labels": [label]}) + "\n" for t, label in rows))
    code, out, err = run("labels", "split", model, "bread", "--examples", "split.jsonl")
    assert (code, out) == (
        0,
        "split 'bread' into 'rye bread' (2 documents) and 'white bread' (2 documents): "
        "5 labels in use; m is version 3\n",
    )
    assert labelspace.load(model).tag("rye dough")[0][0] == "rye bread"
    assert "bread" not in dict(labelspace.load(model).tag("rye dough"))


def test_a_dry_run_writes_nothing(run, model):
    before = digest(Path(model))
    code, out, _ = run("labels", "merge", model, "fish", "tea", "--dry-run")
    assert (code, out) == (0, "merged 'fish' into 'tea': 2 labels in use; nothing is written to m: --dry-run\n")
    found = json.loads(run("labels", "merge", model, "fish", "tea", "--dry-run", "--json")[1])
    assert (found["version"], found["changes"]) == (None, ["merged 'fish' into 'tea'"])
    assert digest(Path(model)) == before
    assert not Path("m.versions").exists()
    found = json.loads(run("labels", "merge", model, "fish", "tea", "--json")[1])
    assert (found["version"], found["n_in_use"], found["made_by"]) == (2, 2, "labels")


def test_many_edits_at_once_or_none(run, model):
    Path("add.csv").write_text("label,alt\nsoup,broth|stew\nrice,\n")
    assert run("labels", "add", model, "--from", "add.csv")[1].splitlines() == [
        "added 'soup' with 2 synonyms",
        "added 'rice'",
        "2 edits: 5 labels in use; m is version 2",
    ]
    Path("all.jsonl").write_text(
        '{"action": "rename", "label": "soup", "new": "stew"}\n\n{"action": "merge", "label": "tea", "into": "stew"}\n'
        '{"action": "add", "label": "cake", "alt": ["gateau"]}\n{"action": "retire", "label": "rice"}\n'
    )
    code, out, _ = run("labels", "edit", model, "--from", "all.jsonl", "--json")
    assert code == 0
    assert json.loads(out)["changes"] == [
        "renamed 'soup' to 'stew'",
        "merged 'tea' into 'stew'",
        "added 'cake' with 1 synonym",
        "retired 'rice'",
    ]
    before = digest(Path(model))
    Path("bad.csv").write_text("label,new\nbread,loaf\ncaek,tart\n")
    code, out, err = run("labels", "rename", model, "--from", "bad.csv")
    assert (code, out) == (2, "")
    assert err == (
        "error: bad.csv:3: a label must be known, but 'caek' is none of 6 labels; did you mean 'cake'?; "
        "no edit was made\n"
    )
    assert digest(Path(model)) == before


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["retire", "m", "fihs"], "'fihs' is none of 3 labels; did you mean 'fish'?"),
        (["retire", "m", "bread", "fish", "tea"], "'tea' is the last one"),
        (["rename", "m", "fish"], "labels rename needs 2 names, or --from FILE; write: labelspace labels rename"),
        (["rename", "m", "fish", "tea"], "label names must be unique, but 'tea' is a label already"),
        (["merge", "m", "fish", "teaa"], "did you mean 'tea'"),
        (["merge", "m", "fish", "fish"], "'fish' is given twice"),
        (["add", "m"], "labels add needs 1 names"),
        (["add", "m", "x", "--from", "e.csv"], "either arguments or --from name labels, but both do: 'x'"),
        (["add", "m", "--alt", "y", "--from", "e.csv"], "--examples, --alt and --description are for"),
        (["add", "m", "--description", "y", "--from", "e.csv"], "--description are for one label"),
        (["add", "m", "x", "--description", "\x1b[2J"], "a label must have a description without control characters"),
        (["retire", "m", "--from", "about.csv"], "about.csv:2: expected no 'description' for the action retire"),
        (["add", "m", "x\ny"], "one line of text"),
        (["add", "m", "x", "--examples", "none.txt"], "none.txt does not"),
        (["add", "m", "x", "--examples", "empty.txt"], "empty.txt"),
        (["retire", "m", "--from", "none.csv"], "none.csv"),
        (["retire", "m", "--from", "e.csv"], "e.csv:2: expected no 'new' for the action retire, but there is one"),
        (["rename", "m", "--from", "actions.csv"], "actions.csv:2: expected the action 'rename', but found 'retire'"),
        (["edit", "m", "--from", "e.csv"], "e.csv:2: expected the action add, retire, rename, merge, but found 'None'"),
        (["edit", "m", "--from", "empty.csv"], "empty.csv"),
        (
            ["edit", "m", "--from", "wrong.csv"],
            "wrong.csv:1: expected only action, label, new, into, alt, description, but there is",
        ),
        (["edit", "m", "--from", "wrong.jsonl"], "wrong.jsonl:1: expected a JSON object, but found '[1]'"),
        (["edit", "m", "--from", "types.jsonl"], "types.jsonl:1: expected texts"),
        (["edit", "m", "--from", "e.pdf"], "must be .csv, .tsv or .jsonl, but is 'e.pdf'"),
        (["split", "m", "bread", "--examples", "one.jsonl"], "at least two, but 'bread' into 1"),
        (["split", "m", "bread", "--examples", "known.jsonl"], "'fish' is a label already"),
        (["split", "m", "bread", "--examples", "bare.txt"], "document 0 of bare.txt has no label"),
        (["list", "nothing"], "nothing"),
    ],
)
def test_what_is_refused(run, model, command, said):
    files = {
        "e.csv": "label,new\nfish,salmon\n",
        "actions.csv": "action,label\nretire,fish\n",
        "empty.csv": "label\n",
        "about.csv": "label,description\nfish,Swims.\n",
        "empty.txt": "",
        "wrong.csv": "label,name\nfish,x\n",
        "wrong.jsonl": "[1]\n",
        "types.jsonl": '{"label": "x", "alt": [1]}\n',
        "one.jsonl": '{"text": "a", "labels": ["x"]}\n',
        "known.jsonl": '{"text": "a", "labels": ["x"]}\n{"text": "a", "labels": ["fish"]}\n',
        "bare.txt": "a\nb\n",
    }
    for name, content in files.items():
        Path(name).write_text(content)
    before = digest(Path(model))
    code, out, err = run("labels", *command)
    assert (code, out) == (2, ""), err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert said in err
    assert digest(Path(model)) == before


def test_a_method_that_cannot_learn_is_edited_all_the_same(run):
    Tagger("leml").fit(TEXTS, NAMES).save("m")
    assert run("labels", "retire", "m", "tea")[0] == 0
    assert run("labels", "merge", "m", "bread", "fish")[0] == 0
    Path("a.txt").write_text("leaf\n")
    code, _, err = run("labels", "add", "m", "toast", "--examples", "a.txt")
    assert code == 2
    assert "needs a method that can go on learning, but leml cannot; train with --method" in err
