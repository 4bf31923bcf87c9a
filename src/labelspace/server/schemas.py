"""Define the schemas of requests and answers, from which the OpenAPI description is made."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from labelspace.labels.tag_options import TagOptions
from labelspace.options import Option, declared_options
from labelspace.server.database import Feedback, Job
from labelspace.server.settings import RequestLimits

LabelName = Annotated[str, Field(min_length=1, max_length=10_000)]
LabelNames = Annotated[list[LabelName], Field(max_length=1000)]
LANGUAGE = "Show names in this language if the vocabulary has them."
OWN_ID = "Your own id; feedback with the same id is stored only once."
INBOX_ID = "The id of a document in the inbox; its status becomes done."
NEW_LABELS = "Accept labels in ``added`` that the model does not know; it learns them in the next training."
OF_ONE_TEXT = "What the label is for, if that is known; only in answers for one text."
LabelQuery = Annotated[str, Field(max_length=1000, description="What was typed; empty for the most frequent labels.")]
LabelLimit = Annotated[int, Field(ge=1, le=100, description="Labels, at most.")]
Branch = Annotated[str | None, Field(max_length=2000, description="Search only in this branch of the hierarchy.")]
ReviewOrder = Literal["uncertain", "disagreement", "rare", "suspicious", "random", "uncertainty"]


class Body(BaseModel):
    """A request: unknown fields and values of a wrong type are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Answer(BaseModel):
    """An answer; a client should ignore fields that it does not know."""


class ModelVersion(Answer):
    """An answer by a version of a model."""

    model: str
    version: str


def _answer_of(name: str, meaning: str, record: Any, *, without: Sequence[str] = ()) -> Any:  # noqa: ANN401 - a class
    """Return an answer with the fields of a dataclass."""
    kinds: Any = {each.name: (each.type, ...) for each in fields(record) if each.name not in without}
    return create_model(name, __base__=Answer, __doc__=meaning, **kinds)


def _field(option: Option) -> tuple[Any, Any]:
    """Return the type and the default of the field of a request for an option of the library."""
    description = f"{option.meaning.rstrip('.')}."
    if option.repeats:  # labels; the files that other callers may give stay unread, since requests come from strangers
        return LabelNames, Field([], description=description)
    default: Any = False if option.kind is bool else None
    bounds: Any = option.bounds
    return option.kind, Field(default, description=description, **bounds)


TAG_OPTIONS = declared_options(TagOptions)
_K: Any = (int, Field(5, ge=1, description="Labels per document, at most."))
_FIELDS: Any = {"k": _K, **{name: _field(option) for name, option in TAG_OPTIONS.items()}}
_TagOptions: Any = create_model("_TagOptions", __base__=Body, **_FIELDS)


class TagOptionsBody(_TagOptions):  # type: ignore[misc]  # a class made at run time
    """Which labels an answer may have: their number, and the options that ``TagOptions`` declares."""

    language: str | None = Field(None, max_length=100, description=LANGUAGE)


class SuggestBody(TagOptionsBody):
    """One text to tag."""

    text: str
    explain: Annotated[bool, Field(description="Add the reasons for each suggestion.")] = False


class DocumentBody(Body):
    """A document of a batch."""

    id: Annotated[str, Field(max_length=1000)] | None = None
    text: str


class SuggestBatchBody(TagOptionsBody):
    """Several texts to tag."""

    documents: Annotated[list[DocumentBody], Field(min_length=1)]


class ExplainBody(Body):
    """A text, and the labels to explain; without labels, the k best are explained."""

    text: str
    labels: Annotated[list[LabelName], Field(min_length=1, max_length=100)] | None = None
    k: Annotated[int, Field(ge=1, le=100)] = 3


class SearchBody(Body):
    """The beginning of words of a label."""

    query: LabelQuery
    limit: LabelLimit = 20
    under: Branch = None


class LabelBody(Body):
    """A label."""

    label: Annotated[LabelName, Field(description="Its unique name, URI or id.")]


class Label(Answer):
    """A label: ``label`` is its unique name, ``name`` what to show."""

    id: int
    label: str
    name: str
    path: list[str]
    synonym: str | None
    uri: str | None
    notation: str | None
    count: int


class Suggestion(Label):
    """A suggested label."""

    rank: int
    score: float
    probability: float | None
    description: str | None = Field(None, description=OF_ONE_TEXT)
    explanation: dict[str, Any] | None = None


class LeftOutLabel(Answer):
    """One of the k best labels that was left out of the answer, with the reason."""

    label: str
    score: float
    reason: str


class DocumentAnswer(Answer):
    """The suggestions for one document."""

    suggestions: list[Suggestion]
    left_out: list[LeftOutLabel]
    note: str | None


class SuggestAnswer(DocumentAnswer, ModelVersion):
    """The suggestions for a text."""


class BatchResult(DocumentAnswer):
    """The suggestions for a document of a batch."""

    id: str | None


class SuggestBatchAnswer(ModelVersion):
    """The suggestions for several documents, in their order."""

    results: list[BatchResult]


class ExplainAnswer(ModelVersion):
    """Reasons for labels, in the form of ``labelspace explain --json``, with the words to highlight."""

    explanations: list[dict[str, Any]]


