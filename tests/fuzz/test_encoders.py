import pytest

from tests.fuzz.bases import make_bases
from tests.fuzz.short_campaign import check_no_findings


@pytest.mark.slow
def test_mutated_encoders_answer_or_are_refused_in_one_line(tmp_path):
    make_bases("encoders", tmp_path)
    check_no_findings("encoders", 150, tmp_path)
