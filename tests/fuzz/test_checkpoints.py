import pytest

from tests.fuzz.bases import make_bases
from tests.fuzz.short_campaign import check_no_findings


@pytest.mark.slow
def test_mutated_checkpoints_answer_or_are_refused_in_one_line(tmp_path):
    for name in ("glas", "blend"):  # without torch it takes seconds; what reads a checkpoint is the same
        make_bases("checkpoints", tmp_path, name)
    check_no_findings("checkpoints", 60, tmp_path)