class DescribedLabel(Label):
    """A label with its description, if it has one."""

    description: str | None


class FoundLabel(DescribedLabel):
    """A label that matches a search."""

    match: Literal["prefix", "word", "typo"]


class LabelsAnswer(Answer):
    """Labels that match a search, best first."""

    labels: list[FoundLabel]


class LabelAnswer(DescribedLabel):
    """A label with synonyms, broader and narrower labels."""

    synonyms: list[str]
    broader: list[Label]
    narrower: list[Label]
    n_narrower: int


class TreeItem(Answer):
    """A label of a level of the hierarchy; Label Studio's taxonomy reads ``value alias hint isLeaf``."""

    value: str
    alias: str
    hint: str
    isLeaf: bool  # noqa: N815 - the name that Label Studio reads
    id: int
    name: str
    count: int
    n_below: int


class TreeAnswer(Answer):
    """A level of the hierarchy."""

    items: list[TreeItem]
    total: int


class DecisionBody(Body):
    """Which labels of a text are right, and which are wrong."""

    text: str = Field(min_length=1)
    accepted: LabelNames = Field([], description="Labels that are right.")
    rejected: LabelNames = Field([], description="Labels that are wrong.")
    by: Annotated[str, Field(max_length=200)] | None = Field(None, description="Who decided.")


class FeedbackBody(DecisionBody):
    """What a person decided on a document."""

    id: str | None = Field(None, min_length=1, max_length=200, description=OWN_ID)
    added: LabelNames = Field([], description="Right labels that were not suggested.")
    document: str | None = Field(None, max_length=200, description=INBOX_ID)
    allow_new_labels: bool = Field(False, description=NEW_LABELS)


class FeedbackAnswer(Answer):
    """The number and the ids of stored entries."""

    stored: int
    ids: list[str]


StoredFeedback = _answer_of("StoredFeedback", "An entry of feedback.", Feedback)


class FeedbackList(Answer):
    """Stored feedback, oldest first."""

    feedback: list[StoredFeedback]  # type: ignore[valid-type]  # a class made at run time
    total: int


class Withdrawn(Answer):
    """The id of feedback that was deleted."""

    withdrawn: str


class ReviewBody(Body):
    """Documents for the inbox."""

    documents: Annotated[list[DocumentBody], Field(min_length=1)]


class ReviewStored(Answer):
    """The numbers of documents that are new in the inbox, and that were already there."""

    stored: int
    known: int


class ReviewDocument(Answer):
    """A document to review."""

    id: str
    document: str | None
    text: str
    value: float


class ReviewProgress(Answer):
    """The number of documents of the inbox by status."""

    pending: int
    done: int
    skipped: int


class ReviewAnswer(Answer):
    """The next documents to review."""

    documents: list[ReviewDocument]
    progress: ReviewProgress


class StatusBody(Body):
    """A new status of a document in the inbox."""

    status: Literal["skipped", "pending"]


class StatusAnswer(Answer):
    """The status of a document in the inbox."""

    id: str
    status: str


JobAnswer = _answer_of("JobAnswer", "A job: work in the background.", Job, without=("started", "heartbeat"))


class JobsAnswer(Answer):
    """All jobs, newest first."""

    jobs: list[JobAnswer]  # type: ignore[valid-type]  # a class made at run time


class ReloadAnswer(ModelVersion):
    """The version that is served now, and the one before."""

    previous: str | None
    changed: bool


class PrecisionRow(Answer):
    """The threshold for a precision, its coverage, and the largest number of labels per document.

    ``shown`` says whether held-out documents confirm the precision.
    """

    precision: float
    threshold: float | None
    coverage: float
    most: int
    shown: bool


class MemberAnswer(Answer):
    """A member of an ensemble."""

    method: str
    view: str


class ModelAnswer(Answer):
    """A served model."""

    id: str
    method: str
    title: str
    members: list[MemberAnswer]
    n_labels: int
    n_documents: int
    version: str
    created: str
    size_bytes: int
    labelspace_version: str
    calibrated: bool
    explains: bool
    has_hierarchy: bool
    has_map: bool
    ready: bool
    precision: list[PrecisionRow]
    figures: dict[str, Any] | None
    can_learn: bool
    can_train: bool
    n_feedback: int
    n_new_feedback: int
    n_inbox: ReviewProgress


class ModelsAnswer(Answer):
    """The served models."""

    models: list[ModelAnswer]


class FiguresAnswer(Answer):
    """Figures measured on held-out documents, with diagrams as SVG."""

    state: Literal["ready", "running"]
    data: str | None = None
    figures: dict[str, Any] | None = None
    svg: dict[str, str | None] | None = None


LimitsAnswer = _answer_of("LimitsAnswer", "The limits of a request.", RequestLimits)


class ServiceAnswer(Answer):
    """The service."""

    name: str
    title: str
    version: str
    models: list[str]
    limits: LimitsAnswer  # type: ignore[valid-type]  # a class made at run time
    authentication: Literal["none", "key"]
    read_only: bool


class HealthAnswer(Answer):
    """The state of the server."""

    status: str
    detail: str | None = None


class ProblemAnswer(Answer):
    """An error; ``detail`` has the rule, the value and the remedy."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
