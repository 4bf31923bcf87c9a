"""Text in, label names out: views, model and labels as one thing, saved and loaded as one folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, Unpack, overload

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace import metrics
from labelspace.data.answer_files.answer_columns import Output, Table, answer_table, check_output, named
from labelspace.data.document_sketch import DocumentSketch
from labelspace.data.objects.document_reader import DataOptions, DocumentReader, Labels
from labelspace.data.objects.inputs import Documents, document_names, read_inputs
from labelspace.data.records import Record
from labelspace.data.sample_weights import given_weights, label_weights
from labelspace.errors import DataError, NotFittedError, ParameterError
from labelspace.explain import Explanation
from labelspace.explain.explainer import Explainer
from labelspace.explain.training_documents import TrainingDocuments
from labelspace.features import features_class
from labelspace.features.base import Features
from labelspace.features.encoders import AnyEncoder
from labelspace.features.views import EMBEDDINGS, FeatureCache, View, ViewTransformer, override
from labelspace.labels import edits
from labelspace.labels.coded_names import texts_without_codes
from labelspace.labels.selection import Selection, ids_of
from labelspace.labels.tag_options import SelectOptions, TagOptions
from labelspace.models.base import Model
from labelspace.models.capabilities import AddsLabels, Calibrated, Explains, HasMembers, PartialFit, ZeroShot, require
from labelspace.models.checks import Inputs, check_inputs, check_k, check_widths
from labelspace.models.fit_context import Budget, Executor
from labelspace.models.registry import DEFAULT, create
from labelspace.options import check_names
from labelspace.tagger import hub, learning, saving
from labelspace.tagger.answers import Answer, Answers, LabelChoice, Selections, Tags, best_evidence, members_topk
from labelspace.tagger.held_out import HeldOutDocuments
from labelspace.tagger.inputs import InputReader, Validation, check_side_columns, document_answers, stream
from labelspace.tagger.learning import Rejected
from labelspace.tagger.lineage import UNKNOWN, Origin, Version, check_license, labels_version, learn_version
from labelspace.training.precision_thresholds import PrecisionThreshold, PrecisionThresholds
from labelspace.types import Bools, Columns, Csr, Dataset, Fields, LabelSpace, Progress, SideColumns, TopK, no_progress

Text = str | Mapping[str, Any]  # a text, or the row of a table for a tagger that learned from one


class Tagger:
    """Tags texts with label names.

    ``method`` is a registry name (``labelspace methods`` lists them) or a model; further parameters are the method's.
    ``features`` replaces the features that the method would have made of texts: a registry name, or features with
    settings of their own; ``feature_params`` are settings of either. They are unused if features come ready-made.

    >>> texts = ["bake the bread", "knead bread dough", "grill the fish", "smoke a fish"]
    >>> tagger = Tagger(method="neighbors").fit(texts, [["baking"], ["baking", "dough"], ["fish"], ["fish"]])
    >>> tagger.tag("how to bake bread", k=1)
    [('baking', 1.0)]
    >>> tagger
    <Tagger: Neighbors(), 4 documents, 3 labels>
    """

    model: Model
    features_: ViewTransformer | None  # None once fitted on ready-made features
    labels_: LabelSpace
    columns_: Columns | None = None  # of the table that the tagger learned from
    fields_: Fields | None = None  # the columns with texts and labels, if these were named or found
    documents_: DocumentSketch | None = None  # of the training documents, if any
    training_documents_: TrainingDocuments | None = None  # for explanations that name training documents
    held_out_: HeldOutDocuments | None = None  # documents that are never learned from, to compare versions by
    lineage_: tuple[Version, ...] = ()  # the versions up to this one; none after a training
    origin_: Origin = UNKNOWN  # the file that the tagger was trained on
    license_: str | None = None  # the identifier of the model's license

    def __init__(
        self,
        method: str | Model = DEFAULT,
        features: str | Features | None = None,
        feature_params: Mapping[str, Any] | None = None,
        **params: Any,  # noqa: ANN401 - parameters are of any type
    ) -> None:
        self.model = create(method, **params) if isinstance(method, str) else method.set_params(**params)
        given = features.get_params() if isinstance(features, Features) else {}
        self.features = features.name if isinstance(features, Features) else features
        if self.features is not None:
            features_class(self.features)  # raises an error for an unknown name
        self.feature_params = {**given, **(feature_params or {})}
        self._selections = Selections()

    def __repr__(self) -> str:
        if not hasattr(self, "labels_"):
            return f"<Tagger: {self.model}, not fitted>"
        return f"<Tagger: {self.model}, {self.labels_.n_documents:,} documents, {len(self.labels_):,} labels>"

    def views(self, documents: Dataset) -> list[View]:
        """Return the views that training makes of documents with texts."""
        return override(self.model.views(documents), self.features, self.feature_params, self.model.name)

    def check_params(self) -> None:
        """Check the parameters of the method and of the features, before any data are read."""
        self.model.check_params()
        any_document = Dataset(sp.csr_matrix((1, 1), dtype=np.float32), LabelSpace(["a"]), texts=["a"])
        for view in self.views(any_document):
            view.create().check_params()

    def fit(
        self,
        data: Documents,
        labels: Labels = None,
        *,
        progress: Progress | None = None,
        keep_texts: bool = False,
        sample_weight: npt.ArrayLike | str | None = None,
        label_weight: Mapping[str, float] | None = None,
        **options: Unpack[DataOptions],
    ) -> Self:
        """Learn from texts and the names of their labels, or from features and a matrix of labels; see docs/python.md.

        For a table, ``text`` and ``labels`` name columns: ``fit(df, text="title", labels="tags")``. ``options`` are
        those of ``DataOptions``. ``keep_texts`` keeps the texts, for explanations that show the documents that voted.
        ``sample_weight`` says how much each document counts: numbers of at least 0, or the column of a table with them.
        ``label_weight`` says how much a right label is worth, by name; all others are worth 1.
        """
        check_names(options, DataOptions)
        documents = DocumentReader(options).dataset(data, labels)
        if sample_weight is not None:
            documents = replace(documents, sample_weight=given_weights(data, sample_weight, len(documents)))
        return self.fit_dataset(documents, progress=progress, keep_texts=keep_texts, label_weight=label_weight)

    def fit_dataset(
        self,
        train: Dataset,
        validation: Validation | None = None,
        progress: Progress | None = None,
        checkpoint: str | Path | None = None,
        cache: FeatureCache | None = None,
        budget: Budget | None = None,
        keep_texts: bool = False,
        executor: Executor | None = None,
        label_weight: Mapping[str, float] | None = None,
    ) -> Self:
        """Learn from a Dataset; ``cache`` has features that were fitted on the same documents before.

        ``checkpoint`` is a folder where an interrupted training leaves what it needs to resume. A method that can
        leave something out to keep to a ``budget`` does so. ``keep_texts`` keeps the training texts with the model,
        for explanations that show the documents that voted. ``executor`` runs tasks of the training on a cluster.
        """
        if keep_texts and not self.model.names_documents:
            rule = f"texts are kept for a method that names training documents, but {self.model.name} does not"
            raise ParameterError(f"{rule}; leave keep_texts out, or train blend or neighbors")
        progress = progress or no_progress
        worth = None if label_weight is None else label_weights(label_weight, train.labels)
        train = train.weighty()
        features: ViewTransformer | None = None
        inputs: Inputs = train.inputs
        if train.X is None or not any(view.is_matrix for view in self.model.views(train)):
            if train.texts is None:
                rule = f"{self.model.name} reads texts, but the data holds ready-made features"
                raise DataError(f"{rule}; give a file with texts")
            views = self.views(train)
            check_side_columns(self.model, views, train.beside)
            features = ViewTransformer(views, train.beside)
            inputs = features.fit_transform(train.texts, cache=cache, progress=progress)
        # Not before: a failure above leaves the tagger as it was.
        self.columns_ = train.columns
        self.fields_ = train.fields
        self.features_ = features
        self.model.fit(
            inputs,
            train.Y,
            labels=train.labels,
            validation=self._reader.validation(validation),
            progress=progress,
            label_features=self._reader.label_features(train.labels),
            checkpoint=checkpoint,
            budget=budget,
            executor=executor,
            sample_weight=train.sample_weight,
            label_weight=worth,
        )
        if features is not None:
            features.keep(self.model.widths_)
        self.labels_ = train.labels.counted(train.Y)
        self.documents_ = DocumentSketch.of(self.inputs_of(train))
        self.training_documents_ = None
        if self.model.names_documents:
            self.training_documents_ = TrainingDocuments.of(train, self.model.trained_rows, keep_texts)
        self.held_out_ = None
        self.lineage_ = ()
        self.origin_ = UNKNOWN
        return self

    def fit_labels(self, labels: LabelSpace) -> Self:
        """Prepare zero-shot tagging from only the names and synonyms of the labels, for a method that can.

        >>> Tagger("lexical").fit_labels(LabelSpace(["sourdough", "fish"])).tag("A sourdough starter")[0][0]
        'sourdough'
        """
        if not isinstance(labels, LabelSpace):
            raise DataError(f"labels must be a LabelSpace, but are {type(labels).__name__}; write LabelSpace(names)")
        model = require(self.model, ZeroShot)
        features = ViewTransformer(
            override(self.model.label_views(), self.features, self.feature_params, self.model.name)
        )
        tables = features.fit_transform(texts_without_codes(labels))
        model.fit_labels(labels, tables.tables.get(EMBEDDINGS.name))
        self.features_ = features
        self.labels_ = self.model.labels_ or labels
        self.columns_ = self.fields_ = self.documents_ = None
        self.held_out_ = None
        self.lineage_ = ()
        self.origin_ = UNKNOWN
        return self

    def learn(
        self,
        data: Documents,
        labels: Labels = None,
        *,
        rejected: Rejected | None = None,
        **options: Unpack[DataOptions],
    ) -> Self:
        """Go on learning from documents with labels, given as for ``fit``; names that are not known are new labels.

        ``rejected`` lists for each document the labels that a person rejected. A document with rejected labels only
        may have any other label. The cost grows with these documents, not with those that were learned before.

        >>> texts = ["bake the bread", "knead bread dough", "grill the fish", "smoke a fish"]
        >>> tagger = Tagger("neighbors", n_neighbors=1).fit(texts * 2, [["baking"], ["baking"], ["fish"], ["fish"]] * 2)
        >>> tagger.learn(["grill the bread"], [["toast"]]).tag("grill the bread", k=1)[0][0]
        'toast'
        """
        self.check_fitted()
        check_names(options, DataOptions)
        learn_version(self, *learning.read_documents(self, data, labels, rejected, options))
        return self

    def add_label(
        self,
        name: str,
        examples: Documents | None = None,
        *,
        alt: Sequence[str] = (),
        description: str | None = None,
        **params: float,
    ) -> Self:
        """Add a label by documents that have it, or only by its name and synonyms, without training again.

        The documents may have other labels too. A known label gets further documents and synonyms, and another
        description if one is given (an empty one removes it); one that was retired or merged is in use again.
        ``params`` are those of a method that places labels itself: ``share`` of glas is the
        share of all documents that is expected to have the label.

        >>> texts = ["bake the bread", "knead bread dough", "grill the fish", "smoke a fish"] * 10
        >>> tagger = Tagger("glas", embedding_dim=32).fit(texts, [["baking"], ["baking"], ["fish"], ["fish"]] * 10)
        >>> tagger = tagger.add_label("grilling", ["grill the fish", "grill bread"])
        >>> "grilling" in [name for name, _ in tagger.tag("grill it", k=3)]
        True
        """
        self.check_fitted()
        edits.added(self.labels_, name, alt, description)  # refuses a wrong name before anything changes
        is_placed = isinstance(self.model, AddsLabels) and examples is not None
        if isinstance(self.model, AddsLabels) and isinstance(self.model, PartialFit):
            is_placed = is_placed and not self.model.has_label(name)  # a label that is removed is placed anew
        if params and not is_placed:
            rule = f"{next(iter(params))} is for a new label with examples and a method that places labels itself"
            raise ParameterError(f"{rule}, but this is {self.model.name} and {name[:80]!r}; leave it out")
        with labels_version(self):
            if isinstance(self.model, AddsLabels) and is_placed:
                self.model.add_label(name, self._reader.read(examples), **params)
                self.labels_ = self.model.labels_ or self.labels_
                labels, _ = edits.added(self.labels_, name, alt, description)
                learning.set_labels(self, labels)
            else:
                learning.add_label(self, name, examples, alt, description)
        return self

    def retire_label(self, name: str) -> Self:
        """Stop answering a label, without training again; ``add_label`` brings it back.

        >>> texts = ["bake the bread", "knead bread dough", "grill the fish", "smoke a fish"]
        >>> tagger = Tagger("neighbors").fit(texts, [["baking"], ["baking", "dough"], ["fish"], ["fish"]])
        >>> tagger.retire_label("baking").tag("bake the bread", k=1)[0][0]
        'dough'
        """
        return self._edited(lambda labels: edits.retired(labels, edits.label_in_use(labels, name)))

    def rename_label(self, name: str, new_name: str) -> Self:
        """Give a label another name, without training again; the name before becomes a synonym."""
        return self._edited(lambda labels: edits.renamed(labels, edits.label_in_use(labels, name), new_name))

    def merge_labels(self, name: str, into: str) -> Self:
        """Answer a label as another one from now on, without training again; its name becomes a synonym of that one."""
        return self._edited(
            lambda labels: edits.merged(labels, edits.label_in_use(labels, name), edits.label_in_use(labels, into))
        )

    def split_label(self, name: str, examples: Mapping[str, Documents]) -> Self:
        """Replace a label by new ones, given by documents of each, without training again; then retire it."""
        self.check_fitted()
        edits.label_in_use(self.labels_, name)
        for new_name in examples:
            edits.check_new_name(self.labels_, new_name)
        if len(examples) < 2:
            raise DataError(f"a label is split into at least two, but {name!r} into {len(examples)}; name more")
        with learning.whole_edit(self), labels_version(self):
            for new_name, documents in examples.items():
                self.add_label(new_name, documents)
            self.retire_label(name)
        return self

    def _edited(self, edit: Callable[[LabelSpace], LabelSpace]) -> Self:
        self.check_fitted()
        with labels_version(self):
            learning.set_labels(self, edit(self.labels_))
        return self

    def remove_label(self, name: str) -> None:
        """Stop suggesting a label; a method that places labels itself forgets it, any other method only hides it."""
        self.check_fitted()
        if isinstance(self.model, AddsLabels):
            with labels_version(self):
                self.model.remove_label(name)
                self.labels_ = self.model.labels_ or self.labels_
        else:
            self.retire_label(name)

    def predict_topk(
        self, inputs: Documents, k: int = 5, *, calibrated: bool = False, **options: Unpack[TagOptions]
    ) -> TopK:
        """Return the k best label ids of each document: texts, or rows of features as in training.

        ``options`` are those of ``TagOptions``.
        """
        return self.answers(inputs, k, calibrated=calibrated, **options).answer

    def answers(
        self, inputs: Documents, k: int = 5, *, calibrated: bool = False, **options: Unpack[TagOptions]
    ) -> Answers:
        """Return the answers as label ids, with the labels that they were chosen from."""
        self.check_fitted()
        check_k(k)
        check_names(options, TagOptions)
        selection = self.selection(options)
        return self.choice.answers(self._reader.read(inputs), k, calibrated, options, selection)

    @property
    def choice(self) -> LabelChoice:
        """The rules by which the labels of an answer are chosen."""
        return LabelChoice(self.model, self.labels_, self.columns_)

    def selection(self, options: SelectOptions) -> Selection | None:
        """Return the labels that options allow; None if they allow all labels."""
        return self._selections.get(self.labels_, options)

    def precision_threshold(self, precision: float, consistent: bool = False) -> PrecisionThreshold:
        """Return the threshold that reaches a precision, inf if none does, and the coverage to expect."""
        self.check_fitted()
        return self.choice.precision_threshold(precision, consistent)

    def precision_thresholds(self, consistent: bool = False) -> PrecisionThresholds:
        """Return the thresholds that were learned in training, with ``consistent`` for answers with all ancestors."""
        self.check_fitted()
        return self.choice.precision_thresholds(consistent)

    def predict_proba(self, inputs: Documents, k: int = 5, **options: Unpack[TagOptions]) -> Csr:
        """Return the probabilities of the k best labels of each document, as a sparse float32 matrix (n, n_labels).

        All other probabilities are 0: of labels below the k best, and of labels that ``options`` leave out.

        >>> texts = [f"{a} {b}" for a in ("bread", "fish", "rice") for b in ("hot", "cold", "old", "new", "raw")] * 4
        >>> tagger = Tagger(members="neighbors").fit(texts, [[text.split()[0]] for text in texts])
        >>> probabilities = tagger.predict_proba(["cold fish", "hot rice"], k=2)
        >>> probabilities.shape, probabilities.argmax(axis=1).ravel().tolist()
        ((2, 3), [[1, 2]])
        """
        top = self.predict_topk(inputs, k, calibrated=True, **options)
        return top.to_csr(len(self.labels_), with_scores=True)

    def to_dataset(self, data: Documents, labels: Labels = None, **options: Unpack[DataOptions]) -> Dataset:
        """Return documents with labels, given as for ``fit``, as a Dataset; unknown labels follow the tagger's labels.

        Columns need not be named if they are named as in training.
        """
        self.check_fitted()
        check_names(options, DataOptions)
        return DocumentReader(options, self.labels_, self.columns_, self.fields_).dataset(data, labels)

    def evaluate(
        self, data: Documents, labels: Labels = None, ks: Sequence[int] = (1, 3, 5), **options: Unpack[DataOptions]
    ) -> dict[str, float]:
        """Return P@k, nDCG@k, PSP@k and other metrics on documents with labels, given as for ``fit``, in percent.

        ``labelspace.experiment.evaluate(tagger, tagger.to_dataset(data))`` has all that ``labelspace evaluate`` shows.
        A label that was merged into another one counts as that one. A retired label does not count: it is not missed.

        >>> tagger = Tagger("neighbors").fit(["bake bread", "grill fish"] * 2, [["baking"], ["fish"]] * 2)
        >>> tagger.evaluate(["rye bread", "fish soup"], [["baking"], ["soup"]], ks=[1])["P@1"]
        50.0
        """
        documents, known = self.to_dataset(data, labels, **options), self.labels_
        if documents.filtered is not None:
            raise DataError("labels must count for all documents, but some are filtered; use experiment.evaluate")
        top = self.predict_topk(self.inputs_of(documents), max(ks, default=1))
        Y = edits.labels_in_use(documents.Y, known)
        if not known.n_documents:  # a tagger made of labels only has no training counts
            return metrics.evaluate(Y, top, ks=ks, propensity_from="test")
        return metrics.evaluate(Y, top, known.answered_counts, known.n_documents, ks)

    def predict_members(self, inputs: Documents, k: int = 5) -> dict[str, TopK]:
        """Return the k best labels of each document by each member of an ensemble."""
        self.check_fitted()
        return members_topk(require(self.model, HasMembers), self.labels_, self._reader.read(inputs), k)

    def tag(self, text: Text, k: int = 5, **options: Unpack[TagOptions]) -> Tags:
        """Return the k best labels of one text as (name, score), best first; ``options`` are those of ``TagOptions``.

        A tagger that learned from a table takes a row of it: ``tagger.tag({"title": "Green tea", "price": 119})``.

        >>> texts = ["bake rye bread", "rye bread dough", "grill the fish", "smoke a fish"]
        >>> tagger = Tagger("neighbors").fit(texts, [["food > bread"], ["food > bread"], ["food > fish"], ["food"]])
        >>> [name for name, _ in tagger.tag("a rye bread", k=2, consistent=True)]
        ['food', 'food > bread']
        """
        if not isinstance(text, (str, Mapping)):
            raise DataError(f"text must be one text, but is of type {type(text).__name__}; use tag_batch for several")
        return self.tag_batch([text], k, **options)[0]

    @overload
    def tag_batch(
        self, texts: Documents, k: int = 5, *, output: None = None, **options: Unpack[TagOptions]
    ) -> list[Tags]: ...

    @overload
    def tag_batch(self, texts: Documents, k: int = 5, *, output: Output, **options: Unpack[TagOptions]) -> Table: ...

    def tag_batch(
        self, texts: Documents, k: int = 5, *, output: Output | None = None, **options: Unpack[TagOptions]
    ) -> list[Tags] | Table:
        """Return the k best labels of each text, or of each row of a table or of features, as for ``fit``.

        With ``output``, "pandas", "polars" or "arrow", they are a table with a row for each document and label;
        ``document`` is the index of a pandas table or column, and else the row number from 0.
        """
        if output is None:
            return self.named(self.predict_topk(texts, k, **options))
        check_output(output)
        top, documents = self.predict_topk(texts, k, **options), document_names(texts)
        probabilities = self.choice.probabilities(top, options)
        return answer_table(top, probabilities, self.labels_, documents, output)

    def answer_batch(self, texts: Documents, k: int = 5, **options: Unpack[TagOptions]) -> list[Answer]:
        """Return the k best labels of each text, with the labels that an option left out, and the reasons."""
        answers = self.answers(texts, k, **options).documents(self.labels_)
        return [answer.named(self.labels_.names) for answer in answers]

    def tag_stream(
        self, records: Iterable[Record], k: int = 5, source: str = "records", **options: Unpack[TagOptions]
    ) -> Iterator[tuple[Record, Tags]]:
        """Tag a stream of records of any size, a batch in memory at a time; ``source`` names it in messages.

        >>> tagger = Tagger("neighbors").fit(["bake bread", "grill fish"] * 2, [["baking"], ["fish"]] * 2)
        >>> [(record.id, tags[0][0]) for record, tags in tagger.tag_stream([Record("7", "fish")], k=1)]
        [('7', 'fish')]
        """
        return stream(self, records, k, source, lambda inputs, k: self.tag_batch(inputs, k, **options))

    def answer_stream(
        self, records: Iterable[Record], k: int = 5, source: str = "records", **options: Unpack[TagOptions]
    ) -> Iterator[tuple[Record, Answer]]:
        """Answer a stream of records, as ``answer_batch`` does a list of texts."""
        answers = document_answers(self, records, k, source, options)
        return ((record, answer.named(self.labels_.names)) for record, answer in answers)

    def explain(self, text: Text | Csr, labels: Sequence[str] | None = None, k: int = 3) -> list[Explanation]:
        """Explain why a text, or a row of features, has labels: by default its k best ones.

        Of labels that were merged into a label, that with the highest score is explained in its place. Raises an error
        that names the methods that can explain, if this method cannot.

        >>> texts = ["bake the bread", "knead bread dough", "grill the fish", "smoke a fish"]
        >>> tagger = Tagger("neighbors").fit(texts, [["baking"], ["baking", "dough"], ["fish"], ["fish"]])
        >>> why = tagger.explain("how to bake bread", k=1)[0]
        >>> why.label, [word.text for word in why.marked()]
        ('baking', ['bread'])
        """
        self.check_fitted()
        model = require(self.model, Explains)
        is_text = isinstance(text, (str, Mapping))
        raw = read_inputs([text], self.columns_, self.fields_)[0] if is_text else None
        views = check_inputs(self._reader.read([text] if is_text else text))
        check_widths(views, self.model.widths_)
        if views.n != 1:
            raise DataError(f"explain takes one document, but was given {views.n}; call it for each")
        if labels is None:
            check_k(k)
            top = self.choice.predict_topk(views, min(k, len(self.labels_))).labels[0]
            ids = top[top >= 0]
        else:
            ids = edits.ids_in_use(self.labels_, ids_of(self.labels_, labels))
        calibrated = isinstance(self.model, Calibrated)
        explainer = Explainer(self.labels_, calibrated, self.features_, self.training_documents_, raw)
        evidence = best_evidence(model, self.labels_, self.model.read(views), ids)
        return list(map(explainer.explanation, ids.tolist(), evidence))

    def named(self, top: TopK) -> list[Tags]:
        """Return label ids as (name, score), without padding."""
        return named(top, self.labels_.names)

    @property
    def gives_probabilities(self) -> bool:
        """True if scores are probabilities: the method is calibrated, and ranks by them."""
        return self.choice.gives_probabilities

    @property
    def ready_made(self) -> bool:
        """True if the tagger was trained on ready-made features, and takes them in place of texts."""
        return self.features_ is None

    @property
    def side_columns(self) -> SideColumns:
        """The columns that the tagger reads beside the text, such as a price."""
        beside = None if self.features_ is None else self.features_.beside_
        return SideColumns() if beside is None else beside.columns

    def inputs_of(self, documents: Dataset) -> Documents:
        """Return what the tagger reads of a data set: texts, or features with as many columns as in training."""
        return self._reader.inputs_of(documents)

    def reads(self, inputs: Documents) -> Bools:
        """Return whether the tagger knows a word, a label's name or a feature of each document. Shape (n,).

        The tags of other documents do not depend on the document.

        >>> tagger = Tagger("neighbors").fit(["bake bread", "grill fish"] * 2, [["baking"], ["fish"]] * 2)
        >>> tagger.reads(["a fish", "", "unheard of"]).tolist()
        [True, False, False]
        """
        self.check_fitted()
        return self.choice.are_read(check_inputs(self._reader.read(inputs)))

    def save(self, folder: str | Path, force: bool = False, *, license: str | None = None) -> None:
        """Write everything to one folder; ``Tagger.load`` or ``labelspace.load`` reads it.

        A model in the folder is replaced, a folder with other files only with ``force``. ``license`` is the identifier
        of the model's license, such as ``apache-2.0``, which the model keeps from then on.
        """
        self.check_fitted()
        check_license(license)
        self.license_ = license or self.license_
        saving.save(self, folder, force)

    @classmethod
    def load(cls, folder: str | Path, verify: bool | None = None) -> Tagger:
        """Load a saved tagger, or a saved model as a tagger; arrays are memory-mapped.

        ``verify=True`` checks every byte of large files too.
        """
        return saving.load(cls, folder, verify)

    def push_to_hub(
        self,
        repository: str,
        *,
        license: str | None = None,
        private: bool | None = None,
        message: str = "Upload a labelspace model",
    ) -> str:
        """Save to ``owner/name`` on the Hugging Face Hub, which is made if it is new; return the URL of the commit.

        ``license`` is as in ``save``. ``private`` says who sees a new repository; None leaves it to your settings
        there. Needs the extra ``hub``, and a login by ``hf auth login`` or the environment variable ``HF_TOKEN``.
        """
        return hub.push(self, repository, license, private, message)

    @classmethod
    def from_pretrained(cls, repository: str, *, revision: str | None = None, local_files_only: bool = False) -> Self:
        """Load a tagger from ``owner/name`` on the Hugging Face Hub, or from the hub's cache if it is there.

        ``revision`` is a branch, a tag or a commit. ``local_files_only`` loads from the cache without any request.
        Needs the extra ``hub``.
        """
        return saving.load(cls, hub.pull(repository, revision, local_files_only), verify=None)

    def read(self, inputs: Documents) -> Inputs:
        """Return what the model reads of documents: ready-made features as they are, and the views of texts."""
        return self._reader.read(inputs)

    @property
    def _reader(self) -> InputReader:
        return InputReader(self.model, self.features_, self.columns_, self.fields_)

    def check_fitted(self) -> None:
        """Raise NotFittedError unless the tagger is fitted."""
        if not hasattr(self, "labels_"):
            raise NotFittedError("the tagger must be fitted first, but has not been; call fit(texts, labels)")


def load(folder: str | Path, verify: bool | None = None, *, encoder: AnyEncoder | None = None) -> Tagger:
    """Load a saved Tagger, or a saved model as a Tagger.

    ``encoder`` is the encoder that it was trained with: a function is not saved, and of the hub nothing is downloaded
    unless it is named here.
    """
    tagger = Tagger.load(folder, verify)
    if encoder is not None:
        if tagger.features_ is None:
            raise ParameterError("encoder is for a model that reads texts, but this one reads features; leave it out")
        tagger.features_.give_encoder(encoder)
    return tagger
