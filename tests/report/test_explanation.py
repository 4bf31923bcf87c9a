import io

import pytest
from rich.console import Console

from labelspace.explain import Explanation, Neighbor, PathNode, Phrase, ValueShare, WordShare
from labelspace.models.evidence import MemberShare
from labelspace.report.explanation import MAX_TEXT, explanation_report, marked_text, passages
from labelspace.report.explanation_page import explanations_page
from tests.checks import outline

EVIL = "<img src=x onerror=alert(1)>\x1b[31m"
TEXT = "rye bread and fish, twice as much"


def explanation(label="bread", text=TEXT, **changes):
    words = [WordShare("bread", 4, 9, 2.5), WordShare("fish", 14, 18, -1.5)]
    values = {
        "label": label, "synonym": f"about {label}", "description": f"What {label} is for.",
        "score": 0.8, "probability": 0.8, "log_odds": 1.4, "baseline": -3.0, "words": words,
        "features": [], "values": [ValueShare(f"brand = {label}", 0.7)],
        "phrases": [Phrase("bread", 4, 9, "name", 1.0)],
        "neighbors": [Neighbor(f"q-7{label}", 0.4, 0.3, ["bread"], "a text " + label)],
        "path": [PathNode([label, "b", "c"], 30, 0.9, 1.0)],
        "members": [MemberShare("neighbors:words", 0.4, 1, 2.0), MemberShare("lexical", 0.1, None, -0.5)],
        "remainder": 0.1, "n_words": 16,
    }  # fmt: skip
    return Explanation(**{**values, **changes})


def shown(text, why, in_color=False):
    out = Console(width=100, record=True, file=io.StringIO())
    out.print(explanation_report(text, why, in_color))
    return out.export_text()


def test_the_terminal_marks_words_and_lists_what_speaks_for_a_label():
    report = shown(TEXT, explanation())
    assert "rye [bread] and [-fish], twice" in report
    assert "bread +2.50" in report
    assert "fish -1.50" in report
    assert "'bread' (name)" in report
    assert "q-7bread (similarity 0.40: bread)" in report
    assert "bread, b, c and 27 more (0.90)" in report


def test_names_from_files_cannot_control_the_terminal():
    report = shown(EVIL + TEXT, explanation(EVIL, words=[]))
    assert "\x1b" not in report
    assert "\\x1b[31m" in report


def test_passages_of_a_long_text_are_those_around_marked_words():
    text = "filler " * 400 + "bread " + "filler " * 400
    at = text.index("bread")
    ((start, stop),) = passages(text, [WordShare("bread", at, at + 5, 1.0)])
    assert "bread" in text[start:stop]
    assert stop - start < MAX_TEXT
    assert passages(TEXT, []) == [(0, len(TEXT))]
    many = [WordShare("filler", i, i + 6, 1.0) for i in range(0, 2000, 7)]
    assert sum(stop - start for start, stop in passages(text, many)) <= MAX_TEXT
    assert str(marked_text(text, explanation(words=[WordShare("bread", at, at + 5, 1.0)]), False)).startswith(" … ")


@pytest.mark.parametrize("text", [TEXT, None])
def test_the_page_is_well_formed_opens_offline_and_holds_no_markup_of_others(text):
    page = explanations_page(text, [explanation(), explanation(EVIL, words=[])], EVIL)
    seen = outline(page)
    assert "<img" not in page
    assert "http" not in page
    assert seen.get("mark", 0) == (2 if text else 0)
