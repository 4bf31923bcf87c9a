"""Processes that are lost, late or loading, as the front end sees them; no cluster is started."""

import threading
from types import SimpleNamespace

import pytest

from labelspace.cluster.executor import pack, unpack
from labelspace.cluster.serving import backend, remote_calls
from labelspace.cluster.serving.backend import PartActor
from labelspace.cluster.serving.remote_calls import LostError, RemoteShards, Replicas, Wait, result_of
from labelspace.cluster.serving.shard_folder import SavedPart, saved_model
from labelspace.errors import ClusterError, ParameterError
from labelspace.tagger import Tagger

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'labelspace[cluster]'")

NEVER = object()  # in place of what an actor returns
PART = SavedPart("folder", 1)


class Reference:
    """What an actor returns, or an error, or what never comes."""

    def __init__(self, value):
        self.value = value


class FakeActor:
    """Answers what it is told to, one after the other, the last for ever."""

    def __init__(self, answers, prepared=("here",)):
        self.answers, self.prepared, self.n_calls = list(answers), list(prepared), 0
        self.call = SimpleNamespace(remote=self._call)
        self.prepare = SimpleNamespace(remote=lambda part: Reference(self.prepared.pop(0)))

    def _call(self, part, method, arguments, mask=None):
        self.n_calls += 1
        value = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return Reference(pack(value) if isinstance(value, str) else value)


class FakeRay:
    """References that are there or never come; who waits for what never comes waits to the end."""

    exceptions = ray.exceptions

    def __init__(self, clock):
        self.clock = clock

    def get(self, reference, timeout=None):
        if reference.value is NEVER:
            self.clock.now += timeout
            raise ray.exceptions.GetTimeoutError
        if isinstance(reference.value, Exception):
            raise reference.value
        return reference.value

    def wait(self, references, timeout):
        done = [each for each in references if each.value is not NEVER][:1]
        self.clock.now += 0 if done else timeout
        return done, [each for each in references if each not in done]


class Clock:
    """Time that passes when somebody waits."""

    now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(remote_calls, "time", clock)
    monkeypatch.setattr(remote_calls, "import_module", lambda name: FakeRay(clock))
    return clock


def lost(name="ActorDiedError"):
    kind = getattr(ray.exceptions, name)
    return kind.__new__(kind)


def raised_there(cause):
    return ray.exceptions.RayTaskError("call", "traceback", cause)


@pytest.mark.parametrize(
    "name", ["ActorDiedError", "ObjectLostError", "OwnerDiedError", "NodeDiedError", "OutOfMemoryError"]
)
def test_whatever_ray_says_is_lost_is_lost(clock, name):
    with pytest.raises(LostError):
        result_of(Reference(lost(name)), Wait("it", 30))


def test_an_error_of_the_library_is_raised_as_it_was_and_another_as_ray_gives_it(clock):
    with pytest.raises(ParameterError, match="k must be"):
        result_of(Reference(raised_there(ParameterError("k must be 1"))), Wait("it", 30))
    with pytest.raises(ray.exceptions.RayTaskError):
        result_of(Reference(raised_there(ValueError("a bug"))), Wait("it", 30))


def test_a_busy_shard_has_the_time_of_a_request_and_is_not_said_to_be_lost(clock):
    shards = RemoteShards([FakeActor([NEVER])], [PART])
    with pytest.raises(ClusterError, match="every shard of the model must answer within 30 s, but takes longer; try"):
        shards.call("ids")
    assert clock.now == 30


def test_a_lost_shard_is_called_again_and_the_others_are_not(clock):
    actors = [FakeActor(["one"]), FakeActor([lost(), lost("NodeDiedError"), "two"])]
    assert RemoteShards(actors, [PART, PART]).call("ids") == ["one", "two"]
    assert [each.n_calls for each in actors] == [1, 3]


def test_a_shard_that_stays_lost_is_waited_for_ten_seconds(clock):
    with pytest.raises(ClusterError, match="must answer within 10 s, but does not: a process or machine .* was lost"):
        RemoteShards([FakeActor([lost()])], [PART]).call("ids")
    assert clock.now == pytest.approx(10, abs=0.2)


def test_shards_that_load_are_waited_for_as_long_as_was_said(clock):
    slow = FakeActor([], [lost()] * 1000 + ["here"])
    RemoteShards([slow], [PART]).prepare(300)
    assert 90 < clock.now < 110


