"""What cannot run on a cluster is said in one line, before one is started; and what is lost on the way."""

import pytest

from labelspace.cluster.connection import _unreachable
from labelspace.cluster.executor import refusing_losses
from labelspace.data.synthetic import planted
from labelspace.errors import ClusterError, ParameterError
from labelspace.models.registry import create

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'labelspace[cluster]'")


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
            "limits are kept by measurements on one machine, but there is a cluster",
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


def raised_in_a_task(cause):
    """What ``ray.get`` raises."""
    traceback = f"Traceback (most recent call last):\n  File 'a.py'\n{type(cause).__name__}: {cause}"
    return ray.exceptions.RayTaskError(
        "run_task", traceback, cause, "ray::run_task", 1, "10.0.0.2"
    ).as_instanceof_cause()


@pytest.mark.parametrize(
    "cause", [OSError(28, "No space left on device"), ConnectionError("of the task"), ParameterError("k must be 1")]
)
def test_an_error_of_a_task_is_raised_as_it_was_there(cause):
    with pytest.raises(type(cause)) as caught, refusing_losses():
        raise raised_in_a_task(cause)
    assert caught.value is cause
    assert caught.value.__cause__ is None
    assert "ray::run_task" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ConnectionError("GRPC connection failed:\n..."), r"\(ConnectionError: GRPC connection failed:\); see `ray"),
        (ray.exceptions.LocalRayletDiedError(), r"\(LocalRayletDiedError: The task's local raylet died. .*\); see"),
        (ray.exceptions.OutOfDiskError(), r"\(OutOfDiskError: The object cannot be created because .*\); see"),
        (ray.exceptions.ObjectLostError("ab", None, ""), r"\(ObjectLostError: Failed to retrieve object ab. .*\); see"),
        (raised_in_a_task(ray.exceptions.RayError("not sent")), r"\(RayError: not sent\); see `ray status`"),
        (ray.exceptions.OutOfMemoryError("of a worker"), "the memory of a machine ran out"),
        (ray.exceptions.WorkerCrashedError(), "a task was lost with its process or machine 20 times"),
    ],
)
def test_what_is_lost_is_said_in_one_line(error, said):
    with pytest.raises(ClusterError, match=said), refusing_losses():
        raise error


def test_other_errors_are_left_as_they_are():
    with pytest.raises(KeyError, match="a"), refusing_losses():
        raise KeyError("a")


def test_a_machine_that_is_not_of_the_cluster_is_told_to_use_the_client_port():
    error = RuntimeError("No node info found matching attributes: '10.0.0.9' when trying to resolve node")
    said = _unreachable("head:6379", error)
    assert said.startswith(
        "--cluster HOST:PORT needs a machine of the cluster, but this one is not part of that at head"
    )
    assert said.endswith("run `ray start` here, or use ray://HOST:PORT with its client port (10001)")
