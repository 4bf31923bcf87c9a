import pytest

from labelspace.errors import ParameterError
from labelspace.models.text2text.templates import (
    DEFAULT_OUTPUT,
    OUTPUT,
    PAPER_PROMPT,
    PROMPT,
    OutputTemplate,
    split_prompt,
)

VALUES = {"brand": "A: B & Co", "L0": "Tea, black", "L1": "NA"}
OUTPUTS = [
    DEFAULT_OUTPUT,
    "<{column}> {value};",
    "details_Brand: {brand} L0_category: {L0} L1_category: {L1}",
    "{L1}|{brand}|{L0}.",
]


@pytest.mark.parametrize("output", OUTPUTS)
def test_what_is_written_is_read_again(output):
    assert OUTPUT.holds(output)
    template = OutputTemplate.of_columns(output, list(VALUES))
    assert template.read(template.write(VALUES)) == VALUES


def test_the_papers_sequence():
    columns = ["details_Brand", *(f"L{level}_category" for level in range(5))]
    template = OutputTemplate.of_columns(DEFAULT_OUTPUT, columns)
    values = ["GM", "Automotive", "Replacement Parts", "Engine Cooling & Climate Control", "Heating", "Blower Motors"]
    assert template.write(dict(zip(columns, values, strict=True))) == (
        "details_Brand: GM L0_category: Automotive L1_category: Replacement Parts "
        "L2_category: Engine Cooling & Climate Control L3_category: Heating L4_category: Blower Motors"
    )


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("brand: Foam L0: Tea", {"brand": "Foam", "L0": "Tea"}),  # cut off
        ("brand: Foam L1: Soap", {"brand": "Foam L1: Soap"}),  # nothing after a marker that is missing
        (" brand:  Foam\nL0:Tea  L1: ", {"brand": "Foam", "L0": "Tea", "L1": ""}),
        ("L0: Tea", {}),
        ("", {}),
    ],
)
def test_a_text_is_read_up_to_the_first_missing_marker(text, values):
    assert OutputTemplate.of_columns(DEFAULT_OUTPUT, ["brand", "L0", "L1"]).read(text) == values


def test_markers_are_compared_as_the_tokenizer_gives_them_back():
    template = OutputTemplate.of_columns("Brand: {b} L0: {L0}", ["b", "L0"])
    assert template.read("brand: foam l0: tea", str.lower) == {"b": "foam", "L0": "tea"}


def test_the_prompt_has_the_columns_and_the_text():
    assert split_prompt(PAPER_PROMPT, ["brand", "L0"])[0].endswith("- brand\n- L0\nInput: ")
    assert split_prompt("{text}", ["brand"]) == ("", "")


@pytest.mark.parametrize("prompt", ["no text", "{text} {text}", "{text} {other}", "{text", "{}", "{text!r}", 3])
def test_a_bad_prompt_is_refused(prompt):
    assert not PROMPT.holds(prompt)


@pytest.mark.parametrize(
    "output", ["", "x", "{value} {column}", "{value}", "{a}{b}", "{a} {b}", "{a}: {a}", "{a:>3}", None]
)
def test_a_bad_output_is_refused(output):
    assert not OUTPUT.holds(output)


def test_an_output_must_have_the_columns_of_the_table():
    with pytest.raises(
        ParameterError, match=r"the columns of the table, brand, L0, each once, but has brand; write them"
    ):
        OutputTemplate.of_columns("brand: {brand}", ["brand", "L0"])