def test_another_replica_answers_where_one_is_lost(clock):
    replicas = Replicas([FakeActor([lost()], ["here", NEVER]), FakeActor(["other"])], PART)
    assert [replicas.call("answers") for _ in range(3)] == ["other"] * 3
    assert replicas._n_calls == [1, 3]


def test_a_replica_is_called_once_it_has_loaded_the_model(clock):
    replicas = Replicas([FakeActor(["first"], [NEVER]), FakeActor(["second"])], PART)
    replicas.wait_for_first(300)
    assert [replicas.call("answers") for _ in range(2)] == ["second"] * 2
    replicas._loading[0].value = "here"
    assert replicas.call("answers") == "first"


@pytest.mark.parametrize(
    ("prepared", "rule"),
    [
        (raised_there(ClusterError("all machines must see the same model")), "all machines must see the same model"),
        (lost(), "its process was lost meanwhile"),
        (NEVER, "must answer within 300 s, but takes longer"),
    ],
)
def test_where_no_replica_can_load_the_model_the_error_says_why(clock, prepared, rule):
    replicas = Replicas([FakeActor([], [lost()]), FakeActor([], [prepared])], PART)
    with pytest.raises(ClusterError, match=rule):
        replicas.wait_for_first(300)


def test_a_replica_whose_answer_is_late_is_busy_until_it_has_answered(clock):
    late, other = FakeActor([NEVER, "late"]), FakeActor(["other"])
    replicas = Replicas([late, other], PART, answer_seconds=5)
    with pytest.raises(ClusterError, match="a replica of the model must answer within 5 s, but takes longer"):
        replicas.call("answers")
    assert [replicas.call("answers") for _ in range(3)] == ["other"] * 3
    replicas._late[0][1].value = "at last"
    assert [replicas.call("answers") for _ in range(2)] == ["late"] * 2
    assert replicas._in_progress == [0, 0]


class Loading:
    """Parts by their folder; one of them takes until ``release``."""

    def __init__(self):
        self.loaded, self.begun, self.release = [], threading.Event(), threading.Event()

    def __call__(self, part):
        self.loaded.append(part.folder)
        if part.folder == "next":
            self.begun.set()
            assert self.release.wait(60)
        return part.folder


@pytest.fixture
def process(monkeypatch):
    """A process that holds parts, in this one."""
    monkeypatch.setenv(backend.THREADS_VARIABLE, "1")
    monkeypatch.setattr(backend, "threadpool_limits", lambda n: None)
    return PartActor(Loading())


def test_the_old_version_answers_while_the_next_is_loaded_once(process):
    old, new, loading = SavedPart("old", 1), SavedPart("next", 2), process._load
    process.prepare(old)
    threads = [threading.Thread(target=process.prepare, args=[new]) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert loading.begun.wait(60)
    assert unpack(process.call(old, "upper", pack(((), {})))) == "OLD"
    assert all(thread.is_alive() for thread in threads)
    loading.release.set()
    for thread in threads:
        thread.join(60)
    assert unpack(process.call(new, "upper", pack(((), {})))) == "NEXT"
    assert loading.loaded == ["old", "next"]


def test_the_two_versions_that_were_called_last_are_kept(process):
    for folder in ("a", "b", "a", "c", "a", "b"):
        process.prepare(SavedPart(folder, 1))
    assert process._load.loaded == ["a", "b", "c", "b"]


def save(folder, label):
    Tagger("popular").fit(["a text", "a text"], [[label], [label]]).save(folder)
    return saved_model(folder)


def test_a_model_that_is_replaced_while_it_is_read_is_of_the_version_that_it_has(tmp_path, monkeypatch):
    old, load = save(tmp_path / "model", "old"), Tagger.load

    def replaced_meanwhile(folder):
        monkeypatch.setattr(backend.Tagger, "load", load)
        save(tmp_path / "model", "new")
        return load(folder)

    monkeypatch.setattr(backend.Tagger, "load", replaced_meanwhile)
    saved, tagger = backend.read_version(tmp_path / "model")
    assert list(tagger.labels_.names) == ["new"]
    assert saved == saved_model(tmp_path / "model") != old


def test_a_replica_has_answered_before_it_is_called(tmp_path, monkeypatch):
    asked, answers = [], Tagger.answers
    monkeypatch.setattr(Tagger, "answers", lambda self, texts, k: asked.append(texts) or answers(self, texts, k))
    backend.load_replica(save(tmp_path / "model", "label"))
    assert asked == [[backend.WARM_UP]]
