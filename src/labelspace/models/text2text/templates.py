"""Templates of the prompt that a pretrained T5 reads around a text, and of the output in which it writes labels."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Any, Self

from labelspace.errors import ParameterError
from labelspace.estimator.parameter_constraints import Constraint

TEXT, COLUMNS = "text", "columns"  # fields of a prompt
COLUMN, VALUE = "column", "value"  # fields of an output that is repeated for each column
DEFAULT_OUTPUT = "{column}: {value}"
DEFAULT_PROMPT = "Fill in these fields from the description below.\nFields:\n{columns}Input: {text}\nOutput:"
# The instruction of Pathak (2024) in other words: product details are to be extracted, the columns are listed, then the
# text. Give its exact wording, with a description of each column, as ``prompt``. To a T5 a line is a space.
PAPER_PROMPT = "Extract these details of a product from the text: {columns}Input: {text} Output:"
DEFAULT_PROMPT_WITHOUT_COLUMNS = "Label the text below.\nInput: {text}\nOutput:"

Template = list[tuple[str, str | None]]  # text, and the field that follows it, if any


def parse_template(template: str) -> Template:
    """Split a template into its parts.

    >>> parse_template("Input: {text}. Output:")
    [('Input: ', 'text'), ('. Output:', None)]
    """
    parts = []
    for text, field, spec, conversion in Formatter().parse(template):
        if field == "" or spec or conversion:
            raise ValueError("fields must be names in braces")
        parts.append((text, field))
    return parts


def _fields(template: object) -> list[str] | None:
    """Return the fields of a template, in order; None if it is no template."""
    try:
        return [field for _, field in parse_template(template) if field is not None] if type(template) is str else None
    except ValueError:
        return None


def _is_prompt(template: object) -> bool:
    fields = _fields(template)
    return fields is not None and set(fields) <= {TEXT, COLUMNS} and fields.count(TEXT) == 1


def _is_output(template: Any) -> bool:  # noqa: ANN401 - whatever was given
    fields = _fields(template)
    if not fields or len(set(fields)) < len(fields):
        return False
    if VALUE in fields:
        return fields == [COLUMN, VALUE]
    return all(text.strip() for text, _ in parse_template(template)[1 : len(fields)])


PROMPT = Constraint("a text with {text} once, and {columns} for the list of columns", _is_prompt)
OUTPUT = Constraint(
    "a text with {column} and then {value}, as in '{column}: {value}', or with each column of the table once, as in "
    "'brand: {brand} kind: {kind}', and text between two fields",
    _is_output,
)


def split_prompt(template: str | None, columns: Sequence[str]) -> tuple[str, str]:
    """Return what a pretrained T5 reads before and after a text.

    >>> print("Tea, 50 bags".join(split_prompt(None, ["brand"])))
    Fill in these fields from the description below.
    Fields:
    - brand
    Input: Tea, 50 bags
    Output:
    """
    template = template or (DEFAULT_PROMPT if columns else DEFAULT_PROMPT_WITHOUT_COLUMNS)
    listed = "".join(f"- {column}\n" for column in columns)
    parts = parse_template(template)
    filled = [text + (listed if field == COLUMNS else "") for text, field in parts]
    end = 1 + [field for _, field in parts].index(TEXT)  # of what is before the text
    return "".join(filled[:end]), "".join(filled[end:])


@dataclass(frozen=True)
class OutputTemplate:
    """How the values of columns are written: a marker before each, and text at the end. No columns: a label's name.

    >>> template = OutputTemplate.of_columns("{column}: {value}", ["brand", "L0"])
    >>> template.write({"brand": "Trm", "L0": "Tea"})
    'brand: Trm L0: Tea'
    >>> template.read("brand: Trm L0: Tea"), template.read("brand: Trm"), template.read("Trm")
    ({'brand': 'Trm', 'L0': 'Tea'}, {'brand': 'Trm'}, {})
    """

    markers: Mapping[str, str]  # by column, in the order of the sequence
    end: str
    separator: str = ""  # between a value and the next marker

    @classmethod
    def of_columns(cls, template: str, columns: Sequence[str]) -> Self:
        """Build the template for the columns of a table, in this order unless the template has its own."""
        parts = parse_template(template)
        end = parts.pop()[0] if parts[-1][1] is None else ""
        fields = [str(field) for _, field in parts]
        if fields == [COLUMN, VALUE]:
            (before, _), (between, _) = parts
            return cls({column: f"{before}{column}{between}" for column in columns}, end, f"{end} ")
        if sorted(fields) != sorted(columns):
            raise ParameterError(
                f"output of text2text must have the columns of the table, {', '.join(columns) or 'which has none'}, "
                f"each once, but has {', '.join(fields)}; write them so, or leave output out"
            )
        return cls({column: marker for column, (marker, _) in zip(fields, parts, strict=True)}, end)

    def write(self, values: Mapping[str, str]) -> str:
        """Write the text for the values of some columns."""
        columns = values if self.separator else [column for column in self.markers if column in values]
        written = self.separator.join(f"{self.markers[column]}{values[column]}" for column in columns)
        return written.lstrip() + self.end

    def read(self, text: str, normalize: Callable[[str], str] = str) -> dict[str, str]:
        """Read the values in a text by column, up to the first column whose marker is missing.

        ``normalize`` is what the tokenizer does to a text that it encodes and decodes.
        """
        text, end = " ".join(text.split()), normalize(self.end.strip())
        columns, markers = list(self.markers), [_between_values(m, normalize) for m in self._markers()]
        if not columns or not text.startswith(markers[0]):
            return {}
        values, rest = {}, text.removeprefix(markers[0]).removesuffix(end)
        for column, following in zip(columns, [*markers[1:], None], strict=True):
            value, found, rest = (rest, "", "") if following is None else rest.partition(following)
            values[column] = value.strip()
            if not found:
                break
        return values

    def _markers(self) -> list[str]:
        """Return the text before each value."""
        first, *others = self.markers.values() or [""]
        return [first.lstrip(), *(self.separator + marker for marker in others)]


def _between_values(marker: str, normalize: Callable[[str], str]) -> str:
    """Return a marker as it appears in a normalized text: with the space before it, without the one after it."""
    stripped = " ".join(normalize(marker.strip()).split())
    return f" {stripped}" if marker[:1].isspace() else stripped
