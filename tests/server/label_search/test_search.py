"""Labels found while a query is typed, against a twin that looks at every name."""

import unicodedata
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelspace.errors import ParameterError
from labelspace.labels.edits import merged, retired
from labelspace.server.label_search.search import MAX_CHARACTERS, MAX_WORDS, LabelMatch, LabelSearch
from labelspace.types import LabelSpace

FOOD = LabelSpace(
    ["bread", "rye bread", "Crème brûlée", "food > bread > rye", "breadcrumbs", "C++", "???", "東京都", "bread knife"],
    [["loaf"], ["Roggenbrot"], [], [], ["panko"], [], [], ["Tokyo"], []],
    np.array([5, 9, 1, 2, 7, 1, 1, 1, 6]),
)


@pytest.fixture(scope="module")
def food():
    return LabelSearch(FOOD)


def names(found, labels=FOOD):
    return [labels.names[label] for label, _ in found]


def plain(text):
    """A text without accents and case, as Python's own functions make it."""
    chars = unicodedata.normalize("NFKD", text)
    return " ".join("".join(char for char in chars if not unicodedata.combining(char)).casefold().split())


def plain_words(text):
    """Runs of letters and digits; each Han character is a word."""
    spaced = "".join(f" {c} " if "\u4e00" <= c <= "\u9fff" else c if c.isalnum() else " " for c in plain(text))
    return list(dict.fromkeys(spaced.split()))


def edits(word):
    """All that one edit makes of a word, where any other letter is a dot."""
    for at in range(len(word) + 1):
        yield word[:at] + "." + word[at:]
        yield word[:at] + word[at + 1 :]
        yield word[:at] + "." + word[at + 1 :]
        yield word[:at] + word[at : at + 2][::-1] + word[at + 2 :]


def begins(word, pattern):
    return len(word) >= len(pattern) and all(p in (".", c) for p, c in zip(pattern, word, strict=False))


def has_all(words, typed, mistyped=None):
    return all(
        any(begins(word, form) for word in words for form in (edits(query) if query == mistyped else [query]))
        for query in typed
    )


def plain_match(query, texts):
    """The group of a label, and what it is called; None where it does not match."""
    typed, words = plain_words(query), [word for text in texts for word in plain_words(text)]
    texts, query = [plain(text) for text in texts], plain(query)
    steps = [text.rpartition(" > ")[2] for text in texts if " > " in text]
    if not query or query in texts:
        return 0, "prefix"
    if query in steps:
        return 1, "prefix"
    if any(text.startswith(query) for text in texts + steps):
        return 2, "prefix"
    if typed and has_all(words, typed):
        return 3, "word"
    if any(len(word) >= 4 and has_all(words, typed, mistyped=word) for word in typed):
        return 4, "typo"
    return None


def plain_find(labels, query, limit, allowed):
    found = []
    for label, name in enumerate(labels.names):
        match = plain_match(query, [name, *(labels.synonyms[label] if labels.synonyms else [])])
        count = 0 if labels.counts is None else labels.counts[label]
        if match and (allowed is None or allowed[label]):
            group = match[0] if plain(query) else 0
            found.append((group, -count, len(name), label, match[1]))
    return [LabelMatch(label, match) for *_, label, match in sorted(found)[:limit]]


WORD = st.one_of(
    st.text("abé", min_size=1, max_size=6), st.sampled_from(["東京", "abcde", "Ábcdf", "bacde", "c++", "?"])
)
TEXT = st.lists(st.tuples(WORD, st.sampled_from([" ", " ", "-", " > ", ", "])), max_size=4).map(
    lambda parts: "".join(word + between for word, between in parts)
)


@st.composite
def spaces(draw):
    labels = draw(st.lists(TEXT, min_size=1, max_size=12, unique=True))
    synonyms = draw(st.none() | st.lists(st.lists(TEXT, max_size=2), min_size=len(labels), max_size=len(labels)))
    counts = draw(st.none() | st.lists(st.integers(0, 2), min_size=len(labels), max_size=len(labels)))
    return LabelSpace(labels, synonyms, None if counts is None else np.array(counts))


@given(spaces(), st.lists(TEXT, min_size=1, max_size=5), st.integers(1, 12), st.data())
def test_the_same_labels_as_a_look_at_every_name(labels, queries, limit, data):
    search = LabelSearch(labels)
    n = len(labels)
    allowed = data.draw(
        st.none() | st.lists(st.booleans(), min_size=n, max_size=n).map(lambda mask: np.array(mask, bool))
    )
    for query in queries:
        assert search.find(query, limit, allowed) == plain_find(labels, query, limit, allowed), query


