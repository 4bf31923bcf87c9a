"""What cannot run on a cluster is said in one line, before one is started."""

import pytest

from labelspace.data.synthetic import planted
from labelspace.errors import ParameterError
from labelspace.models.registry import create

pytest.importorskip("ray", reason="Ray is not installed: pip install 'labelspace[cluster]'")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--method", "neighbors", "--cluster", "local"], "neighbors does not; train with --method label_tree"),
        (["--cluster", "somewhere"], "a cluster must be local, auto, ray://HOST:PORT or HOST:PORT, but is 'somewhere'"),
        (["--cluster", "ray://127.0.0.1:1"], "no cluster answers at ray://127.0.0.1:1"),
        (["--cluster", "ray://host.invalid:1"], "no cluster answers at ray://host.invalid:1"),
        (["--task-memory", "4GB"], "--task-memory is for the tasks of a cluster"),
        (["--cluster", "local", "--task-memory", "much"], "--task-memory must be a size such as 500MB or 4GB"),
        (
            ["--cluster", "local", "--budget", "2m"],
            "limits are kept to by what this machine measures, but there is a cluster",
        ),
    ],
)
def test_what_cannot_run_on_a_cluster_is_said_before_one_is_started(args, said, run, hierarchy_folder):
    code, _, err = run("train", hierarchy_folder, *args)
    assert code == 2
    assert said in err


def test_a_method_that_trains_in_one_piece_refuses_an_executor():
    documents = planted(n=20, d=10, l=5, seed=2)
    with pytest.raises(ParameterError, match="neighbors does not"):
        create("neighbors").fit(documents.X, documents.Y, executor=object())
