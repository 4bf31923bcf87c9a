"""Named views of documents, such as words or token ids: each view is made once for all methods that read it.

A method declares the views it needs (``Model.views``); the ``Tagger`` makes them of the texts with a
``ViewTransformer``, saves that with the model, and passes ``Views`` to the method: the same documents under each name.
Ready-made features (a sparse or dense matrix of the user) take the role of every view that is a matrix.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace.errors import DataError, ParameterError
from labelspace.estimator import Stateful, learned
from labelspace.estimator.parameter_constraints import mapping, text
from labelspace.estimator.state_constraints import must, named_parts, part, plain
from labelspace.features import FEATURES, Embeddings, create_features, features_class
from labelspace.features.base import Features, Grows, Occurrences
from labelspace.features.encoders.registry import AnyEncoder, load_encoder
from labelspace.features.normalize import has_unit_rows, mark_unit_rows, normalize_rows
from labelspace.features.sequences import UNKNOWN
from labelspace.features.side_columns import SideFeatures
from labelspace.features.sparse_matrix import csr_matrix, take_csr_rows
from labelspace.kernels import large_arrays
from labelspace.kernels.normalize import join_rows
from labelspace.types import Csr, Progress, SideColumns, TextWithValues, no_progress

Table = Csr | npt.NDArray[Any] | Sequence[str]
"""Documents under one view: a sparse or dense matrix, token ids, or texts; one row per document."""
RAW = "text"  # the features that leave texts as they are
GIVEN = "given"  # the name of ready-made features
# Share of the first view in the squared norm of a joined row: words are few and say much, while character n-grams are
# many and say the same again.
FIRST_SHARE = 0.25


@dataclass(frozen=True)
class View:
    """A name for features with settings.

    >>> WORDS.create()
    Tfidf(ngrams=1)
    """

    name: str
    features: str = "tfidf"
    params: Mapping[str, Any] = field(default_factory=dict)
    training_only: bool = False  # not needed for prediction, and so not saved

    @property
    def is_matrix(self) -> bool:
        """Return whether the view is a matrix, for which a user may choose other features; else texts or token ids."""
        return self.features in FEATURES

    def create(self) -> Features:
        """Make the features, which are not fitted yet."""
        return create_features(self.features, **self.params)

    def with_features(self, features: str | None, params: Mapping[str, Any]) -> Self:
        """Return the view made by other features, or with other settings; unknown settings are dropped.

        Vectors of an encoder are not another form of words, and stay.
        """
        if not self.is_matrix or (self.features == "embeddings" and features not in (None, self.features)):
            return self
        name = features or self.features
        known = features_class(name).defaults()
        settings = {**self.params, **params}
        return replace(self, features=name, params={key: settings[key] for key in settings if key in known})


WORDS = View("words", "tfidf", {"ngrams": 1})
BIGRAMS = View("bigrams", "tfidf", {"ngrams": 2})
CHARS = View("chars", "tfidf", {"analyzer": "char", "min_n": 4, "max_n": 4})
STEMS = View("stems", "tfidf", {"ngrams": 1, "stemming": "auto"})
STEM_BIGRAMS = View("stem_bigrams", "tfidf", {"ngrams": 2, "stemming": "auto"})
HASHING = View("hashing", "hashing")
EMBEDDINGS = View("embeddings", "embeddings")
SEQUENCES = View("sequences", "sequences")
TEXT = View("text", RAW)
VIEWS = {view.name: view for view in (WORDS, BIGRAMS, CHARS, STEMS, STEM_BIGRAMS, HASHING, EMBEDDINGS, SEQUENCES, TEXT)}


def override(views: Iterable[View], features: str | None, params: Mapping[str, Any], method: str) -> list[View]:
    """Return the views of a method with the features and settings that a user requests.

    Each setting goes to every view whose features have it; an unknown setting is an error.
    """
    changed = [view.with_features(features, params) for view in views]
    matrices = [view for view in changed if view.is_matrix]
    if not matrices and (features is not None or params):
        setting = f"features.{next(iter(params))}" if params else "features"
        remedy = "leave it out, or choose a method that is given features"
        raise ParameterError(f"{method} reads texts itself, but {setting} is set; {remedy}")
    if features is not None and not any(view.features == features for view in matrices):
        rule = f"{method} reads the vectors of an encoder, but features is {features}"
        raise ParameterError(f"{rule}; leave it out, or give other vectors: features.encoder")
    for key in params:
        if not any(key in view.params for view in matrices):
            features_class(matrices[0].features).reject_unknown({key: None})
    return changed


class Views:
    """Documents under each of their views, which all have the same rows.

    >>> views = Views({"words": np.eye(3), "text": ["a", "b", "c"]})
    >>> views.n, views.rows([2, 0])["text"]
    (3, ['c', 'a'])
    """

    def __init__(
        self, tables: Mapping[str, Table], widths: Mapping[str, int] | None = None, checked: bool = False
    ) -> None:
        self.tables, self.checked = dict(tables), checked  # tables that this package's features made need no check
        known = widths or {}
        self.widths = {name: known[name] if name in known else width_of(table) for name, table in tables.items()}

    @property
    def n(self) -> int:
        """Return the number of documents."""
        return next(map(n_rows, self.tables.values()), 0)

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - a Table; the view's name says which
        if name in self.tables:
            return self.tables[name]
        if name != TEXT.name and GIVEN in self.tables:
            return self.tables[GIVEN]
        if name == TEXT.name:
            raise DataError("the method reads texts, but X holds features; give a list of texts")
        found = f"X holds texts or other views ({', '.join(self.tables)})"
        remedy = "use labelspace.Tagger, which makes views of texts"
        raise DataError(f"the method reads the view {name!r} of the documents, but {found}; {remedy}")

    def width(self, name: str) -> int:
        """Return the number of columns of a view, or of its token ids; 0 for texts."""
        return self.widths[name if name in self.widths else GIVEN]

    def are_read(self) -> npt.NDArray[np.bool_]:
        """Return whether each document has a known word or a feature; texts as they are do not count. Shape (n,).

        >>> Views({"words": sp.csr_matrix([[0.0, 1.0], [0.0, 0.0]])}).are_read().tolist()
        [True, False]
        """
        read = np.zeros(self.n, bool)
        tables: list[Any] = list(self.tables.values())
        for table in tables:
            if sp.issparse(table):
                read |= table.indptr[1:] > table.indptr[:-1]  # several times as fast as getnnz(axis=1)
            elif isinstance(table, np.ndarray):  # token ids, or vectors
                read |= (table > UNKNOWN if table.dtype.kind == "i" else table != 0).any(axis=1)
            if read.all():
                break  # most documents have a known word in the first view
        return read

    def rows(self, index: npt.ArrayLike | slice) -> Self:
        """Return the documents with these row numbers, in this order."""
        tables = {name: take_rows(table, index) for name, table in self.tables.items()}
        return type(self)(tables, self.widths, self.checked)


class FeatureCache:
    """Fitted features and the tables of the training texts they were fitted on: equal features are fitted once."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[Features, Table]] = {}

    def get(self, features: Features, texts: Sequence[str], progress: Progress = no_progress) -> tuple[Features, Table]:
        """Return the fitted features and their table of the texts, which must be the same in each call."""
        key = repr(features)
        if key not in self._made:
            progress("features", 0, len(texts))
            self._made[key] = (features, features.fit_transform(texts))
            progress("features", len(texts), len(texts))
        return self._made[key]


