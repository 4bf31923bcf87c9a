"""Detect the language of texts without a model: by their script, frequent words, endings and letters.

1. Up to ``SAMPLE`` texts, evenly spread, are read up to ``MAX_CHARACTERS`` each.
2. Each function word (frequent, without a meaning of its own) of a text is a vote for every language that has it,
   divided by a power of the number of these languages; endings of words, letters and scripts are smaller votes.
3. The language with the most votes is the language of the texts, if it has enough votes for the number of words, and
   the second language has clearly fewer. Else the language is unknown.
4. The share of the texts that by themselves vote for the language tells how mixed the texts are.

The file ``languages.json`` has the words, endings, letters and scripts. Languages without a stemmer are listed where
their texts would be taken for another language that has one.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import ascii_lowercase

from labelspace.estimator.parameter_constraints import Constraint
from labelspace.features.characters import normalize

DATA = json.loads(Path(__file__).with_name("languages.json").read_text("utf-8"))
CODES: dict[str, str] = DATA["codes"]  # ISO 639-1 code -> name; Croatian and Bosnian have the stems of Serbian
SCRIPTS: dict[str, str] = DATA["scripts"]  # the letters of scripts of one language
SHARED_SCRIPTS: dict[str, str] = DATA["shared_scripts"]  # of several; the name is that of most texts in the script
AUTO, UNKNOWN = "auto", "unknown"
SAMPLE, MAX_CHARACTERS = 1000, 400  # bound the time; more texts or characters seldom change the answer
MIN_ENDING_WORD = 6  # letters of a word whose ending counts: in shorter words an ending is often part of the stem
# Votes relative to a function word, which has 1: an ending or a letter is found in words of more languages.
ENDING, LETTER, SCRIPT, SHARED_SCRIPT = 0.25, 0.1, 0.03, 0.005
ONE_LETTER = 0.3  # share of the vote for a word of one letter, which may be a code or a size too
# Votes per word that the first language must have; the second number is for languages that a script may tell.
MIN_DENSITY, MIN_SCRIPT_DENSITY = 0.03, 0.02
MIN_LEAD = 0.15  # of the first language over the second, relative to its votes; higher: more often unknown
MIN_VOTES = 0.5  # that a language without a script of its own must have in all: half a function word
UNMIXED = 0.75  # share of texts in the language from which they are not called mixed: short texts do not tell theirs

_WORD = re.compile(r"(?:\w|[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0963\u0b80-\u0be5])+")  # with marks
Votes = Mapping[str, Sequence[tuple[str, float]]]
"""Word, ending or letter -> the languages that have it, with the vote for each."""


@dataclass(frozen=True)
class Language:
    """A detected language: its name, how sure it is, and the share of the texts that are in it."""

    name: str
    confidence: float = 0.0  # the lead over the second language, from 0 to 1
    share: float = 0.0

    def described(self, given: str) -> str:
        """Describe the language in words, and how it is known: by the ``given`` parameter, or detected.

        >>> Language("finnish", share=0.6).described("auto"), Language("finnish").described("fi")
        ('finnish (detected, in 60 % of the texts)', 'finnish (given)')
        """
        if language_name(given) != AUTO:
            return f"{self.name} (given)"
        if self.name == UNKNOWN:
            return "unknown (English endings of words are cut; set language if they are in another language)"
        mixed = f", in {self.share:.0%} of the texts".replace("%", " %") if self.share < UNMIXED else ""
        return f"{self.name} (detected{mixed})"


def language_of(given: str, texts: Sequence[str]) -> Language:
    """Return the language given by name or code; detect it from the texts if ``auto`` is given.

    >>> language_of("it", []).name
    'italian'
    """
    name = language_name(given)
    return detect_language(texts) if name == AUTO else Language(name, 1.0, 1.0)


def detect_language(texts: Sequence[str]) -> Language:
    """Return the language that most of the texts are in.

    >>> detect_language(["La storia delle biblioteche in Italia", "Il clima e il paesaggio"]).name
    'italian'
    >>> detect_language(["Kirjastojen historia ja nykypäivä", "図書館"]).share
    0.5
    """
    sample = [texts[i] for i in range(0, len(texts), -(-len(texts) // SAMPLE) or 1)]
    totals: defaultdict[str, float] = defaultdict(float)
    of_texts: list[dict[str, float]] = []
    n_words = 0
    for text in sample:
        votes, n = _votes(normalize(text[:MAX_CHARACTERS]))
        n_words += n
        of_texts.append(votes)
        for name, vote in votes.items():
            totals[name] += vote
    first, second = (sorted(totals.items(), key=lambda item: (-item[1], item[0])) + [(UNKNOWN, 0.0)] * 2)[:2]
    lead = 1 - second[1] / first[1] if first[1] else 0.0
    needed = MIN_SCRIPT_DENSITY * n_words if first[0] in _scripts() else max(MIN_VOTES, MIN_DENSITY * n_words)
    if first[1] <= needed or lead < MIN_LEAD:
        return Language(UNKNOWN, lead)
    voting = [votes for votes in of_texts if votes]
    own = sum(votes.get(first[0], 0.0) >= max(votes.values()) for votes in voting)
    return Language(first[0], lead, own / len(voting))


def _votes(text: str) -> tuple[dict[str, float], int]:
    """Return the votes of a text (step 2), and the number of its words."""
    words, endings, letters = _voters()
    found = _WORD.findall(text)
    cast: list[tuple[str, float]] = []
    for word in found:
        cast += words.get(word, ())
        if len(word) >= MIN_ENDING_WORD:
            for length in range(2, 7):
                cast += endings.get(word[-length:], ())
    if not text.isascii():
        for letter in text:
            cast += letters.get(letter, ())
        counts = {name: len(pattern.findall(text)) for name, pattern in _scripts().items()}
        if 10 * counts["japanese"] > counts["chinese"]:  # Japanese has Kana between its Han letters
            counts["japanese"] += counts.pop("chinese")
        for name, count in counts.items():
            if count:
                cast.append((name, (SHARED_SCRIPT if name in SHARED_SCRIPTS else SCRIPT) * count))
    votes: defaultdict[str, float] = defaultdict(float)
    for name, vote in cast:
        votes[name] += vote
    return votes, len(found)


def _shared(parts: Mapping[str, Iterable[str]], vote: float) -> dict[str, Sequence[tuple[str, float]]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name, listed in parts.items():
        for part in dict.fromkeys(listed):
            found[part].append(name)
    # The power makes a part that several languages share count less in all than a part of one language.
    return {part: [(name, vote / len(names) ** 1.5) for name in names] for part, names in found.items()}


@cache
def _voters() -> tuple[Votes, Votes, Votes]:
    """Return the votes of words, of endings and of letters."""
    words = _shared({name: words.split() for name, words in DATA["function_words"].items()}, 1.0)
    for word in filter(words.__contains__, ascii_lowercase):
        words[word] = [(name, ONE_LETTER * vote) for name, vote in words[word]]
    endings = _shared({name: endings.split() for name, endings in DATA["endings"].items()}, ENDING)
    return words, endings, _shared(DATA["letters"], LETTER)


@cache
def _scripts() -> dict[str, re.Pattern[str]]:
    return {name: re.compile(f"[{letters}]") for name, letters in (SCRIPTS | SHARED_SCRIPTS).items()}


def language_name(given: str) -> str:
    """Return the name of a language, given by its name or ISO 639-1 code.

    >>> language_name("fi"), language_name("Finnish"), language_name("auto")
    ('finnish', 'finnish', 'auto')
    """
    lowered = given.lower()
    return CODES.get(lowered, lowered)


NAMES = tuple(sorted({*CODES.values()}))
LANGUAGE = Constraint(
    f"auto, unknown, an ISO 639-1 code such as fi, or one of {', '.join(NAMES)}",
    lambda value: isinstance(value, str) and language_name(value) in (AUTO, UNKNOWN, *NAMES),
)
