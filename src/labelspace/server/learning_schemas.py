"""Define the schemas of requests that change a model, and of the versions that these make."""

from typing import Annotated, Literal

from pydantic import Field

from labelspace.server.schemas import Answer, Body, LabelName, LabelNames, ModelVersion

FULL = "Train again on the data of ``--data`` and all feedback, in place of going on with new feedback."
FORCE = "Use the new version even if its figure falls by more than its noise."
NAME = "One line of text that no other label has."
ALT = "Further names, by which the label is found."
DESCRIPTION = "What the label is for, on one line; an empty one removes it."
EXAMPLES = "Texts that have the label. Without any, the label is only found by its names."


class LearnBody(Body):
    """How to learn from feedback."""

    full: Annotated[bool, Field(description=FULL)] = False
    force: Annotated[bool, Field(description=FORCE)] = False


class FigureAnswer(Answer):
    """A metric in percent, with its 95 % confidence interval."""

    value: float
    low: float
    high: float


class HeldOutAnswer(Answer):
    """The nDCG@5 of a version, and of the one before, on the same documents that neither learned from."""

    source: str
    n: int
    old: FigureAnswer | None
    new: FigureAnswer


class VersionAnswer(Answer):
    """A version of a model, and how it was made; ``is_kept`` says whether one can go back to it."""

    number: int
    made_by: Literal["train", "learn", "labels", "rollback"]
    time: str | None
    n_documents: int
    n_new_documents: int
    n_labels: int
    n_new_labels: int
    new_labels: list[str]
    data: str | None
    left_out: list[str]
    held_out: HeldOutAnswer | None
    forced: bool
    restored: int | None
    is_current: bool
    is_kept: bool


class VersionsAnswer(Answer):
    """The versions of a model, oldest first."""

    model: str
    versions: list[VersionAnswer]


class RollbackBody(Body):
    """The version to go back to."""

    to: Annotated[int, Field(ge=1, lt=2**31, description="The number of a version that is kept; see /versions.")]


class RollbackAnswer(ModelVersion):
    """The version that is served now, its number, and the number of the version that it is equal to."""

    number: int
    restored: int


class AddLabelBody(Body):
    """A new label."""

    name: Annotated[LabelName, Field(description=NAME)]
    alt: LabelNames = Field([], description=ALT)
    description: str | None = Field(None, description=DESCRIPTION)
    examples: Annotated[list[Annotated[str, Field(min_length=1)]], Field(description=EXAMPLES)] = []


class ChangeLabelBody(Body):
    """A new name of a label, further names, another description, or several of these."""

    name: LabelName | None = Field(None, description=f"{NAME} The name before is found too.")
    alt: LabelNames = Field([], description=ALT)
    description: str | None = Field(None, description=DESCRIPTION)


class MergeLabelBody(Body):
    """The label that another one is merged into."""

    into: Annotated[LabelName, Field(description="The label that is answered from now on: a name, a URI or an id.")]
