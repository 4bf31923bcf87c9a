"""Options of tagging are declared once: keywords, flags and fields of a request have the same names and meanings."""

import pytest

from labelspace.cli.arguments import SELECTING, declared_flags
from labelspace.labels.tag_options import TagOptions
from labelspace.options import declared_options

DECLARED = declared_options(TagOptions)


def test_every_option_has_a_flag_and_a_field():
    schemas = pytest.importorskip("labelspace.server.schemas")
    flags = {flag.name: flag for flag in declared_flags(TagOptions, DECLARED)}
    assert flags.keys() == DECLARED.keys() == {"min_probability", "precision", *SELECTING}
    for name, option in DECLARED.items():
        assert flags[name].help.startswith(option.meaning)
        assert schemas.TagOptionsBody.model_fields[name].description.startswith(option.meaning)


def test_bounds_hold_for_requests():
    schemas = pytest.importorskip("labelspace.server.schemas")
    for name, wrong in (("min_probability", 1.1), ("precision", 1.0)):
        assert schemas.SuggestBody.model_validate({"text": "a", name: 0.5})
        with pytest.raises(ValueError, match=name):
            schemas.SuggestBody.model_validate({"text": "a", name: wrong})