@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=60), min_size=1, max_size=8, unique=True))
def test_every_label_is_found_by_its_own_name_whatever_the_characters(strange):
    search = LabelSearch(LabelSpace(strange, [[name[::-1]] for name in strange]))
    for label, name in enumerate(strange):
        found = search.find(name, len(strange))
        assert LabelMatch(label, "prefix") in found
        assert len({number for number, _ in found}) == len(found)


def test_equal_names_come_first_then_prefixes_then_words_by_frequency(food):
    found = food.find("bread")
    assert names(found) == ["bread", "breadcrumbs", "bread knife", "rye bread", "food > bread > rye"]
    assert [match for _, match in found] == ["prefix"] * 3 + ["word"] * 2


def test_the_last_step_of_a_path_is_a_name(food):
    assert food.find("ry") == [LabelMatch(1, "prefix"), LabelMatch(3, "prefix")]
    assert food.find("rye")[0] == LabelMatch(3, "prefix"), "equal to the step, though less frequent"
    labels = LabelSpace(["x > rye", "rye"], counts=np.array([9, 1]))
    assert names(LabelSearch(labels).find("rye"), labels) == ["rye", "x > rye"]
    assert food.find("food > br") == [LabelMatch(3, "prefix")]
    assert food.find("bread > rye") == [LabelMatch(3, "word"), LabelMatch(1, "word")][::-1]


@pytest.mark.parametrize(
    "query", ["crème", "creme", "CRÈME BRÛ", "cre\u0300me", "brulee", "brûlee creme", "  Creme \n"]
)
def test_accents_and_case_do_not_matter(food, query):
    assert names(food.find(query)) == ["Crème brûlée"]


@pytest.mark.parametrize(
    ("name", "queries"),
    [
        ("Ärzte", ["ärz", "arz", "A\u0308rz"]),
        ("Straße", ["strasse", "STRASSE", "straß"]),
        ("Łódź", ["lodz", "łódź", "Lód"]),
        ("Smørrebrød", ["smorre", "smørrebrød"]),
        ("İstanbul ılıca", ["istanbul", "ilica", "Istanbul ı"]),
        ("東京都", ["東", "京都", "都", "東京都"]),
        ("カレーライス", ["ｶﾚｰ", "ライス", "カレー", "カレー・ライス"]),
        ("ガラス", ["ガ", "ｶﾞﾗｽ", "ラス"]),
        ("ข้าวผัด", ["ข้าว", "ผัด", "ขาว", "ผ"]),
        ("हिन्दी भाषा", ["हिन्दी", "हि", "भाषा", "भाषा हिन्दी"]),
        ("한국어 사전", ["한국", "ㅎ", "하", "사전", "사전 한"]),
        ("שָׁלוֹם", ["שלום", "שָׁל"]),
        ("مُحَمَّد", ["محمد"]),
        ("green_tea-pot", ["tea", "green tea", "green_t", "pot"]),
        ("Donau\u00addampf", ["donaudampf", "donau"]),
        ("🍞 loaf", ["🍞", "loaf", "🍞 l"]),
        ("a\0b\x01c", ["a\0b", "a", "a\0b\x01c"]),
        ("x\ud800y", ["x\ud800", "x\ud800y"]),
    ],
)
def test_scripts_and_strange_characters(name, queries):
    search = LabelSearch(LabelSpace(["something else", name]))
    for query in queries:
        assert [label for label, _ in search.find(query)] == [1], query


def test_names_of_punctuation_are_found_by_themselves(food):
    assert names(food.find("C++"))[0] == "C++"
    assert food.find("??") == [LabelMatch(6, "prefix")]
    assert food.find("!") == []


def test_words_may_be_those_of_different_synonyms(food):
    assert food.find("roggen br") == [LabelMatch(1, "word")]
    assert food.find("tokyo 京") == [LabelMatch(7, "word")]
    assert food.find("roggen knife") == []


@pytest.mark.parametrize(
    "query", ["bredcr", "beradcrumbs", "breadcrumbz", "xbreadcrumbs", "breatcrumb", "pnako", "pankoo"]
)
def test_one_typo_is_forgiven(food, query):
    assert food.find(query) == [LabelMatch(4, "typo")]


