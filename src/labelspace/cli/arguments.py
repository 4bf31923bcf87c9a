"""Arguments and options of several commands; a command takes a group of options as one value."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, cast, get_args

import typer
from typer import Argument, Option
from typer.core import TyperCommand, TyperOption
from typer.main import get_command

from labelspace.cli.exit_codes import as_flag
from labelspace.cli.notes import note
from labelspace.data.read_options import FileOptions, ReadOptions
from labelspace.errors import ParameterError
from labelspace.labels.tag_options import TagOptions
from labelspace.options import declared_options

if TYPE_CHECKING:
    from labelspace.tagger import Tagger
    from labelspace.types import LabelSpace

DataPath = Annotated[Path, Argument(metavar="DATA", help="A folder with train.* (and test.*, dev.*), or a file.")]
ModelPath = Annotated[Path, Argument(metavar="MODEL", help="A folder saved by `labelspace train`.")]
Json = Annotated[bool, Option("--json", help="Print one JSON object on stdout and nothing else.")]
Ks = Annotated[str, Option("--k", metavar="1,3,5", help="Cutoff ranks of the metrics.")]
Keep = Annotated[
    int | None,
    Option(metavar="N", min=0, help="Older versions that are kept next to the model, in MODEL.versions. Default: 5."),
]
READING_PANEL = "How files are read (what is not given is detected, and reported)"
OF_DOCUMENTS = ("text", "id", "embeddings", "vectors", "delimiter", "encoding", "format")
OF_LABELS = ("labels", "label_separator", "normalize_labels", "inputs", "outputs", "numeric", "categorical")


class OptionGroup:
    """Options, and the function that makes one value of them: ``make({name: value}, quiet)``.

    A command takes a group as a parameter without a default, of type ``Annotated[Value, typer.Option(parser=group)]``,
    and is registered with ``cls=GroupedCommand``, which puts the options of the group in the place of the parameter.
    """

    __name__ = "group"  # typer asks for the name of a parser

    def __init__(self, options: Iterable[TyperOption], make: Callable[[dict[str, Any], bool], Any]) -> None:
        self.options, self.make = list(options), make

    @classmethod
    def of(cls, make: Callable[..., Any]) -> "OptionGroup":
        """Return the group of the parameters of a function or NamedTuple, annotated like those of a command."""
        app = typer.Typer(add_completion=False)
        app.command()(make)
        command = get_command(app)
        convert: Any = command.callback  # typer's: converts paths, and calls ``make``
        return cls(command.params, lambda given, quiet: convert(**given))  # type: ignore[arg-type]

    def __call__(self, text: str) -> None:
        """Do nothing: a group is no parser, and GroupedCommand takes its place."""


class GroupedCommand(TyperCommand):
    """A command with groups of options."""

    def __init__(self, name: str | None, *, params: Sequence[Any], **settings: Any) -> None:  # noqa: ANN401 - typer's
        groups = {each.name: getattr(each.type, "func", None) for each in params}
        self.groups = {name: group for name, group in groups.items() if isinstance(group, OptionGroup)}
        options = [self.groups[each.name].options if each.name in self.groups else [each] for each in params]
        flat = [option for some in options for option in some]
        for option in flat:
            option.secondary_opts = []  # a switch has no --no-... form
        super().__init__(name, params=flat, **settings)

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - a context of typer, whose class older versions take from click
        """Call the command with one value for each group."""
        quiet = bool(ctx.params.get("as_json"))
        for name, group in self.groups.items():
            given = {str(option.name): ctx.params.pop(str(option.name)) for option in group.options}
            ctx.params[name] = group.make(given, quiet)
        return super().invoke(ctx)


def declared_flags(kind: type, names: Iterable[str], panel: str | None = None) -> list[TyperOption]:
    """Return the flags of options that a TypedDict declares (see ``labelspace.options``)."""
    declared = declared_options(kind)
    flags = []
    for name in names:
        option = declared[name]
        about: dict[str, Any] = {"help": option.meaning + option.on_command_line, "metavar": option.metavar}
        if option.kind is bool:
            about |= {"is_flag": True, "default": False}
        else:
            about |= {"type": float if float in get_args(option.kind) else str, "multiple": option.repeats}
        flags.append(TyperOption(param_decls=[name, as_flag(name)], rich_help_panel=panel, **about))
    return flags


def _read_options(given: dict[str, Any], quiet: bool) -> ReadOptions:
    from labelspace.data.source import parse_options
    from labelspace.data.table import split_names

    options: Any = {name: value for name, value in given.items() if value is not None}
    for name in ("text", "labels", "numeric", "categorical"):
        if name in options:
            options[name] = split_names(name, options[name], ",")
    return parse_options(options, (lambda line: None) if quiet else note)


_DOCUMENTS = OptionGroup(declared_flags(FileOptions, OF_DOCUMENTS, READING_PANEL), _read_options)
_ALL = OptionGroup(declared_flags(FileOptions, OF_DOCUMENTS + OF_LABELS, READING_PANEL), _read_options)
Reading = Annotated[ReadOptions, Option(parser=_ALL)]
DocumentReading = Annotated[ReadOptions, Option(parser=_DOCUMENTS)]  # of documents without labels


class _Protocol(NamedTuple):
    propensity_from: Annotated[
        Literal["train", "test"],
        Option(help="Labels to estimate propensities from: train, or test as in the GLaS paper."),
    ] = "train"
    propensity_preset: Annotated[
        str, Option(help="Constants A and B of the propensities: default, wikipedia or amazon.")
    ] = "default"
    unlabelled: Annotated[
        Literal["skip", "count"],
        Option(help="Documents without labels: left out of the averages, or counted with a score of 0."),
    ] = "skip"


class AnswerOptions(NamedTuple):
    """Which labels an answer has, in which language they are shown, and whether with all that is known of them."""

    k: int
    options: TagOptions
    language: str | None
    with_details: bool


class _Shown(NamedTuple):
    k: Annotated[int | None, Option(min=1, help="Number of labels per document. Default: 5.")] = None
    shortlist: Annotated[
        int | None,
        Option(
            metavar="K",
            min=1,
            help="In place of --k: this number of labels, with path, description, synonyms and probability, to choose "
            "from by hand or by a language model.",
        ),
    ] = None
    language: Annotated[
        str | None, Option(metavar="LANG", help="Show names in this language, such as fi, where the labels have them.")
    ] = None


def _answer_options(given: dict[str, Any], quiet: bool) -> AnswerOptions:
    k, shortlist, language = (given.pop(name) for name in ("k", "shortlist", "language"))
    if k is not None and shortlist is not None:
        rule = "either --k or --shortlist is the number of labels"
        raise ParameterError(f"{rule}, but both are given, {k} and {shortlist}; leave one out")
    return AnswerOptions(shortlist or k or 5, cast(TagOptions, given), language, shortlist is not None)


SELECTING = ("consistent", "include", "exclude", "under")
*_K, _LANGUAGE = OptionGroup.of(_Shown).options
_ANSWERING = OptionGroup(
    [*_K, *declared_flags(TagOptions, ("min_probability", "precision", *SELECTING)), _LANGUAGE], _answer_options
)
_EVALUATION = OptionGroup(
    [*OptionGroup.of(_Protocol).options, *declared_flags(TagOptions, SELECTING)], lambda given, quiet: given
)
Answering = Annotated[AnswerOptions, Option(parser=_ANSWERING)]
Evaluating = Annotated[dict[str, Any], Option(parser=_EVALUATION)]  # keywords of ``experiment.evaluate``


def with_label_files(options: Mapping[str, Any], labels: "LabelSpace") -> Any:  # noqa: ANN401 - a TypedDict
    """Return options of tagging in which labels to include or exclude may be files of labels."""
    from labelspace.labels.selection import with_files

    files = {name: with_files(options[name], labels) for name in ("include", "exclude")}
    return {**options, **files}


def as_words(reading: ReadOptions) -> list[str]:
    """Return options of reading as words of a command."""
    given = {name: getattr(reading, name, None) for name in OF_DOCUMENTS + OF_LABELS}
    if reading.columns is not None:
        given["inputs"] = reading.columns.inputs
        given["outputs"] = tuple(">".join(group) for group in reading.columns.outputs)
    given |= {name: getattr(reading.side_columns, name) for name in ("numeric", "categorical")}
    given["vectors"] = reading.vectors_file or reading.side_columns.vectors
    words = []
    for name, value in given.items():
        if value:
            words.append(as_flag(name))
            words += [] if value is True else [",".join(value) if isinstance(value, tuple) else value]
    return words


def given_text(text: str, tagger: "Tagger") -> str:
    """Return a text of the command line: ``-`` is that on stdin.

    A row as JSON, for a model that reads columns, is its text with values.
    """
    from labelspace.data.objects.inputs import read_inputs
    from labelspace.data.records import Location, parse_object

    text = sys.stdin.read().removesuffix("\n") if text == "-" else text
    if not tagger.side_columns or not text.lstrip().startswith("{"):
        return text
    row = parse_object(text, Location("the row", 1))
    found: str = read_inputs([row], tagger.columns_, tagger.fields_)[0]
    return found


def source_name(data: Path) -> str:
    """Return the name of a data path, for file names."""
    return data.resolve().name.split(".")[0] or "data"


def parse_ks(text: str) -> tuple[int, ...]:
    """Return the numbers in text such as '1,3,5', each once."""
    try:
        ks = tuple(dict.fromkeys(int(k) for k in text.split(",")))
    except ValueError:
        ks = ()
    if not ks or min(ks) < 1:
        rule = "--k must be integers of at least 1 separated by commas"
        raise ParameterError(f"{rule}, but is {text!r}; write for example 1,3,5")
    return ks