class ViewTransformer(Stateful):
    """From texts to ``Views``: the fitted features of each view.

    The values that stand beside the texts are the first columns of every view that is a matrix.

    >>> texts = ["red apple", "green apple"]
    >>> made = ViewTransformer([View("words", "tfidf", {"min_df": 1}), TEXT]).fit_transform(texts)
    >>> made["words"].shape, made["text"]
    ((2, 5), ['red apple', 'green apple'])
    """

    name = "views"

    features_: dict[str, Features] = learned(named_parts(features_class))
    # View -> key of its features; views with equal features share them.
    made_by_: dict[str, str] = learned(plain(mapping(text())))
    beside_: SideFeatures | None = learned(part(SideFeatures, optional=True), default=None)

    def check_state(self) -> None:
        """Check that every view has features of its kind."""
        must(set(self.made_by_.values()) == self.features_.keys(), "features for each view")
        for view, key in self.made_by_.items():
            made, known = View(view, self.features_[key].name), VIEWS.get(view)
            alike = known is None or (made.is_matrix and known.is_matrix) or made.features == known.features
            must(alike, f"features of the kind of the view {view}")

    def __init__(self, views: Iterable[View], beside: SideColumns = SideColumns()) -> None:  # noqa: B008 - frozen
        self._views, self._beside = list(views), beside

    def fit_transform(
        self,
        texts: Sequence[str],
        y: object = None,  # given by a pipeline of scikit-learn
        *,
        cache: FeatureCache | None = None,
        progress: Progress = no_progress,
    ) -> Views:
        """Fit the features of every view, and make the views of the same texts; ``cache`` may have some already."""
        cache = cache or FeatureCache()
        first: dict[int, str] = {}
        self.features_, self.made_by_ = {}, {}
        self.beside_ = SideFeatures(self._beside) if self._beside else None
        beside = None if self.beside_ is None else self.beside_.fit_transform(texts)
        tables, widths = {}, {}
        for view in self._views:
            features, table = cache.get(view.create(), texts, progress)
            tables[view.name] = self._joined(_marked(table), beside)
            widths[view.name] = self._width(features)
            if not view.training_only:
                key = first.setdefault(id(features), view.name)
                self.features_[key], self.made_by_[view.name] = features, key
        return Views(tables, widths, checked=True)

    def give_encoder(self, encoder: AnyEncoder) -> None:
        """Set the encoder of embeddings, which has to be that of the training."""
        embeddings = [made for made in self.features_.values() if isinstance(made, Embeddings)]
        if not embeddings:
            raise ParameterError("encoder is for a model with embeddings, but this one has none; leave it out")
        load_encoder(encoder)
        for made in embeddings:
            made.set_params(encoder=encoder)

    def keep(self, views: Collection[str]) -> None:
        """Drop all views except these, which a method chose to read."""
        self.made_by_ = {view: key for view, key in self.made_by_.items() if view in views}
        self.features_ = {key: made for key, made in self.features_.items() if key in self.made_by_.values()}

    def only(self, view: str) -> Self:
        """Return the fitted features of one view."""
        made = copy(self)
        made.keep([view])
        return made

    def fit(self, texts: Sequence[str]) -> Self:
        """Fit the features of every view."""
        self.fit_transform(texts)
        return self

    def transform(self, texts: Sequence[str]) -> Views:
        """Return the views of other texts."""
        self.check_fitted()
        beside = None if self.beside_ is None else self.beside_.transform(texts)
        made = {key: _marked(features.transform(texts)) for key, features in self.features_.items()}
        tables = {key: self._joined(table, beside) for key, table in made.items()}
        return Views({view: tables[key] for view, key in self.made_by_.items()}, self.widths, checked=True)

    @property
    def widths(self) -> dict[str, int]:
        """The number of columns of each view."""
        return {view: self._width(self.features_[key]) for view, key in self.made_by_.items()}

    @property
    def n_beside(self) -> int:
        """The number of columns of the values beside the texts, which come first."""
        return 0 if self.beside_ is None else self.beside_.n_features

    def occurrences(self, view: str, text: str) -> Occurrences | None:
        """Find where the columns of a view come from in a text; None if its features cannot tell."""
        found = self.features_[self.made_by_[view]].occurrences(text)
        return None if found is None else found._replace(columns=found.columns + np.int32(self.n_beside))

    def transform_labels(self, texts: Iterable[str]) -> Views:
        """Return the views of the texts of labels, which have no values beside them."""
        return self.transform([TextWithValues(text, {}) for text in texts])

    def _width(self, features: Features) -> int:
        return features.n_features + self.n_beside if features.name in FEATURES else features.n_features

    def _joined(self, table: Table, beside: Csr | None) -> Table:
        """Return a table with the values beside the texts, if it is a matrix of features."""
        if self.beside_ is None or beside is None or not sp.issparse(table):
            return table
        return join_tables([beside, table], self.beside_.share)

    def grown(self, texts: Sequence[str], views: Collection[str]) -> Self:
        """Return the features with columns for further words of the texts, where all views of them may grow.

        New columns come after the known ones of each view.
        """
        made = copy(self)
        made.features_ = dict(self.features_)
        for key, features in self.features_.items():
            made_of_it = [view for view, used in self.made_by_.items() if used == key]
            if isinstance(features, Grows) and set(made_of_it) <= set(views):
                made.features_[key] = features.grown(texts)
        return made


