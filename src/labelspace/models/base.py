"""The contract that every method keeps: ``fit(X, Y)``, ``predict_topk(X, k)``, ``save(folder)``, ``load(folder)``."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from labelspace import store
from labelspace.errors import ModelError, ParameterError
from labelspace.estimator import Estimator, learned
from labelspace.estimator.parameter_constraints import integer, mapping
from labelspace.estimator.state_constraints import StateError, plain
from labelspace.features.views import GIVEN, WORDS, View, Views
from labelspace.labels.masks import LastMask
from labelspace.models import checks
from labelspace.models.batched_prediction import PREDICTED_LABELS, in_batches
from labelspace.models.capabilities import (
    Calibrated,
    Checkpoints,
    TrainsInTasks,
    WeighsDocuments,
    WeighsLabels,
    require,
)
from labelspace.models.checks import Inputs
from labelspace.models.fit_context import Budget, Executor, FitContext
from labelspace.types import Bools, Csr, Dataset, LabelSpace, Longs, Progress, TopK, no_progress


class Model(Estimator):
    """A method. A subclass declares its parameters and learned attributes, and writes ``_fit`` and ``_predict``.

    Both hooks get X checked, as ``read`` returns it: for most methods the csr matrix of their one view, float32 with
    sorted indices. ``_fit`` gets Y as a csr matrix of ones. ``_predict`` gets a k of at most the number of labels.
    """

    title: ClassVar[str]  # the paper or the well-known name, for the table of methods
    choose_when: ClassVar[str]  # when to choose the method, in one line
    view: ClassVar[View] = WORDS  # the features that the method reads of a text
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  # parameters by the name of a preset, such as ``paper``

    names_documents: bool = False  # whether evidence names training documents
    trained_rows: Longs | None = None  # after ``fit``: the documents that evidence may name, None for all

    widths_: dict[str, int] = learned(plain(mapping(integer(0))))  # columns of each view; 0 for texts
    n_labels_: int = learned(plain(integer(1)))
    labels_: LabelSpace | None = learned(None)

    @classmethod
    def from_preset(cls, preset: str, **params: Any) -> Self:  # noqa: ANN401 - parameters are of any type
        """Return a model with the parameters of a preset, except those given here and those that lose their effect."""
        if preset not in cls.presets:
            known = ", ".join(cls.presets) or "none"
            raise ParameterError(f"{cls.name} has no preset {preset!r}; its presets are: {known}")
        cls.reject_unknown(params)
        values = {**cls.presets[preset], **params}
        while left_out := cls.without_effect(values).keys() - params.keys():  # by what is given here
            values = {key: value for key, value in values.items() if key not in left_out}
        return cls(**values)

    @classmethod
    def paper(cls, **params: Any) -> Self:  # noqa: ANN401 - parameters are of any type
        """Return the method as published, except for the parameters given here."""
        return cls.from_preset("paper", **params)

    def sizes(self) -> dict[str, int]:
        """Return the sizes that the state of every model may name."""
        return {"n_labels": self.n_labels_, "n_features": self.width(self.view)}

    def width(self, view: View) -> int:
        """Return the number of columns that a view had in training."""
        width = self.widths_.get(view.name, self.widths_.get(GIVEN))
        if width is None:
            raise StateError(f"must have the view {view.name}, but has {', '.join(self.widths_) or 'none'}")
        return width

    @abstractmethod
    def _fit(self, X: Any, Y: Csr, context: FitContext) -> None:  # noqa: ANN401 - as ``read`` gives it
        """Learn from documents: set every attribute that is declared as learned."""

    @abstractmethod
    def _predict(self, X: Any, k: int, allowed: Bools | None = None) -> TopK:  # noqa: ANN401 - as ``read`` gives it
        """Return the k best of the allowed labels of each document.

        ``allowed`` (n_labels,) has at least one label; None allows all. A method that cannot restrict its search calls
        ``batched_prediction.overfetch``.
        """

    @cached_property
    def mask_cache(self) -> LastMask[Any]:
        """The cache of what a method made of the last mask of allowed labels."""
        return LastMask()

    def views(self, documents: Dataset) -> tuple[View, ...]:
        """Return the views that the method needs of these training documents."""
        return (self.view,)

    def label_views(self) -> tuple[View, ...]:
        """Return the views that a method which tags by labels alone reads of texts."""
        return (self.view,)

    def label_text_view(self) -> View | None:
        """Return the view under which the model reads the labels' own texts; None if it does not read them."""
        return self.view if getattr(self, "label_text", 0.0) else None

    def read(self, views: Views) -> Any:  # noqa: ANN401 - csr for most, texts for some, views for a few
        """Return what ``_fit`` and ``_predict`` read of checked views."""
        return views[self.view.name]

    def fit(
        self,
        X: Inputs,
        Y: Csr | npt.NDArray[Any],
        labels: LabelSpace | None = None,
        validation: checks.GivenValidation = None,
        progress: Progress | None = None,
        label_features: Inputs | None = None,
        checkpoint: str | Path | None = None,
        budget: Budget | None = None,
        executor: Executor | None = None,
        sample_weight: npt.ArrayLike | None = None,
        label_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn from documents X (n, n_features) and labels Y (n, n_labels), and forget what was learned before.

        ``validation`` holds documents for early stopping and calibration, or is a function that reads them on first
        use. ``label_features`` (n_labels, n_features) are the labels' texts as features. Methods without a use for them
        ignore both. ``checkpoint`` is a folder from which an interrupted training resumes. A method that can leave
        something out keeps to a ``budget``, and a method that can train in tasks gives them to ``executor``.
        ``sample_weight`` (n,) says how much each document counts: one of weight 2 as if it were given twice, where the
        method makes that exact, and one of weight 0 not at all. ``label_weight`` (n_labels,) says how much a right
        label is worth.
        """
        self.check_params()
        if checkpoint is not None:
            require(self, Checkpoints)
        if executor is not None:
            require(self, TrainsInTasks)
        views, Y = checks.check_inputs(X), checks.check_labels(Y)
        checks.check_training(views.n, Y, labels)
        weights = checks.check_sample_weight(sample_weight, views.n)
        if weights is not None:
            require(self, WeighsDocuments)
            kept = np.flatnonzero(weights)
            views, Y = views.rows(kept), Y[kept]
            weights = None if (weights[kept] == 1).all() else weights[kept]
        worth = checks.check_label_weight(label_weight, Y.shape[1])
        if worth is not None:
            require(self, WeighsLabels)
        if label_features is not None:
            read = self.label_text_view() or self.view
            label_features = checks.check_label_features(label_features, (Y.shape[1], views.width(read.name)))

        load_validation = checks.validation_loader(validation, views.widths, Y.shape[1], self.read)
        folder = None if checkpoint is None else Path(checkpoint)
        context = FitContext(
            labels, progress or no_progress, folder, label_features, load_validation, budget, executor, weights, worth
        )
        return self.fit_checked(views, Y, context)

    def fit_checked(self, views: Views, Y: Csr, context: FitContext) -> Self:
        """Learn as ``fit`` does, from inputs that are checked already."""
        self.forget()
        self.widths_, self.n_labels_ = dict(views.widths), int(Y.shape[1])
        self.labels_ = None if context.labels is None else context.labels.counted(Y)
        try:
            self._fit(self.read(views), Y, replace(context, labels=self.labels_))
        except BaseException:  # an interrupt too: a model that is half trained must not answer
            self.forget()
            raise
        return self

    def predict_topk(self, X: Inputs, k: int = 5, *, calibrated: bool = False, allowed: Bools | None = None) -> TopK:
        """Return the k best labels of each document, best first, padded with -1 / -inf where there are fewer.

        ``allowed`` (n_labels,) masks the labels that may be returned; it changes no label's score.
        """
        self.check_fitted()
        checks.check_k(k)
        calibration = require(self, Calibrated) if calibrated else None
        mask = checks.check_allowed(allowed, self.n_labels_)
        views = checks.check_inputs(X)
        checks.check_widths(views, self.widths_)
        n = views.n
        if n == 0:
            return TopK.empty(0, k)
        checks.check_answer(n, k)
        depth = min(k, self.n_labels_)
        batch = max(1, PREDICTED_LABELS // depth)
        top = in_batches(lambda part: self._predict(self.read(part), depth, mask), views, depth, batch).padded(k)
        return top if calibration is None else calibration.to_probabilities(top)

    def predict(self, X: Inputs, k: int = 5) -> Csr:
        """Return the k best labels of each document as a 0/1 matrix (n, n_labels), as scikit-learn does."""
        return self.predict_topk(X, k).to_csr(self.n_labels_)

    @property
    def n_features_(self) -> int:
        """The number of columns of the method's view; 0 for a method that reads texts."""
        return max(self.widths_.values(), default=0)

    def keep_for_prediction(self) -> Self:
        """Drop what only later changes need, such as ``add_label``: a member of an ensemble only predicts."""
        return self

    def report(self) -> dict[str, Any]:
        """Return what the training found, as plain values; most methods report nothing."""
        return {}

    def attach_labels(self, labels: LabelSpace | None) -> None:
        """Give a loaded model its labels, which are saved once for all parts of it."""
        self.labels_ = labels

    def save(self, folder: str | Path) -> None:
        """Write the model to a folder; ``load`` reads it, and ``labelspace.load`` as a Tagger."""
        store.save(folder, {"method": self.name}, {"model": self}, self.labels_)

    @classmethod
    def load(cls, folder: str | Path, verify: bool | None = None) -> Self:
        """Read the model of a folder; its arrays are memory-mapped."""
        from labelspace.models.registry import load_model

        with store.refusing_damage(folder):
            model = store.read_unreplaced(folder, lambda: load_model(folder, store.read_manifest(folder), verify))
        if not isinstance(model, cls):
            raise ModelError(f"{folder} must hold a {cls.name} model, but holds {model.name}; use labelspace.load")
        return model
