"""The members of the ensemble: methods, each with the view of the documents that it is given."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from labelspace.errors import DataError, ParameterError
from labelspace.estimator.parameter_constraints import Constraint
from labelspace.features.encoders.base import PACKAGES
from labelspace.features.language import AUTO
from labelspace.features.stems import NO_STEMMING, stemming_language, usual_accents
from labelspace.features.views import (
    BIGRAMS,
    CHARS,
    EMBEDDINGS,
    GIVEN,
    SEQUENCES,
    STEM_BIGRAMS,
    STEMS,
    TEXT,
    VIEWS,
    WORDS,
    View,
    Views,
    join_tables,
    joined_parts,
)
from labelspace.models.base import Model
from labelspace.models.fit_context import FitContext
from labelspace.models.registry import create, method
from labelspace.training.model_selection import choose
from labelspace.types import Csr, TopK, no_progress

FAST, NORMAL, BEST = "fast", "normal", "best"
MEMBER_PARAMS: dict[str, dict[str, Any]] = {
    "label_tree": {"tol": 0.3, "tune": False},
    "pdsparse": {"per_label": True, "tol": 0.3},
    "network": {"hidden_dim": 128},
    "fastxml": {"n_estimators": 20},
    "poincare": {"n_estimators": 3},
}
"""Parameters of members that differ from the method's own defaults: as good in the ensemble, and quicker."""
WIDE_VIEWS = {WORDS.name: ("words+chars", BIGRAMS.name), STEMS.name: ("stems+chars", STEM_BIGRAMS.name)}
"""For each view of words, the views of short and of longer texts for linear classifiers, which use many features."""
SHORT_TEXT = 300  # mean characters up to which character n-grams say more than bigrams
MANY_DOCUMENTS = 100_000  # above, more features than the words cost more than they give
MAX_PDSPARSE_CELLS = 3e8  # documents x labels up to which each label has its own classifier; above, a tree of labels
NETWORKS = ["network", "glas"]
MAX_NETWORK_CELLS, MAX_NETWORK_LABELS = 1e8, 10_000  # documents x labels, and labels, up to which these are trained
MANY_LABELS = 5  # per document, from which networks are better members on ready-made features than ``label_tree``
MIN_LABEL_DOCUMENTS = 8  # per label on average, below which networks are not better: they learn little from fewer
MAX_SLEEC_DOCUMENTS = 50_000  # with ready-made features, up to which sleec is trained
FEW_DOCUMENTS = 50  # below, n-grams of a single text are kept too
EFFORTS = (FAST, NORMAL, BEST)
MEMBER_VIEWS = [view.name for view in VIEWS.values() if view not in (TEXT, SEQUENCES)]


@dataclass(frozen=True)
class Member:
    """A method and the view of the documents that it is given."""

    method: str
    view: str

    def __str__(self) -> str:
        return self.method if self.view == TEXT.name else f"{self.method}:{self.view}"


def parse_members(text: str) -> list[Member]:
    """Members written as ``method`` or ``method:view``, with commas between.

    >>> [str(member) for member in parse_members("label_tree:bigrams, neighbors, lexical")]
    ['label_tree:bigrams', 'neighbors:words', 'lexical']
    """
    members = []
    for part in text.split(","):
        name, _, view = part.strip().partition(":")
        if name == "blend":
            raise ParameterError(f"a member of blend must be a single method, but is {name!r}; leave it out")
        own = method(name).view
        view = own.name if own == TEXT else view or (own.name if own == EMBEDDINGS else WORDS.name)
        if view != TEXT.name and not is_member_view(view):
            listed = ", ".join(MEMBER_VIEWS)
            raise ParameterError(
                f"the view of a member must be one of {listed}, or two of them joined by +, but is {view!r}; choose one"
            )
        members.append(Member(name, view))
    return members


def is_member_view(name: str) -> bool:
    """Return whether a member can read a view of this name.

    >>> is_member_view("words"), is_member_view("words+chars"), is_member_view("text")
    (True, True, False)
    """
    named = joined_parts(name)
    return len(named) <= 2 and all(part in MEMBER_VIEWS for part in named)


def base_views(members: Sequence[Member]) -> list[str]:
    """Return the views to make for members, each once: joined views are joined from these."""
    return list(dict.fromkeys(part for member in members for part in joined_parts(member.view)))