def _marked(table: Table) -> Table:
    """Return a table that features made; mark a matrix, whose rows have norm 1."""
    return mark_unit_rows(table) if sp.issparse(table) else table


def n_rows(table: Table) -> int:
    """Return the number of documents of a table."""
    return int(table.shape[0]) if hasattr(table, "shape") else len(table)


def width_of(table: Table) -> int:
    """Return the number of columns of a matrix; 0 for texts."""
    return 0 if isinstance(table, Sequence) else int(table.shape[1])


def take_rows(table: Any, index: npt.ArrayLike | slice) -> Any:  # noqa: ANN401 - a Table or Views in, the same out
    """Return some rows of a table of any kind, or of views."""
    if isinstance(table, Views):
        return table.rows(index)
    if large_arrays.memory() is not None and sp.issparse(table) and not isinstance(index, slice):
        taken = take_csr_rows(table, np.asarray(index))
        return mark_unit_rows(taken) if has_unit_rows(table) else taken
    if not isinstance(table, Sequence) or isinstance(index, slice):
        return mark_unit_rows(table[index]) if has_unit_rows(table) else table[index]
    return [table[row] for row in np.asarray(index).tolist()]


def is_matrix(X: object) -> bool:
    """Return whether X is a sparse or a two-dimensional dense matrix."""
    return sp.issparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2)


def joined_parts(name: str) -> list[str]:
    """Return the views that a view is joined of.

    The view ``words+chars`` has the columns of both, so that a linear classifier reads words and their parts.

    >>> joined_parts("words+chars"), joined_parts("words")
    (['words', 'chars'], ['words'])
    """
    return name.split("+")


def join_tables(tables: Sequence[Csr], share: float = FIRST_SHARE) -> Csr:
    """Return the columns of two sparse matrices side by side, in rows of norm 1; the first has ``share`` of its square.

    >>> a, b = sp.csr_matrix([[1.0, 0.0]], dtype="float32"), sp.csr_matrix([[0.0, 1.0]], dtype="float32")
    >>> join_tables([a, b]).toarray().round(2).tolist()
    [[0.5, 0.0, 0.0, 0.8700000047683716]]
    """
    if not all(map(sp.issparse, tables)):
        raise DataError("views that are joined must be sparse, but one is dense; give the member one view")
    left, right = map(normalize_rows, tables)
    arrays = (left.data, left.indices, left.indptr, right.data, right.indices, right.indptr)
    rows = join_rows(*arrays, left.shape[1], share)
    return mark_unit_rows(csr_matrix(*rows, left.shape[1] + right.shape[1]))
