"""The language of texts, detected without a model: by their script, frequent words, endings and letters.

1. Up to ``SAMPLE`` texts, evenly spread, are read up to ``MAX_CHARACTERS`` each.
2. Every frequent word of a text is a vote for each language that has it, divided by a power of their number;
   endings of words, letters and scripts are smaller votes (``features.function_words``).
3. The language with the most votes is that of the texts, if the votes suffice for so many words, and the second has
   clearly fewer. Else it is unknown.
4. The share of the texts that by themselves vote for it says how mixed they are.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from string import ascii_lowercase

from labelspace.estimator.parameter_constraints import Constraint
from labelspace.features.characters import normalize
from labelspace.features.function_words import CODES, ENDINGS, FUNCTION_WORDS, LETTERS, SCRIPTS, SHARED_SCRIPTS

AUTO, UNKNOWN = "auto", "unknown"
SAMPLE, MAX_CHARACTERS = 1000, 400
MIN_ENDING_WORD = 6  # letters of a word whose ending is looked at
ENDING, LETTER, SCRIPT, SHARED_SCRIPT = 0.25, 0.1, 0.03, 0.005  # votes, where a frequent word has 1
ONE_LETTER = 0.3  # of the vote, for a word of one letter: these are codes and sizes too
MIN_DENSITY, MIN_SCRIPT_DENSITY = 0.03, 0.02  # votes per word; the latter of languages that a script alone may tell
MIN_LEAD = 0.15  # of the first language over the second, relative to its votes
MIN_VOTES = 0.5  # of other languages
UNMIXED = 0.75  # of the texts: some are too short to tell their language

_WORD = re.compile(r"(?:\w|[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0963\u0b80-\u0be5])+")  # with marks
Votes = Mapping[str, Sequence[tuple[str, float]]]
"""Word, ending or letter -> the languages that have it, with the vote for each."""


@dataclass(frozen=True)
class Language:
    """A language that was detected: its name, how sure that is, and the share of the texts that are in it."""

    name: str
    confidence: float = 0.0  # the lead over the second language, from 0 to 1
    share: float = 0.0

    def described(self, given: str) -> str:
        """The language in words, with how it is known: by the ``given`` parameter, or detected.

        >>> Language("finnish", share=0.6).described("auto"), Language("finnish").described("fi")
        ('finnish (detected, in 60 % of the texts)', 'finnish (given)')
        """
        if language_name(given) != AUTO:
            return f"{self.name} (given)"
        if self.name == UNKNOWN:
            return "unknown (English endings of words are cut; set language where it is another)"
        mixed = f", in {self.share:.0%} of the texts".replace("%", " %") if self.share < UNMIXED else ""
        return f"{self.name} (detected{mixed})"


def language_of(given: str, texts: Sequence[str]) -> Language:
    """The language given by name or code; auto detects that of the texts.

    >>> language_of("it", []).name
    'italian'
    """
    name = language_name(given)
    return detect_language(texts) if name == AUTO else Language(name, 1.0, 1.0)


def detect_language(texts: Sequence[str]) -> Language:
    """The language that most of the texts are in.

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
    """Step 2: the votes of a text, and its words."""
    words, endings, letters = _words_by_language(), _endings(), _letters()
    votes: defaultdict[str, float] = defaultdict(float)
    found = _WORD.findall(text)
    for word in found:
        for name, vote in words.get(word, ()):
            votes[name] += vote
        if len(word) >= MIN_ENDING_WORD:
            for length in range(2, 7):
                for name, vote in endings.get(word[-length:], ()):
                    votes[name] += vote
    if not text.isascii():
        for letter in text:
            for name, vote in letters.get(letter, ()):
                votes[name] += vote
        _add_scripts(text, votes)
    return votes, len(found)


def _add_scripts(text: str, votes: defaultdict[str, float]) -> None:
    counts = {name: len(pattern.findall(text)) for name, pattern in _scripts().items()}
    if 10 * counts["japanese"] > counts["chinese"]:  # Japanese has Kana between its Han letters, Chinese has not
        counts["japanese"] += counts.pop("chinese")
    for name, count in counts.items():
        if count:
            votes[name] += (SHARED_SCRIPT if name in SHARED_SCRIPTS else SCRIPT) * count


def _shared(parts: Mapping[str, Iterable[str]], vote: float) -> dict[str, Sequence[tuple[str, float]]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name, listed in parts.items():
        for part in dict.fromkeys(listed):
            found[part].append(name)
    return {part: [(name, vote / len(names) ** 1.5) for name in names] for part, names in found.items()}


@cache
def _words_by_language() -> Votes:
    shared = _shared({name: words.split() for name, words in FUNCTION_WORDS.items()}, 1.0)
    for word in filter(shared.__contains__, ascii_lowercase):
        shared[word] = [(name, ONE_LETTER * vote) for name, vote in shared[word]]
    return shared


@cache
def _endings() -> Votes:
    return _shared({name: endings.split() for name, endings in ENDINGS.items()}, ENDING)


@cache
def _letters() -> Votes:
    return _shared(LETTERS, LETTER)


@cache
def _scripts() -> dict[str, re.Pattern[str]]:
    return {name: re.compile(f"[{letters}]") for name, letters in (SCRIPTS | SHARED_SCRIPTS).items()}


def language_name(given: str) -> str:
    """The name of a language by its name or ISO 639-1 code.

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
