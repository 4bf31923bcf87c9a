import pytest

from tests.fuzz.short_campaign import check_no_findings


@pytest.mark.slow
def test_mutated_models_answer_or_are_refused_in_one_line(tmp_path):
    check_no_findings("models", 770, tmp_path)
