"""Each check finds the fault that is planted, and nothing in clean data."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.data.checks import CHECKS, Documents, run_checks, selected
from labelspace.data.checks.base import HIGH, LOW, MEDIUM, Found
from labelspace.data.checks.document_checks import leaked
from labelspace.data.checks.label_checks import folded_name, one_letter_apart
from labelspace.data.checks.same_documents import near_duplicates
from labelspace.data.source import open_source
from labelspace.data.texts import dataset_from_names
from labelspace.errors import ParameterError
from labelspace.types import Columns, Dataset, Hierarchy, LabelSpace

WORDS = [f"word{i}" for i in range(500)]
NAMES = ["bread", "fish", "rice", "soup", "tea"]


def text(seed, n=20):
    return " ".join(np.random.default_rng(seed).choice(WORDS, n))


def clean_texts(n=40, start=0):
    return [text(start + i) for i in range(n)]


def clean_labels(n=40):
    return [[NAMES[i % 5]] for i in range(n)]


def documents(texts=None, labels=None, test=None, **labels_given):
    """Clean documents, or those that are given; ``test`` are pairs of text and labels."""
    train = dataset_from_names(texts or clean_texts(), labels or clean_labels(len(texts or clean_texts())))
    if labels_given:
        space = LabelSpace(train.labels.names, **labels_given)
        train = Dataset(train.Y, space, train.texts)
    parts = {"train": train}
    if test is not None:
        space = train.labels.extended(name for _, names in test for name in names)
        rows = [[space.index[name] for name in names] for _, names in test]
        Y = sp.csr_matrix((len(test), len(space)), dtype=np.float32).tolil()
        for row, ids in enumerate(rows):
            Y[row, ids] = 1
        parts["test"] = Dataset(Y.tocsr(), space, [t for t, _ in test])
    return Documents(parts)


def found(given, check):
    found = CHECKS[check].find(given)
    return found if found is not None and found.count else None


def test_clean_data_are_silent():
    report = run_checks(documents(test=[(text(1000), ["tea"]), (text(1001), ["soup", "fish"])]))
    assert not report.findings
    assert not report.skipped
    assert report.passed == list(CHECKS)


def test_duplicates_and_the_same_text_with_other_labels():
    texts = [*clean_texts(), text(3).upper().replace(" ", "\n "), text(4)]
    given = documents(texts, [*clean_labels(), clean_labels()[3], ["tea", "bread"]])
    same, other = found(given, "duplicate_documents"), found(given, "conflicting_labels")
    assert (same.count, same.total, same.examples[0].where) == (1, 42, ("train[3]", "train[40]"))
    assert other.count == 1
    assert "only second: bread" in other.examples[0].what
    assert found(given, "near_duplicate_documents") is None


def test_near_duplicates():
    texts = clean_texts()
    changed = texts[7].split()
    changed[19] = "another"
    given = documents([*texts, " ".join(changed), texts[8].replace(" ", ", ")])
    near = found(given, "near_duplicate_documents")
    assert near.count == 2
    assert {example.where for example in near.examples} == {("train[7]", "train[40]"), ("train[8]", "train[41]")}


def test_near_duplicates_are_those_of_brute_force():
    rng = np.random.default_rng(0)
    texts = []
    for seed in range(60):
        words = text(seed, 40).split()
        texts.append(" ".join(words))
        for place in rng.choice(40, rng.integers(0, 6), replace=False):
            words[place] = "x"
        texts.append(" ".join(words))

    def triples(t):
        words = t.split()
        return {tuple(words[i : i + 3]) for i in range(len(words) - 2)}

    same = np.array([texts.index(t) for t in texts])
    neighbors = near_duplicates(texts, same, np.ones(len(texts), bool))
    for i in range(1, len(texts), 2):
        a, b = triples(texts[i - 1]), triples(texts[i])
        similarity = len(a & b) / len(a | b)
        expected = i - 1 if similarity >= 0.8 and same[i] == i else -1
        assert neighbors.within[i] == expected
        if expected >= 0:
            assert neighbors.similarity[i] == pytest.approx(similarity)


def test_leaks_exact_and_near():
    near = text(5) + " and more"
    given = documents(test=[(text(2).title(), ["tea"]), (near, ["tea"]), (text(2000), ["tea"])])
    exact, nearly = found(given, "leaked_documents"), found(given, "near_leaked_documents")
    assert (exact.count, exact.total, exact.examples[0].where) == (1, 3, ("train[2]", "test[0]"))
    assert (nearly.count, nearly.examples[0].where) == (1, ("train[5]", "test[1]"))
    assert np.flatnonzero(leaked(given)).tolist() == [2]


def test_repeated_ids_but_not_row_numbers():
    given = documents(test=[(text(2000), ["tea"])])
    assert found(given, "repeated_ids") is None
    train, test = given.parts.values()
    numbered = Documents({"train": Dataset(train.Y, train.labels, train.texts, ids=[str(i) for i in range(40)])})
    assert found(numbered, "repeated_ids") is None
    ids = [f"a{i}" for i in range(40)]
    named = Documents(
        {
            "train": Dataset(train.Y, train.labels, train.texts, ids=ids),
            "test": Dataset(test.Y, test.labels, test.texts, ids=["a7"]),
        }
    )
    assert found(named, "repeated_ids").examples[0].where == ("train[7]", "test[0]")


def test_labels_without_documents_with_one_and_only_in_test():
    labels = clean_labels()
    labels[0] = ["bread", "once"]
    given = documents(labels=labels, test=[(text(2000), ["new", "tea"])])
    assert found(given, "single_document_labels").examples[0].what == "once"
    unseen = found(given, "unseen_labels")
    assert (unseen.count, unseen.examples[0].what) == (1, "new")
    assert found(given, "unused_labels") is None
    train = given.train
    space = train.labels.extended(["nothing", "root"])
    space = LabelSpace(space.names, hierarchy=Hierarchy.from_edges([[0, len(space) - 1]], len(space)))
    Y = sp.csr_matrix((train.Y.data, train.Y.indices, train.Y.indptr), shape=(40, len(space)))
    unused = found(Documents({"train": Dataset(Y, space, train.texts)}), "unused_labels")
    assert [example.what for example in unused.examples] == ["nothing"]  # the root has a label below it


def test_labels_that_look_like_ids():
    labels = [[*names, f"sku {row}"] for row, names in enumerate(clean_labels())]
    assert found(documents(labels=labels), "id_like_labels").count == 40
    names = [f"sku: {i}" for i in range(30)] + ["kind: a", "kind: b"]
    Y = sp.csr_matrix(np.hstack([np.eye(30), np.eye(2)[np.arange(30) % 2]]).astype(np.float32))
    columns = Columns(("title",), (("sku",), ("kind",)))
    table = Documents({"train": Dataset(Y, LabelSpace(names), clean_texts(30), columns=columns)}, columns=columns)
    ids = found(table, "id_like_labels")
    assert (ids.count, ids.note) == (30, "column sku")


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("T-Shirt", "t shirts"), ("Cherry", "cherries"), ("Crème brûlée", "creme brulee"), ("e-mail", "Email"),
        ("food > Eggs", "Food > egg"), ("Mother's Recipe", "Mothers recipe"), ("on_the_run", "On the Run"),
        ("Envy-1000", "ENVY 1000"), ("Dr.Batra", "Dr Batra"),
    ],
)  # fmt: skip
def test_spellings_of_one_name(a, b):
    assert folded_name(a) == folded_name(b) != ""


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("A1", "A2"), ("C", "C++"), ("C#", "C"), ("1.5", "15"), ("90s", "90"), ("gas", "ga"), ("I10.1", "I101"),
        ("हिन्दी", "हिन्द"), ("-1", "1"), ("5%", "5"), ("glass", "glas"), ("й", "и"),
    ],
)  # fmt: skip
def test_different_names(a, b):
    assert folded_name(a) != folded_name(b)


def test_spellings_are_found_within_a_column_and_not_between_parent_and_child():
    labels = clean_labels()
    labels[0], labels[1] = ["Breads"], ["T-Shirt"]
    labels[2] = ["t shirts"]
    near = found(documents(labels=labels), "near_duplicate_labels")
    assert near.count == 2
    assert "bread (7), Breads (1)" in [example.what for example in near.examples]
    names = ["brand: Tea", "kind: Teas", "kind: tea"]
    Y = sp.csr_matrix(np.eye(3, dtype=np.float32))
    columns = Columns(("title",), (("brand",), ("kind",)))
    table = Documents({"train": Dataset(Y, LabelSpace(names), clean_texts(3), columns=columns)}, columns=columns)
    assert [example.what for example in found(table, "near_duplicate_labels").examples] == [
        "kind: Teas (1), kind: tea (1)"
    ]
    tree = LabelSpace(["Shoes", "shoe", "x"], hierarchy=Hierarchy.from_edges([[1, 0]], 3))
    assert found(Documents({"train": Dataset(Y, tree, clean_texts(3))}), "near_duplicate_labels") is None


def test_mistyped_names():
    labels = [["restaurant guide"]] * 39 + [["restuarant guide"]]
    assert found(documents(labels=labels), "mistyped_labels").examples[0].what.startswith("restuarant guide (1)")
    assert found(documents(labels=[["restaurant 12"]] * 39 + [["restaurant 13"]]), "mistyped_labels") is None
    assert one_letter_apart("restaurant", "restaurnt")
    assert not one_letter_apart("national", "rational")
    assert not one_letter_apart("restaurant", "restaaraat")


def test_contents():
    texts = clean_texts()
    texts[0], texts[1], texts[2], texts[3] = " \n", "CafÃ© " + texts[1], "nul\x00 " + texts[2], "w " * 40_000
    labels = clean_labels()
    labels[4], labels[5] = [], [f"l{i}" for i in range(60)]
    given = documents(texts, labels)
    where = {name: found(given, name).examples[0].where for name in (
        "empty_documents", "wrong_encoding", "control_characters", "long_documents", "documents_without_labels",
        "documents_with_many_labels",
    )}  # fmt: skip
    assert list(where.values()) == [(f"train[{i}]",) for i in range(6)]
    assert found(given, "wrong_encoding").examples[0].what.startswith("CafÃ©")


def test_label_names_of_a_wrong_encoding():
    labels = clean_labels()
    labels[0] = ["cafÃ©"]
    garbled = found(documents(labels=labels), "wrong_encoding")
    assert (garbled.count, garbled.examples[0].what, garbled.note) == (1, "label cafÃ©", "label names among them: 1")


def hierarchy_of(edges, rows, names=("a", "b", "c", "d", "e")):
    space = LabelSpace(list(names), hierarchy=Hierarchy.from_edges(edges, len(names)))
    Y = np.zeros((len(rows), len(names)), np.float32)
    for row, labels in enumerate(rows):
        Y[row, labels] = 1
    return Documents({"train": Dataset(sp.csr_matrix(Y), space, clean_texts(len(rows)))})


def test_hierarchy_redundant_edges_and_roots():
    given = hierarchy_of([[1, 0], [2, 1], [2, 0], [3, 4], [3, 0]], [[2], [3]])
    edges = found(given, "redundant_edges")
    assert (edges.count, edges.total, edges.examples[0].what) == (1, 5, "c -> a")
    roots = found(given, "several_roots")
    assert (roots.count, roots.examples[0].what) == (1, "d")
    tree = hierarchy_of([[1, 0], [2, 0]], [[1], [2]])
    assert found(tree, "redundant_edges") is found(tree, "several_roots") is None


def test_hierarchy_single_children():
    edges = [[1, 0], [2, 0], [3, 1], [4, 2]]  # d is the only child of b, e of c
    given = hierarchy_of(edges, [[0, 1, 3], [0, 2], [0, 2, 4]])
    assert [example.what for example in found(given, "single_children").examples] == ["d -> b"]


def test_hierarchy_documents_with_and_without_parents():
    edges = [[1, 0], [2, 0], [2, 4], [3, 1]]
    closed = hierarchy_of(edges, [[0, 1], [0, 2], [0, 1, 3], [1, 3]])  # c has one of two parents: enough
    lacking = found(closed, "uneven_ancestors")
    assert (lacking.count, lacking.total, lacking.examples[0].where) == (1, 4, ("train[3]",))
    assert "lack" in lacking.note
    leaves = hierarchy_of(edges, [[1], [2], [3], [0, 1]])
    assert found(leaves, "uneven_ancestors").examples[0].where == ("train[3]",)
    assert found(hierarchy_of(edges, [[1], [2], [3]]), "uneven_ancestors") is None


def test_features_in_place_of_texts():
    X = sp.random(30, 50, 0.2, "csr", np.float32, rng=0).tolil()
    X[7], X[9] = X[3], 0
    Y = sp.csr_matrix(np.eye(3, dtype=np.float32)[np.arange(30) % 3])
    given = Documents({"train": Dataset(Y, LabelSpace.numbered(3), X=X.tocsr())})
    report = {finding.check.name: finding.found for finding in run_checks(given).findings}
    assert set(report) == {"empty_documents", "conflicting_labels"}
    assert report["conflicting_labels"].examples[0].where == ("train[3]", "train[7]")


def test_splits_of_texts_and_of_features_together():
    texts = documents()
    features = Dataset(texts.train.Y[:5], texts.labels, X=sp.csr_matrix(np.zeros((5, 2), np.float32)))
    report = run_checks(Documents({"train": texts.train, "test": features}))
    assert [finding.check.name for finding in report.findings] == ["empty_documents"]


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_examples_name_file_and_line(tmp_path, ending):
    rows = [{"text": f"first\nline {i}" if i % 2 else "", "labels": ["a"]} for i in range(4)]
    if ending == "jsonl":
        (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        (tmp_path / "a.csv").write_text("text,labels\n" + "".join(f'"{row["text"]}",a\n' for row in rows))
    empty = found(Documents.read(open_source(tmp_path / f"a.{ending}")), "empty_documents")
    lines = {"jsonl": (1, 3), "csv": (2, 5)}[ending]
    assert [example.where for example in empty.examples] == [(f"a.{ending}:{line}",) for line in lines]


def test_severity_depends_on_the_share():
    assert CHECKS["leaked_documents"].finding(Found(5, 100)).severity == HIGH
    assert CHECKS["leaked_documents"].finding(Found(5, 1000)).severity == MEDIUM
    assert CHECKS["duplicate_documents"].finding(Found(1, 10_000)).severity == LOW
    assert CHECKS["repeated_ids"].finding(Found(1, 10_000)).severity == LOW


def test_checks_are_selected_by_name():
    assert selected(only=["unused_labels", "repeated_ids"], skip=["repeated_ids"]) == ["unused_labels"]
    with pytest.raises(ParameterError, match="no 'unused_label'; did you mean unused_labels?"):
        selected(skip=["unused_label"])


def test_a_check_beyond_a_limit_is_skipped_and_said(monkeypatch):
    monkeypatch.setenv("LABELSPACE_MAX_LEVELS", "2")
    names = [f"l{i}" for i in range(5)]
    parents = sp.csr_matrix(np.eye(5, k=-1, dtype=np.float32))
    space = LabelSpace(names, hierarchy=Hierarchy(parents))
    Y = sp.csr_matrix(np.eye(5, dtype=np.float32))
    report = run_checks(Documents({"train": Dataset(Y, space, clean_texts(5))}), ["unused_labels", "repeated_ids"])
    assert report.passed == ["repeated_ids"]
    assert "at most 2 levels" in report.skipped["unused_labels"]