def _are_members(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(parse_members(value))
    except ParameterError:
        return False


MEMBERS = Constraint(
    f"methods separated by commas, each optionally with :view ({', '.join(MEMBER_VIEWS)}, or two joined by +), such as "
    "label_tree:words+chars,neighbors",
    _are_members,
)


def choose_members(
    shape: tuple[int, int],
    wide: str,
    with_text: bool,
    effort: str = NORMAL,
    words: str = WORDS.name,
    with_vectors: bool = False,
) -> list[Member]:
    """Return the members that suit texts, for ``shape`` documents and labels; linear classifiers read ``wide``.

    ``with_text`` says that labels have names, ``with_vectors`` that there are vectors of these too.
    """
    linear = "pdsparse" if effort != FAST and math.prod(shape) <= MAX_PDSPARSE_CELLS else "label_tree"
    members = [Member("neighbors", words), Member(linear, words if effort == FAST else wide)]
    if effort == BEST:
        members.append(Member("label_tree", words))
        members += [Member(name, words) for name in NETWORKS if _has_networks(shape)]
    if with_text:
        members.append(Member("lexical", TEXT.name))
    return [*members, Member("semantic", EMBEDDINGS.name)] if with_text and with_vectors else members


def choose_members_on_features(
    shape: tuple[int, int], labels_per_document: float, effort: str = NORMAL
) -> list[Member]:
    """Return the members that suit ready-made features, which are often few, for ``shape`` documents and labels."""
    networks = NETWORKS if _has_networks(shape) else []
    if effort == FAST:
        names = ["neighbors", "label_tree"]
    elif effort == BEST:
        names = ["neighbors", "label_tree", *networks]
        names += ["pdsparse"] if math.prod(shape) <= MAX_PDSPARSE_CELLS else []
    else:
        documents_per_label = labels_per_document * shape[0] / shape[1]
        many = labels_per_document >= MANY_LABELS and documents_per_label >= MIN_LABEL_DOCUMENTS
        names = ["neighbors", *(networks if networks and many else ["label_tree"])]
    if effort != FAST and shape[0] <= MAX_SLEEC_DOCUMENTS:
        names += ["sleec", "fastxml", "poincare"] if effort == BEST else ["sleec"]
    return [Member(name, WORDS.name) for name in names]


def _has_networks(shape: tuple[int, int]) -> bool:
    return math.prod(shape) <= MAX_NETWORK_CELLS and shape[1] <= MAX_NETWORK_LABELS


def word_view(language: str) -> str:
    """Return the view of words for texts of a language: stems, if words have many forms and there is a stemmer.

    >>> word_view("english"), word_view("finnish"), word_view("thai")
    ('words', 'stems', 'words')
    """
    return WORDS.name if stemming_language(language) in ("english", NO_STEMMING) else STEMS.name


def wide_view(texts: Sequence[str], words: str = WORDS.name) -> str:
    """Return the view for linear classifiers: with many features, unless there are too many documents."""
    if len(texts) > MANY_DOCUMENTS:
        return words
    short, longer = WIDE_VIEWS[words]
    return short if sum(map(len, texts)) <= SHORT_TEXT * len(texts) else longer


def encoder_for(texts: Sequence[str]) -> str | None:
    """Return the encoder that texts are worth the time of; None if none is installed.

    The network takes time in proportion to a text, the static vectors hardly any.
    """
    if find_spec(PACKAGES["granite"][0]) is None:
        return None
    is_short = sum(map(len, texts)) <= SHORT_TEXT * len(texts)
    return "granite" if is_short and len(texts) <= MANY_DOCUMENTS else "static"


def on_features(members: Sequence[Member]) -> list[Member]:
    """Return the members if ready-made features replace every view: each method once, none that reads texts."""
    reading = [member.method for member in members if member.view == TEXT.name]
    if reading:
        raise DataError(f"{reading[0]} reads texts, but there are only features; leave it out of members")
    return [Member(name, WORDS.name) for name in dict.fromkeys(member.method for member in members)]


def member_params(member: Member, random_state: int, language: str = AUTO) -> dict[str, Any]:
    """Return the parameters of a member; seed and language of the ensemble go to members with such parameters."""
    whole = {"random_state": random_state, "language": language}
    shared = {key: value for key, value in whole.items() if key in method(member.method).params}
    return {**shared, **MEMBER_PARAMS.get(member.method, {})}


def member_view(name: str, n_documents: int, language: str = AUTO) -> View:
    """Return the view of this name for ``n_documents`` training documents in a language."""
    view = VIEWS[name]
    if view not in (WORDS, BIGRAMS, CHARS, STEMS, STEM_BIGRAMS):
        return view
    stems = {}
    if "stemming" in view.params and language != AUTO:
        stems = {"stemming": stemming_language(language), "strip_accents": usual_accents(language)}
    return View(name, view.features, {**view.params, **stems, "min_df": _min_df(view, n_documents)})


def _min_df(view: View, n: int) -> int:
    """Return in how many of n texts a term must occur; most bigrams are rare and teach little."""
    if n < FEW_DOCUMENTS:
        return 1
    return max(2, min(10, n // 4000)) if view in (BIGRAMS, STEM_BIGRAMS) else 2


FEWEST_LABELS = 50  # a sample with fewer labels is not representative, and C keeps its default
CANDIDATES = {"pdsparse": (0.5, 1.0, 2.0)}  # values of C to choose from, by method


def tuned_params(members: Sequence[Member], views: Views, Y: Csr, random_state: int) -> dict[Member, dict[str, Any]]:
    """Return the best C of each member that has candidates, by cross-validation on a sample; none for few documents."""
    tuned, n_labels = {}, len(np.unique(Y.indices))
    for member in members:
        if member.method in CANDIDATES:
            tables, Cs = {member.view: table_of(views, member.view)}, CANDIDATES[member.method]

            def rank(X: Csr, Y: Csr, held_out: Csr, C: float, k: int, member: Member = member) -> TopK:
                model = create(member.method, **{**member_params(member, random_state), "C": C})
                model.fit_checked(Views({GIVEN: X}), Y, FitContext())
                return model._predict(held_out, k)

            choice = choose(tables, Y, Cs, rank, random_state, no_progress, min(FEWEST_LABELS, n_labels))
            if choice is not None:
                tuned[member] = {"C": choice.C}
    return tuned


def view_for(model: Model, views: Views, name: str) -> Views:
    """Return only the view of this name, under the name that the model reads."""
    return Views({model.view.name: table_of(views, name)}, {model.view.name: view_width(views, name)})


def table_of(views: Views, name: str) -> Any:  # noqa: ANN401 - a Table; the view's name says which
    """Return the documents under a view, which may be joined from two."""
    named = joined_parts(name)
    return views[name] if len(named) == 1 else join_tables([views[part] for part in named])


def view_width(views: Views, name: str) -> int:
    """Return the number of columns of a view, which may be joined from two."""
    return sum(map(views.width, joined_parts(name)))