def test_a_typo_in_one_word_of_four_characters_or_more(food):
    assert food.find("rogegnbrot bread") == [LabelMatch(1, "typo")]
    assert food.find("rogegnbrot braed") == [], "two words with a typo"
    assert food.find("ryx bread") == [], "too short"
    assert food.find("bredcr bredcr") == [LabelMatch(4, "typo")], "what is typed twice counts once"


def test_typos_only_where_there_is_room():
    search = LabelSearch(LabelSpace(["bread", "broad"]))
    assert search.find("bread", limit=1) == [LabelMatch(0, "prefix")]
    assert search.find("bread", limit=2) == [LabelMatch(0, "prefix"), LabelMatch(1, "typo")]
    assert search.find("bread", allowed=np.array([False, True])) == [LabelMatch(1, "typo")]


@pytest.mark.parametrize("query", ["", "  \n", "\u0301", "\0"])
def test_nothing_typed_finds_the_most_frequent(food, query):
    assert names(food.find(query, limit=3)) == ["rye bread", "breadcrumbs", "bread knife"]
    assert {match for _, match in food.find(query)} == {"prefix"}
    assert food.find(query, limit=3, allowed=np.arange(9) == 4) == [LabelMatch(4, "prefix")]


def test_only_allowed_labels(food):
    mask = np.ones(9, bool)
    mask[[0, 4]] = False
    assert names(food.find("bread", allowed=mask)) == ["bread knife", "rye bread", "food > bread > rye"]
    assert names(food.find("bread", limit=1, allowed=mask)) == ["bread knife"]
    assert food.find("bread", allowed=np.zeros(9, bool)) == []


def test_of_a_long_query_only_the_beginning_counts():
    words = [f"w{i}" for i in range(MAX_WORDS)]
    long = "x" * (MAX_CHARACTERS + 50)
    search = LabelSearch(LabelSpace([" ".join(reversed(words)), long, "ﷺ" * 30]))
    assert search.find(" ".join([*words, "unknown"])) == [LabelMatch(0, "word")]
    assert search.find(" ".join(["unknown", *words])) == [], "one of the first is unknown"
    assert search.find(long + "y" * 10**6) == [LabelMatch(1, "prefix")]
    assert search.find("ﷺ" * 300) == [LabelMatch(2, "prefix")], "each is eighteen characters when normalized"


def test_no_labels_no_synonyms_no_counts():
    assert LabelSearch(LabelSpace([])).find("a") == LabelSearch(LabelSpace([])).find("") == []
    search = LabelSearch(LabelSpace(["cccc", "bb", "aa"]))
    assert [label for label, _ in search.find("")] == [1, 2, 0], "shorter names first, then by number"
    assert search.find("a", limit=10**12) == [LabelMatch(2, "prefix")]


class ReadOnce(Sequence):
    """Names as a saved model has them: to be read in one go."""

    def __init__(self, values):
        self.values, self.n_reads = values, 0

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        raise AssertionError("read one by one")

    def __iter__(self):
        self.n_reads += 1
        return iter(self.values)


def test_names_and_synonyms_are_read_once():
    columns = ReadOnce(["cat", "dog"]), ReadOnce([["kitten"], []])
    search = LabelSearch(LabelSpace(*columns))
    assert search.find("kit") == [LabelMatch(0, "prefix")]
    assert [column.n_reads for column in columns] == [1, 1]


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(food, limit):
    with pytest.raises(ParameterError, match=rf"limit must be at least 1, but is {limit}; ask for limit=1 or more"):
        food.find("a", limit)


@pytest.mark.parametrize("allowed", [np.ones(8, bool), np.ones((9, 1), bool), np.ones(9, np.int64)])
def test_a_mask_that_does_not_fit_is_refused(food, allowed):
    with pytest.raises(ParameterError, match="allowed must be 9 booleans, one per label, but is .*; make a mask"):
        food.find("a", allowed=allowed)


def test_labels_that_are_not_in_use_are_not_offered():
    labels = retired(merged(FOOD, 4, into=0), 1)
    search = LabelSearch(labels)
    assert names(search.find("bread")) == ["bread", "bread knife", "food > bread > rye"]
    assert names(search.find("panko")) == ["bread"]  # a name of a merged label finds the other one
    assert names(search.find("Roggenbrot")) == []
    assert names(search.find("", limit=3)) == ["bread", "bread knife", "food > bread > rye"]
    assert names(search.find("bread", allowed=np.arange(9) != 0)) == ["bread knife", "food > bread > rye"]
